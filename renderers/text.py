"""Pieces of C-family expressions: text together with how tightly it binds, so that few parentheses are needed."""

from __future__ import annotations

from typing import NamedTuple

from ..engine import ops
from ..engine.ops import Op

TERNARY, BITS, COMPARISON, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(8)
"""How tightly an operator binds, loosest first. `&`, `|` and `^` share a level: they are never mixed unparenthesised."""


class Text(NamedTuple):
    """An expression and the level of its outermost operator; an `ATOM` needs no parentheses anywhere."""

    text: str
    level: int = ATOM

    def at(self, level: int) -> str:
        """The text as an operand that must bind at least as tightly as `level`."""
        return self.text if self.level >= level else f"({self.text})"


SYMBOLS: dict[Op, tuple[str, int, int]] = {
    ops.ADD: ("+", SUM, SUM), ops.SUB: ("-", SUM, SUM), ops.MUL: ("*", PRODUCT, PRODUCT),
    ops.DIV: ("/", PRODUCT, PRODUCT), ops.TRUNCDIV: ("/", PRODUCT, PRODUCT), ops.TRUNCMOD: ("%", PRODUCT, PRODUCT),
    ops.SHL: ("<<", SHIFT, UNARY), ops.SHR: (">>", SHIFT, UNARY),
    ops.AND: ("&", BITS, UNARY), ops.OR: ("|", BITS, UNARY), ops.XOR: ("^", BITS, UNARY),
    ops.LT: ("<", COMPARISON, SUM), ops.LE: ("<=", COMPARISON, SUM), ops.GT: (">", COMPARISON, SUM),
    ops.GE: (">=", COMPARISON, SUM), ops.EQ: ("==", COMPARISON, SUM), ops.NE: ("!=", COMPARISON, SUM),
}  # fmt: skip
"""Operator -> its sign in C, its level, and the level from which its left operand needs no parentheses.

Shifts and bit operators ask for more than C does: few readers know those precedences, and compilers warn.
"""


def infix(op: Op, left: Text, right: Text) -> Text:
    """`left op right`. The right operand must bind more tightly: `a - (b - c)`; the order of operations is kept."""
    sign, level, least = SYMBOLS[op]
    return Text(f"{left.at(least)} {sign} {right.at(max(level + 1, least))}", level)


def prefix(sign: str, operand: Text) -> Text:
    """A unary operator. `--` would be another one."""
    return Text(sign + operand.at(ATOM if operand.text.startswith(sign) else UNARY), UNARY)


def call(function: str, *operands: Text) -> Text:
    return Text(f"{function}({', '.join(operand.text for operand in operands)})")


def choose(condition: Text, a: Text, b: Text) -> Text:
    """`condition ? a : b`; only the side that is taken is evaluated."""
    return Text(f"{condition.at(COMPARISON)} ? {a.at(COMPARISON)} : {b.at(COMPARISON)}", TERNARY)


def convert(type_name: str, operand: Text) -> Text:
    """A C cast."""
    return Text(f"({type_name}){operand.at(UNARY)}", UNARY)
