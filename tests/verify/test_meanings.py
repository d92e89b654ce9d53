"""What an operator means to the solver is what it means to the reference: each on random and on edge values."""

from __future__ import annotations

import math

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import DType, Scalar
from rulewright.engine.evaluate import same_value
from rulewright.engine.interpret import apply
from rulewright.engine.ops import Op
from rulewright.verify.proofs.division import Division
from rulewright.verify.proofs.domain import Symbolic
from rulewright.verify.proofs.solver import scalar_of

TYPES = (
    dtypes.bool_,
    dtypes.int8,
    dtypes.uint8,
    dtypes.int32,
    dtypes.uint64,
    dtypes.index,
    dtypes.float16,
    dtypes.float32,
)
OPERATORS = tuple(op for op in ops.ELEMENTWISE if op not in (ops.WHERE, ops.CAST, ops.BITCAST))
ONLY_FUNCTIONS = {ops.EXP2, ops.LOG2, ops.SIN, ops.MULACC}
"""Of these the solver knows no more than that they are functions, or they have two results."""


def values(dtype: DType) -> st.SearchStrategy[Scalar]:
    if dtype.kind == "bool":
        return st.booleans()
    if dtype.is_float:
        edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, 6e-8, 65504.0, 3.25, -7.5]
        return st.sampled_from(edges) | st.floats(-100, 100, width=16)
    if dtype.kind == "index":
        return st.sampled_from([0, 1, -1, 7, -12, 1 << 40]) | st.integers(-50, 50)
    low, high = int(dtype.lowest), int(dtype.highest)
    return (
        st.sampled_from([0, 1, low, high, high - 1, low + 1])
        | st.integers(low, high)
        | st.integers(0, 70).filter(lambda value: low <= value <= high)
    )


def solved(op: Op, source: DType, target: DType, operands: list[Scalar]) -> Scalar | None:
    """The solver's value, None where it is undefined."""
    domain = Symbolic(Division(native=True))
    result = domain.apply(op, source, target, [domain.constant(source, value) for value in operands])
    if not z3.is_true(z3.simplify(result.defined)):
        return None
    usual = [(choice, z3.BoolVal(False)) for choice in domain.choices.values()]
    return scalar_of(z3.simplify(z3.substitute(result.term, *usual)), target)


def cases() -> list[tuple[Op, DType]]:
    found = []
    for op in OPERATORS:
        for dtype in TYPES:
            bitwise_index = dtype.kind == "index" and op in (ops.AND, ops.OR, ops.XOR)
            if op in ONLY_FUNCTIONS and dtype.is_float or bitwise_index:
                continue
            try:
                op.typing(None, (dtype,) * (op.arity or 1), None)
            except Exception:  # noqa: BLE001 - a type rule says no in its own way
                continue
            found.append((op, dtype))
    return found


@pytest.mark.parametrize(("op", "dtype"), cases(), ids=str)
@settings(max_examples=8, derandomize=True)
@given(st.data())
def test_the_solver_computes_what_the_reference_does(op: Op, dtype: DType, data: st.DataObject) -> None:
    operands = [dtype.canonical(data.draw(values(dtype))) for _ in range(op.arity or 1)]
    target = dtypes.bool_ if op.negated is not None else dtype
    expected = apply(op, dtype, target, *operands)
    got = solved(op, dtype, target, operands)
    if expected is None or got is None:
        assert expected is got
    elif not (op in (ops.MAX, ops.MIN) and expected == got == 0):  # which zero an extremum gives is not said
        assert same_value(expected, got)


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize("target", TYPES, ids=str)
@settings(max_examples=4, derandomize=True)
@given(st.data())
def test_the_solver_converts_as_the_reference_does(source: DType, target: DType, data: st.DataObject) -> None:
    if "index" in (source.kind, target.kind) and "float" in (source.kind, target.kind):
        return  # only known to be a function
    value = source.canonical(data.draw(values(source)))
    expected, got = apply(ops.CAST, source, target, value), solved(ops.CAST, source, target, [value])
    if expected is None or got is None:
        assert expected is got
    else:
        assert same_value(expected, got)
