"""Intervals are no wider than the hull of all results, where the operator allows to say so exactly."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import ops
from rulewright.engine.dtypes import DType, index, int8, uint8
from rulewright.engine.facts import interval
from rulewright.engine.interpret import evaluate
from rulewright.engine.intervals import ALL
from rulewright.engine.ops import Op, VarArg
from rulewright.engine.uop import UOp, const, make

COMPARISONS = (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)


def var(name: str, low: int, high: int, dtype: DType = index) -> UOp:
    return make(ops.VAR, dtype=dtype, arg=VarArg(name, low, high))


ALWAYS_TIGHT = (ops.ADD, ops.SUB, ops.MAX, ops.MIN, *COMPARISONS)
TIGHT_IN_INTEGERS = (ops.MUL, ops.FLOORDIV, ops.TRUNCDIV, ops.SHL, ops.SHR)
TIGHT_BY_A_CONSTANT = (ops.FLOORMOD, ops.TRUNCMOD)


def hull_of_results(node: UOp, a: UOp, b: UOp) -> tuple[int, int] | None:
    """Found by trying all values of two variables; None where none is, or a shift is not, defined."""
    found = []
    for x in range(int(interval(a)[0]), int(interval(a)[1]) + 1):
        for y in range(int(interval(b)[0]), int(interval(b)[1]) + 1):
            value = evaluate(node, {a: x, b: y})
            if value is None and node.op in (ops.SHL, ops.SHR):
                return None
            if value is not None:
                found.append(value)
    return (min(found), max(found)) if found else None  # type: ignore[return-value]  # scalars


small = st.tuples(st.integers(-12, 12), st.integers(0, 5)).map(lambda t: (t[0], t[0] + t[1]))


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(ALWAYS_TIGHT + TIGHT_IN_INTEGERS), small, small)
def test_intervals_of_indices_are_tight(op: Op, left: tuple[int, int], right: tuple[int, int]) -> None:
    a, b = var("a", *left), var("b", *right)
    node = make(op, a, b)
    expected = hull_of_results(node, a, b)
    assert interval(node) == (expected or ALL)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(TIGHT_BY_A_CONSTANT), small, st.integers(-12, 12))
def test_intervals_of_remainders_by_a_constant_are_tight(op: Op, left: tuple[int, int], divisor: int) -> None:
    a, b = var("a", *left), var("b", divisor, divisor)
    expected = hull_of_results(make(op, a, b), a, b)
    node = make(op, a, const(index, divisor))
    if op is ops.TRUNCMOD and left[0] < 0 < left[1]:  # a period on either side
        low, high = interval(node)
        assert expected is None or (low <= expected[0] and expected[1] <= high)
    else:
        assert interval(node) == (expected or ALL)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from((ops.ADD, ops.SUB)), st.sampled_from((int8, uint8)), st.data())
def test_wrapping_sums_are_tight(op: Op, dtype: DType, data: st.DataObject) -> None:
    spans = [sorted((data.draw(near_edges(dtype)), data.draw(near_edges(dtype)))) for _ in range(2)]
    a, b = var("a", spans[0][0], spans[0][1], dtype), var("b", spans[1][0], spans[1][1], dtype)
    if all(interval(v)[1] - interval(v)[0] < 12 for v in (a, b)):
        node = make(op, a, b)
        assert interval(node) == hull_of_results(node, a, b)


def near_edges(dtype: DType) -> st.SearchStrategy[int]:
    low, high = int(dtype.lowest), int(dtype.highest)
    return st.one_of(st.integers(low, low + 5), st.integers(high - 5, high), st.integers(max(low, -3), 3))


@settings(max_examples=200, deadline=None)
@given(small, st.integers(0, 4))
def test_masks_of_low_and_of_high_bits_are_tight(left: tuple[int, int], bits: int) -> None:
    for mask in ((1 << bits) - 1, -(1 << bits)):
        a, b = var("a", *left), var("b", mask, mask)
        expected = hull_of_results(make(ops.AND, a, b), a, b)
        assert (
            interval(make(ops.AND, a, const(index, mask))) == interval(make(ops.AND, const(index, mask), a)) == expected
        )
