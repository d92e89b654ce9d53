"""Random index expressions: the rules keep their value, the facts hold, and simplifying twice is simplifying once.

The values are computed by the engine's exact evaluation on every point of small ranges. The number of examples is the
hypothesis profile's: few by default, many with `--hypothesis-profile=nightly`.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine.facts import congruence, interval
from rulewright.engine.interpret import evaluate
from rulewright.engine.ops import VarArg
from rulewright.engine.printing import expression
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.uop import UOp, const, make, walk

RULES = RuleSet.builtin()
POINTS = 60
"""At most so many points of an expression are tried."""

EXAMPLES = 25_000 if settings.get_current_profile_name() == "nightly" else 500
"""Of each part."""

NUMBERS = st.one_of(st.sampled_from([0, 1, 2, 3, 4, 8]), st.integers(-12, 12))
COMPARISONS = (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)
DIVISIONS = (ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD)


@st.composite
def variables(draw: st.DrawFn) -> list[UOp]:
    found = []
    for name in "ijk":
        low = draw(st.integers(-6, 6))
        found.append(make(ops.VAR, dtype=dtypes.index, arg=VarArg(name, low, low + draw(st.integers(0, 7)))))
    return found


def index(value: int) -> UOp:
    return const(dtypes.index, value)


@st.composite
def expressions(draw: st.DrawFn, names: list[UOp], depth: int = 4) -> UOp:
    """An index: sums of products mostly, divided, compared and chosen from."""
    kind = draw(st.sampled_from(["leaf", "sum", "sum", "product", "division", "division", "extremum", "where", "neg"]))
    if depth == 0 or kind == "leaf":
        return draw(st.one_of(st.sampled_from(names), NUMBERS.map(index)))
    a = draw(expressions(names, depth - 1))
    if kind == "product":
        return make(ops.MUL, a, index(draw(NUMBERS)))
    if kind == "division":
        divisor = index(draw(NUMBERS.filter(bool))) if draw(st.integers(0, 5)) else draw(expressions(names, 0))
        return make(draw(st.sampled_from(DIVISIONS)), a, divisor)
    if kind == "neg":
        return make(ops.NEG, a)
    b = draw(expressions(names, depth - 1))
    if kind == "where":
        return make(ops.WHERE, draw(conditions(names, depth - 1)), a, b)
    return make(draw(st.sampled_from([ops.MAX, ops.MIN] if kind == "extremum" else [ops.ADD, ops.ADD, ops.SUB])), a, b)


@st.composite
def conditions(draw: st.DrawFn, names: list[UOp], depth: int = 3) -> UOp:
    if depth > 0 and draw(st.integers(0, 2)) == 0:
        op = draw(st.sampled_from([ops.AND, ops.OR, ops.NOT]))
        parts = [draw(conditions(names, depth - 1)) for _ in range(1 if op is ops.NOT else 2)]
        return make(op, *parts)
    a, b = (draw(expressions(names, min(depth, 2))) for _ in range(2))
    return make(draw(st.sampled_from(COMPARISONS)), a, b)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[UOp], UOp]:
    """Variables, and an index or a condition on them, perhaps under an assumption."""
    names = draw(variables())
    value = draw(st.one_of(expressions(names), conditions(names)))
    if draw(st.integers(0, 3)) == 0:
        value = make(ops.ASSUME, draw(conditions(names, 1)), value)
    return names, value


def points(names: list[UOp]) -> list[dict[UOp, int]]:
    ranges = [range(int(interval(name)[0]), int(interval(name)[1]) + 1) for name in names]
    every = list(itertools.product(*ranges))
    return [dict(zip(names, point, strict=True)) for point in every[:: max(1, len(every) // POINTS)]]


@pytest.mark.parametrize("part", range(4))
@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_random_expressions_keep_their_value(part: int, case: tuple[list[UOp], UOp]) -> None:
    """In parts, which can run side by side."""
    names, before = case
    after, _ = RULES.rewrite(before, "simplify")
    told = f"{expression(before)}  =>  {expression(after)}"
    defined = False
    for point in points(names):
        value = evaluate(before, point)
        if value is not None:
            defined = True
            named = ", ".join(f"{expression(n)} = {v}" for n, v in point.items())
            assert evaluate(after, point) == value, f"{told} at {named}"
    again, _ = RULES.rewrite(after, "simplify")
    assert not defined or again is after, f"{told}, and once more  =>  {expression(again)}"


@settings(max_examples=EXAMPLES, deadline=None)
@given(cases())
def test_facts_contain_every_value(case: tuple[list[UOp], UOp]) -> None:
    names, root = case
    for point in points(names)[::4]:
        for node in walk(root):
            if node.op is ops.ASSUME or (value := evaluate(node, point)) is None:
                continue
            low, high = interval(node)
            assert low <= value <= high, f"{expression(node)} is {value}, outside {low}..{high}"  # type: ignore[operator]
            if node.dtype is dtypes.index:
                m, r = congruence(node)
                assert (value - r) % m == 0 if m else value == r, f"{expression(node)} is {value}, not {r} mod {m}"  # type: ignore[operator]
