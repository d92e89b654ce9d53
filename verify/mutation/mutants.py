"""The mutants of a rule: the same rule with one condition of its guard taken out or weakened, or with a wider `on`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...engine import dtypes, ops
from ...engine.language.syntax import (
    Chain,
    Formula,
    Function,
    InRange,
    Instance,
    Logic,
    Number,
    OnType,
    Operation,
    Rule,
    Share,
    Span,
    TypeName,
)
from ...engine.language.types import TypeConflict, check_types
from ..atoms import conjuncts
from ..formula_text import formula_text

Weakening = tuple[str, Formula]
"""What is said about it, and the formula that takes the place of the condition."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule that holds in more cases than the one that it was made from."""

    rule: Rule  # with the weaker guard
    change: str  # what was done, as a reader of the rule would say it
    where: Rule  # with a guard that holds where only the mutant's does: where to look for what is wrong with it

    @property
    def name(self) -> str:
        """Names it in reports and in the list of those that are explained."""
        return f"{self.rule.id}: {self.change}"


def mutants_of(rule: Rule) -> Iterator[Mutant]:
    """Every mutant of a rule whose sides still have types, each once."""
    seen: set[str] = set()
    for mutant in (*_of_guard(rule), *_of_shares(rule), *_of_types(rule)):
        if mutant.change not in seen and _has_types(mutant.rule):
            seen.add(mutant.change)
            yield mutant


def _has_types(rule: Rule) -> bool:
    try:
        for instance in rule.instances:
            check_types(instance, rule.on)
    except TypeConflict:
        return False
    return True


# --- the guard --------------------------------------------------------------------------------------------------------


def _of_guard(rule: Rule) -> Iterator[Mutant]:
    first = rule.instances[0].when
    if first is None:
        return
    for place, condition in enumerate(conjuncts(first)):
        changes = [("without", None), *((said, None) for said, _ in weaker(condition))]
        for number, (said, _) in enumerate(changes):
            changed = [_changed(instance, place, number) for instance in rule.instances]
            if None in changed:
                continue
            pairs = [pair for pair in changed if pair is not None]
            text = f"{said} `{formula_text(condition)}`" if said == "without" else said
            yield Mutant(_with(rule, [mutant for mutant, _ in pairs]), text, _with(rule, [only for _, only in pairs]))


def _changed(instance: Instance, place: int, number: int) -> tuple[Instance, Instance] | None:
    """The instance with one condition changed, and with a guard that holds only because of that."""
    assert instance.when is not None
    conditions = list(conjuncts(instance.when))
    if place >= len(conditions):
        return None
    condition = conditions[place]
    options: list[Formula | None] = [None, *(formula for _, formula in weaker(condition))]
    if number >= len(options):
        return None
    other = options[number]
    rest = [*conditions[:place], *([] if other is None else [other]), *conditions[place + 1 :]]
    lost = Logic("not", (condition,), condition.span)
    return replace(instance, when=_all(rest)), replace(instance, when=_all([*rest, lost]))


def _with(rule: Rule, instances: list[Instance]) -> Rule:
    """Its reason is one for the rule as it was."""
    return replace(rule, instances=tuple(instances), because=None)


def _all(conditions: list[Formula]) -> Formula | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return Logic("and", tuple(conditions), conditions[0].span)


# --- weaker conditions ------------------------------------------------------------------------------------------------


def weaker(condition: Formula) -> list[Weakening]:
    """Conditions that hold a little more often than this one."""
    return list(_weaker(condition, lambda part: part))


def _weaker(part: Formula, whole: Callable[[Formula], Formula]) -> Iterator[Weakening]:
    """The ways to weaken a part, each with the whole condition that results."""
    for old, new in _steps(part):
        yield f"`{formula_text(old)}` becomes `{formula_text(new)}`", whole(new)
    match part:
        case Logic(word="or" | "and"):
            for place, inner in enumerate(part.args):
                yield from _weaker(inner, lambda new, place=place: whole(_put(part, place, new)))  # type: ignore[misc]
        case Function(means=inner) if inner is not None:
            for place, one in enumerate(conjuncts(inner)):
                rest = [other for k, other in enumerate(conjuncts(inner)) if k != place]
                left = _all(rest)
                if left is not None:
                    yield f"`{formula_text(part)}` without `{formula_text(one)}`", whole(left)


def _put(logic: Logic, place: int, new: Formula) -> Logic:
    return replace(logic, args=(*logic.args[:place], new, *logic.args[place + 1 :]))


_NEXT = {ops.LT: ops.LE, ops.GT: ops.GE}
_TYPES = {
    "int8": "int16",
    "int16": "int32",
    "int32": "int64",
    "uint8": "uint16",
    "uint16": "uint32",
    "uint32": "uint64",
}


def _steps(part: Formula) -> Iterator[tuple[Formula, Formula]]:
    match part:
        case Operation(op=op, args=(a, b)) if op in _NEXT:
            yield part, replace(part, op=_NEXT[op])
            if isinstance(b, Number) and b.value == 0:  # the sign does not matter any more
                yield part, replace(part, op=ops.NE)
        case Operation(op=ops.LE | ops.GE, args=(a, b)):
            yield part, replace(part, args=(a, _moved(b, 1 if part.op is ops.LE else -1)))
        case Operation(op=ops.EQ) if _is_number(part):
            yield part, replace(part, op=ops.LE)
            yield part, replace(part, op=ops.GE)
        case InRange():
            yield part, replace(part, low=_moved(part.low, -1))
            yield part, replace(part, high=_moved(part.high, 1))
        case Logic(word="not", args=(InRange() as inner,)):
            narrow = replace(inner, low=_moved(inner.low, 1)), replace(inner, high=_moved(inner.high, -1))
            for one in narrow:
                yield part, Logic("not", (one,), part.span)
        case Function(name="fits", args=(node, TypeName() as kind)) if kind.dtype.name in _TYPES:
            wide = dtypes.by_name(_TYPES[kind.dtype.name])
            yield part, replace(part, args=(node, TypeName(wide, kind.span)))
        case Function(name="less"):
            yield part, replace(part, name="at_most")


def _is_number(part: Operation) -> bool:
    """Whether its sides are numbers, not types or the kinds of ranges."""
    odd = ("dtype", "kind", "uses", "constant")
    return not any(
        isinstance(side, Operation)
        and side.op in (ops.FLOORMOD, ops.AND)  # never below zero: one way does nothing
        or isinstance(side, TypeName)
        or isinstance(side, Function)
        and side.name in odd
        or type(side).__name__ == "Text"
        for side in part.args
    )


def _moved(formula: Formula, by: int) -> Formula:
    if isinstance(formula, Number) and isinstance(formula.value, int) and not isinstance(formula.value, bool):
        return replace(formula, value=formula.value + by)
    step = Number(abs(by), formula.span)
    return Operation(ops.ADD if by > 0 else ops.SUB, (formula, step), (), formula.span)


# --- the conditions on terms of a chain -------------------------------------------------------------------------------


def _of_shares(rule: Rule) -> Iterator[Mutant]:
    """The left side is a chain whose share takes any term."""
    left = rule.instances[0].left
    for place, share in enumerate(left.shares if isinstance(left, Chain) else ()):
        options: list[Weakening] = [
            (f"without `{formula_text(share.guard)}` of the share", _true(share.guard.span)),
            *weaker(share.guard),
        ]
        for number, (said, _) in enumerate(options):
            rules = [_share_changed(instance, place, number) for instance in rule.instances]
            if all(rules):
                mutant = _with(rule, [one for one in rules if one is not None])
                yield Mutant(mutant, said, mutant)


def _share_changed(instance: Instance, place: int, number: int) -> Instance | None:
    left = instance.left
    if not isinstance(left, Chain) or place >= len(left.shares):
        return None
    share = left.shares[place]
    options = [_true(share.guard.span), *(formula for _, formula in weaker(share.guard))]
    if number >= len(options):
        return None
    other = Share(share.name, options[number], share.span)
    return replace(instance, left=replace(left, shares=(*left.shares[:place], other, *left.shares[place + 1 :])))


def _true(span: Span) -> Formula:
    return Operation(ops.EQ, (Number(0, span), Number(0, span)), (), span)


# --- the types --------------------------------------------------------------------------------------------------------

FAMILIES = {"index": "int", "sint": "uint", "uint": "sint", "int": "float", "bool": "int", "float": "int"}
"""A family of types that a rule of one family may not be right for."""


def _of_types(rule: Rule) -> Iterator[Mutant]:
    if len(rule.on) == 1 and not rule.on[0].flags and rule.on[0].name in FAMILIES:
        (one,) = rule.on
        wide = OnType(FAMILIES[one.name], (), one.span)
        yield Mutant(
            replace(rule, on=(*rule.on, wide), because=None), f"on {one.name}, {wide.name}", replace(rule, on=(wide,))
        )
    for place, one in enumerate(rule.on):
        for flag in one.flags:
            less = replace(one, flags=tuple(other for other in one.flags if other != flag))
            on = (*rule.on[:place], less, *rule.on[place + 1 :])
            changed = replace(rule, on=on, because=None)
            yield Mutant(changed, f"on {one.name} without the flag {flag}", replace(changed, on=(less,)))
