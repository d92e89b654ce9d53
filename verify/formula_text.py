"""Formulas as rule files write them: for reports about guards that stand in no file."""

from __future__ import annotations

from ..engine.language.names import INFIX
from ..engine.language.syntax import Formula, Function, InRange, Logic, Name, Number, Operation, Text, TypeName, Var
from ..engine.ops import Op

_SIGNS = {op: sign for sign, op in INFIX.items()}
_LOOSE = {"or": 1, "and": 2, "not": 3}
_COMPARISON, _RANGE, _CALL = 4, 4, 20


def formula_text(formula: Formula | Var | Op) -> str:
    """The formula with as few parentheses as its operators need."""
    return _text(formula)[0]


def _text(formula: Formula | Var | Op) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match formula:
        case Op():
            return formula.name, _CALL
        case Name() | Var():
            return formula.name, _CALL
        case TypeName():
            return formula.dtype.name, _CALL
        case Number():
            return _number(formula.value)
        case Text():
            return f'"{formula.value}"', _CALL
        case Function():
            return f"{formula.name}({', '.join(map(formula_text, formula.args))})", _CALL
        case InRange():
            inner = [_within(part, _RANGE + 1) for part in (formula.value, formula.low, formula.high)]
            return f"{inner[0]} in {inner[1]}..{inner[2]}", _RANGE
        case Logic():
            level = _LOOSE[formula.word]
            if formula.word == "not":
                return f"not {_within(formula.args[0], level + 1)}", level
            return f" {formula.word} ".join(_within(part, level + 1) for part in formula.args), level
        case Operation():
            return _operation(formula)


def _number(value: bool | int | float) -> tuple[str, int]:
    if isinstance(value, bool):
        return ("true" if value else "false"), _CALL
    return repr(value), _CALL if value >= 0 else _CALL - 1


def _operation(formula: Operation) -> tuple[str, int]:
    sign = _SIGNS.get(formula.op)
    if sign is None or len(formula.args) != 2:
        signs = {"neg": "-", "not": "~"}
        if formula.op.name.lower() in signs and len(formula.args) == 1:
            return signs[formula.op.name.lower()] + _within(formula.args[0], _CALL), _CALL - 1
        return f"{formula.op.name.lower()}({', '.join(map(formula_text, formula.args))})", _CALL
    level = _level(sign)
    left, right = _within(formula.args[0], level), _within(formula.args[1], level + 1)
    return f"{left} {sign} {right}", level


def _level(sign: str) -> int:
    """As the reference of the language lists them, from loose to tight."""
    rows = ("< <= > >= == !=", "|", "^", "&", "<< >>", "+ -", "* / // %")
    return _COMPARISON + next(k for k, row in enumerate(rows) if sign in row.split())


def _within(part: Formula, level: int) -> str:
    text, own = _text(part)
    return text if own >= level else f"({text})"
