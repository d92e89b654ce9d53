"""Facts hold for every value that the exact evaluator finds, and are as tight as the index rules need."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import DType, Scalar, bool_, index, int8, int16, int32, int64, uint8, uint32
from rulewright.engine.facts import congruence, interval
from rulewright.engine.interpret import evaluate
from rulewright.engine.ops import VarArg
from rulewright.engine.uop import UOp, const, make

INF = math.inf
INTEGERS = (int8, int16, int32, int64, uint8, dtypes.uint16, uint32, dtypes.uint64)


def var(name: str, low: int, high: int, dtype: DType = index) -> UOp:
    return make(ops.VAR, dtype=dtype, arg=VarArg(name, low, high))


def number(value: int, dtype: DType = index) -> UOp:
    return const(dtype, value)


# --- soundness: random expressions at random points ------------------------------------------------------------------

ARITHMETIC = tuple(op for op in ops.ELEMENTWISE if op.arity == 2 and op.evaluate and "float" not in op.name)
COMPARISONS = (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)
NUMERIC = (
    ops.ADD, ops.SUB, ops.MUL, ops.MAX, ops.MIN, ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD,
    ops.AND, ops.OR, ops.XOR, ops.SHL, ops.SHR,
)  # fmt: skip
LOGICAL = (ops.ADD, ops.MUL, ops.MAX, ops.MIN, ops.AND, ops.OR, ops.XOR)


def values_of(dtype: DType) -> st.SearchStrategy[int]:
    """Small values, edges of the type and anything between; an index is sometimes huge."""
    low, high = (-(1 << 70), 1 << 70) if dtype is index else (int(dtype.lowest), int(dtype.highest))
    small = st.integers(max(low, -9), min(high, 17))
    edges = st.sampled_from([low, low + 1, high - 1, high, min(high, 64), high // 2])
    return st.one_of(small, small, edges, st.integers(low, high))


@dataclass
class Sample:
    """An expression's nodes, operands first, and values for its variables."""

    nodes: list[UOp]
    points: list[dict[UOp, Scalar]] = field(default_factory=list)


@st.composite
def samples(draw: st.DrawFn, types: tuple[DType, ...] = (index, *INTEGERS), steps: int = 12) -> Sample:
    """A pool that starts with variables and constants of one or two types and grows by an operator a step."""
    chosen = draw(st.lists(st.sampled_from(types), min_size=1, max_size=2, unique=True))
    pool: list[UOp] = []
    variables: list[UOp] = []
    for dtype in chosen:
        for _ in range(draw(st.integers(1, 3))):
            low, high = sorted((draw(values_of(dtype)), draw(values_of(dtype))))
            variables.append(var(f"v{len(variables)}", low, high, dtype))
        pool.extend(number(draw(values_of(dtype)), dtype) for _ in range(2))
    truth = make(ops.VAR, dtype=bool_, arg="p")
    pool += [*variables, truth]
    for _ in range(draw(st.integers(1, steps))):
        pool.append(draw(one_step(pool, chosen)))
    points = []
    for _ in range(4):
        point: dict[UOp, Scalar] = {truth: draw(st.booleans())}
        for v in variables:
            assert isinstance(v.arg, VarArg)
            low, high = v.arg.low, v.arg.high
            near = st.sampled_from([low, high, min(max(0, low), high), min(low + 1, high), max(high - 1, low)])
            point[v] = draw(st.one_of(near, st.integers(low, high)))
        points.append(point)
    return Sample(pool, points)


@st.composite
def one_step(draw: st.DrawFn, pool: list[UOp], types: list[DType]) -> UOp:
    dtype = draw(st.sampled_from(types))
    numbers = st.sampled_from([n for n in pool if n.dtype is dtype])
    truths = st.sampled_from([n for n in pool if n.dtype is bool_])
    match draw(st.integers(0, 9)):
        case 0:
            return make(draw(st.sampled_from(COMPARISONS)), draw(numbers), draw(numbers))
        case 1:
            return make(draw(st.sampled_from(LOGICAL)), draw(truths), draw(truths))
        case 2:
            return make(ops.WHERE, draw(truths), draw(numbers), draw(numbers))
        case 3:
            source = draw(st.sampled_from(pool))
            return make(ops.CAST, source, dtype=draw(st.sampled_from([bool_, *types])))
        case 4:
            return make(draw(st.sampled_from([ops.NEG, ops.NOT])), draw(st.one_of(numbers, truths)))
        case 5:
            return make(ops.MULACC, draw(numbers), draw(numbers), draw(numbers))
        case _:
            return make(draw(st.sampled_from(NUMERIC)), draw(numbers), draw(numbers))


def check_holds(node: UOp, value: Scalar) -> None:
    low, high = interval(node)
    assert low <= value <= high, f"{node} = {value} outside {low}..{high}"
    m, r = congruence(node)
    assert (value - r) % m == 0 if m else value == r, f"{node} = {value} is not {r} modulo {m}"


@settings(max_examples=1000, deadline=None)
@given(samples())
def test_facts_hold_at_every_defined_point(sample: Sample) -> None:
    for point in sample.points:
        for node in sample.nodes:
            value = evaluate(node, point)
            if value is not None:
                assert not isinstance(value, tuple)
                check_holds(node, value)
