"""Random expressions through all simplifying rules: the value stays, and simplifying twice is simplifying once."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import DType
from rulewright.engine.interpret import evaluate
from rulewright.engine.ops import VarArg
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.uop import UOp, const, make, walk

ARITHMETIC = [ops.ADD, ops.SUB, ops.MUL, ops.FLOORDIV, ops.FLOORMOD, ops.MAX, ops.MIN]
RELATIONS = [ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE]


@st.composite
def expressions(draw: st.DrawFn, dtype: DType) -> UOp:
    """An expression over three bounded variables, built from the leaves up."""
    bounds = [(0, 7), (-5, 9), (3, 3 + draw(st.integers(0, 40)))]
    if dtype is dtypes.uint8:
        bounds = [(0, 7), (0, 255), (3, 43)]
    pool = [make(ops.VAR, dtype=dtype, arg=VarArg(name, *b)) for name, b in zip("xyz", bounds, strict=True)]
    pool += [const(dtype, draw(st.sampled_from([-8, -3, -1, 0, 1, 2, 3, 4, 6, 8, 12, 16, 127, 300]))) for _ in range(4)]
    for _ in range(draw(st.integers(1, 9))):
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool[-5:]))
        if draw(st.booleans()) and draw(st.booleans()):
            condition = make(draw(st.sampled_from(RELATIONS)), a, b)
            pool.append(make(ops.WHERE, condition, draw(st.sampled_from(pool)), draw(st.sampled_from(pool))))
        else:
            pool.append(make(draw(st.sampled_from(ARITHMETIC)), a, b))
    return pool[-1]


def check(expression: UOp, data: st.DataObject) -> None:
    rules = RuleSet.builtin()
    simplified, _ = rules.rewrite(expression, "simplify")
    assert rules.rewrite(simplified, "simplify")[0] is simplified
    leaves = [node for node in walk(expression) if node.op is ops.VAR]
    for _ in range(8):
        values = {}
        for leaf in leaves:
            assert isinstance(leaf.arg, VarArg)
            values[leaf] = data.draw(st.integers(leaf.arg.low, leaf.arg.high))
        before = evaluate(expression, values)
        if before is not None:
            after = evaluate(simplified, values)
            assert before == after, f"{expression!r} is {before} at {values}, but simplified {simplified!r} is {after}"


@settings(max_examples=300, deadline=None)
@given(expressions(dtypes.index), st.data())
def test_index_expressions_keep_their_value(expression: UOp, data: st.DataObject) -> None:
    check(expression, data)


@settings(max_examples=150, deadline=None)
@given(expressions(dtypes.int8), st.data())
def test_signed_integers_keep_their_wrapped_value(expression: UOp, data: st.DataObject) -> None:
    check(expression, data)


@settings(max_examples=150, deadline=None)
@given(expressions(dtypes.uint8), st.data())
def test_unsigned_integers_keep_their_wrapped_value(expression: UOp, data: st.DataObject) -> None:
    check(expression, data)


def _guarded_values() -> list[tuple[UOp, UOp]]:
    """(condition, a value that is 0 where it does not hold) with an operator that may have no value there."""
    y, x = (make(ops.VAR, dtype=dtypes.int32, arg=VarArg(name, low, high)) for name, low, high in
            (("y", 0, 3), ("x", 5, 9)))  # fmt: skip
    zero, big = const(dtypes.int32, 0), make(ops.MUL, y, const(dtypes.int32, 16))
    positive, small = make(ops.NE, y, zero), make(ops.LT, y, const(dtypes.int32, 2))
    choices = [(positive, make(op, x, y)) for op in (ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD)]
    choices += [(small, make(op, x, big)) for op in (ops.SHL, ops.SHR)]
    return [(condition, make(ops.WHERE, condition, value, zero)) for condition, value in choices]


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("form", ["p & q", "q & p", "~p | q", "q | ~p"])
def test_what_is_known_beside_a_condition_frees_no_operator_from_it(number: int, form: str) -> None:
    """`(where(y != 0, x // y, 0) < 3) & (y != 0)` has a value for y = 0, and keeps it."""
    condition, value = _guarded_values()[number]
    q = make(ops.LT, value, const(dtypes.int32, 3))
    op = ops.AND if "&" in form else ops.OR
    p = condition if op is ops.AND else make(ops.NOT, condition)
    expression = make(op, p, q) if form.index("p") < form.index("q") else make(op, q, p)
    simplified, _ = RuleSet.builtin().rewrite(expression, "simplify")
    leaves = [node for node in walk(expression) if node.op is ops.VAR]
    bounds = [leaf.arg for leaf in leaves if isinstance(leaf.arg, VarArg)]
    for numbers in product(*[range(one.low, one.high + 1) for one in bounds]):
        values = dict(zip(leaves, numbers, strict=True))
        before = evaluate(expression, values)
        assert before is not None
        assert evaluate(simplified, values) == before, f"{expression!r} -> {simplified!r} at {values}"
