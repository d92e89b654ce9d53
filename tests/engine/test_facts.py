"""Facts hold for every value that the exact evaluator finds, and are as tight as the index rules need."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine.congruences import ANY
from rulewright.engine.dtypes import DType, Scalar, bool_, float32, index, int8, int16, int32, int64, uint8, uint32
from rulewright.engine.facts import congruence, depends_on, divides, fits, interval, ranges
from rulewright.engine.interpret import evaluate
from rulewright.engine.intervals import ALL
from rulewright.engine.ops import AxisKind, Op, VarArg
from rulewright.engine.uop import UOp, const, intern, make, range_, variable, walk

INF = math.inf
INTEGERS = (int8, int16, int32, int64, uint8, dtypes.uint16, uint32, dtypes.uint64)


def var(name: str, low: int, high: int, dtype: DType = index) -> UOp:
    return make(ops.VAR, dtype=dtype, arg=VarArg(name, low, high))


def number(value: int, dtype: DType = index) -> UOp:
    return const(dtype, value)


# --- soundness: random expressions at random points ------------------------------------------------------------------

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
    assert 0 <= r < m or m == 0
    assert (value - r) % m == 0 if m else value == r, f"{node} = {value} is not {r} modulo {m}"


@settings(max_examples=400, deadline=None)
@given(samples())
def test_facts_hold_at_every_defined_point(sample: Sample) -> None:
    for point in sample.points:
        for node in sample.nodes:
            value = evaluate(node, point)
            if value is not None:
                assert not isinstance(value, tuple)
                check_holds(node, value)


@settings(max_examples=200, deadline=None)
@given(samples(types=(int8, uint8)), st.data())
def test_facts_of_a_vector_hold_in_every_lane(sample: Sample, data: st.DataObject) -> None:
    """The same expression over vectors whose lanes are the variables at several points."""
    lanes = len(sample.points)
    wide: dict[UOp, UOp] = {}
    for node in walk(*sample.nodes):
        if node in sample.points[0]:
            kind, bounds = node.dtype, interval(node)
            copies = [var(f"{node.arg}{k}", int(bounds[0]), int(bounds[1]), kind) for k in range(lanes)]
            wide[node] = make(ops.VECTORIZE, *copies)
        elif node.op is ops.CONST:
            wide[node] = const(node.dtype.vec(lanes), node.arg)  # type: ignore[arg-type]  # a constant's value
        else:
            wide[node] = make(node.op, *[wide[s] for s in node.src], dtype=node.dtype.vec(lanes), arg=node.arg)
    point = {wide[node].src[k]: sample.points[k][node] for node in sample.points[0] for k in range(lanes)}
    for node in wide.values():
        values = evaluate(node, point)
        assert isinstance(values, tuple)
        for value in values:
            if value is not None:
                check_holds(node, value)
        lane = data.draw(st.integers(0, lanes - 1))
        if values[lane] is not None:
            check_holds(make(ops.GEP, node, arg=lane), values[lane])  # type: ignore[arg-type]  # not None


# --- examples --------------------------------------------------------------------------------------------------------

r16 = range_(0, 16)
r3 = range_(1, 3)
n = variable("n", 1, 100)
free = make(ops.VAR, dtype=index, arg="free")
i32 = make(ops.VAR, dtype=int32, arg="i32")
u8 = make(ops.VAR, dtype=uint8, arg="u8")
f = make(ops.VAR, dtype=float32, arg="f")
p = make(ops.VAR, dtype=bool_, arg="p")
BUF = make(ops.BUFFER, dtype=int32.ptr("global"), arg=ops.BufferArg(0, 64))
FLAGS = make(ops.BUFFER, dtype=bool_.ptr("global"), arg=ops.BufferArg(1, 4))
FULL = (-(1 << 31), (1 << 31) - 1)


def cast(x: UOp, to: DType) -> UOp:
    return make(ops.CAST, x, dtype=to)


def times(x: UOp, c: int) -> UOp:
    return make(ops.MUL, x, const(x.dtype, c))


def plus(x: UOp, c: int) -> UOp:
    return make(ops.ADD, x, const(x.dtype, c))


def mod(x: UOp, c: int) -> UOp:
    return make(ops.FLOORMOD, x, const(x.dtype, c))


EXAMPLES: list[tuple[str, UOp, tuple[float, float], tuple[int, int]]] = [
    ("constant", number(7), (7, 7), (0, 7)),
    ("constant of bool", const(bool_, True), (1, 1), (0, 1)),
    ("constant vector", const(int32.vec(4), 7), (7, 7), (0, 7)),
    ("constant float", const(float32, 7.0), ALL, ANY),
    ("range", r16, (0, 15), ANY),
    ("range of one step", range_(2, 1), (0, 0), (0, 0)),
    ("range without a step", range_(2, 0), (0, 0), (0, 0)),
    ("range to a variable", range_(2, n), (0, 99), ANY),
    ("thread", make(ops.SPECIAL, number(32), arg=ops.SpecialArg(ops.ThreadKind.LOCAL, 0)), (0, 31), ANY),
    ("variable", n, (1, 100), ANY),
    ("free index", free, ALL, ANY),
    ("free int32", i32, FULL, ANY),
    ("free bool", p, (0, 1), ANY),
    ("float", f, ALL, ANY),
    ("load", make(ops.LOAD, BUF, r16), FULL, ANY),
    ("load of bool", make(ops.LOAD, FLAGS, r3), (0, 1), ANY),
    ("affine", plus(times(r16, 12), 5), (5, 185), (12, 5)),
    ("sum of affines", make(ops.ADD, times(r16, 12), times(n, 8)), (8, 980), (4, 0)),
    ("product of multiples", make(ops.MUL, plus(times(r16, 4), 2), plus(times(n, 6), 3)), (18, 62 * 603), (12, 6)),
    ("nothing times no bound", times(free, 0), (0, 0), (0, 0)),
    ("one bound", make(ops.MAX, free, number(3)), (3, INF), ANY),
    ("one bound negated", make(ops.NEG, make(ops.MAX, free, number(3))), (-INF, -3), ANY),
    ("one bound divided", make(ops.FLOORDIV, make(ops.MAX, free, number(9)), number(2)), (4, INF), ANY),
    ("no bound divided by no bound", make(ops.FLOORDIV, free, make(ops.MAX, free, number(3))), ALL, ANY),
    ("bounds divided by no bound", make(ops.FLOORDIV, plus(r16, -4), make(ops.MAX, free, number(2))), (-2, 5), ANY),
    ("no bound modulo", mod(free, 12), (0, 11), ANY),
    ("no bound modulo no bound", make(ops.FLOORMOD, free, make(ops.MAX, free, number(3))), (0, INF), ANY),
    ("unbounded shift", make(ops.SHL, free, number(3)), ALL, (8, 0)),
    ("difference of no bounds", make(ops.SUB, free, make(ops.VAR, dtype=index, arg="other")), ALL, ANY),
    ("within one period", mod(plus(r3, 17), 10), (7, 9), ANY),
    ("multiples modulo", mod(times(r16, 12), 16), (0, 12), (4, 0)),
    ("shifted multiples modulo", mod(plus(times(r16, 12), 7), 16), (3, 15), (4, 3)),
    ("known remainder", mod(plus(times(free, 12), 7), 4), (3, 3), (0, 3)),
    ("multiples modulo a variable multiple", make(ops.FLOORMOD, times(free, 6), times(n, 4)), (0, 398), (2, 0)),
    ("multiples truncmod", make(ops.TRUNCMOD, times(free, 12), number(16)), (-12, 12), (4, 0)),
    ("exact division", make(ops.FLOORDIV, plus(times(free, 12), 7), number(4)), ALL, (3, 1)),
    ("exact truncating division", make(ops.TRUNCDIV, plus(times(free, 12), 8), number(-4)), ALL, (3, 1)),
    ("truncdiv of what is not negative", make(ops.TRUNCDIV, plus(times(r16, 12), 7), number(4)), (1, 46), (3, 1)),
    ("division by what may be zero", make(ops.FLOORDIV, r16, r3), (0, 15), ANY),
    ("remainder by what may be zero", make(ops.FLOORMOD, times(r16, 4), times(r3, 4)), (0, 7), ANY),
    ("decided comparison", make(ops.LT, r16, number(16)), (1, 1), (0, 1)),
    ("undecided comparison", make(ops.LT, r16, number(15)), (0, 1), ANY),
    ("comparison of floats", make(ops.EQ, f, f), (0, 1), ANY),
    ("never equal by remainder", make(ops.EQ, times(free, 4), plus(times(n, 6), 1)), (0, 0), (0, 0)),
    ("always unequal by remainder", make(ops.NE, plus(times(free, 4), 1), number(6)), (1, 1), (0, 1)),
    ("never zero by remainder", cast(plus(times(free, 4), 2), bool_), (1, 1), (0, 1)),
    ("always zero", cast(times(free, 0), bool_), (0, 0), (0, 0)),
    ("decided where", make(ops.WHERE, make(ops.GE, r16, number(0)), r3, n), (0, 2), ANY),
    ("undecided where", make(ops.WHERE, p, times(r3, 8), plus(times(r3, 12), 4)), (0, 28), (4, 0)),
    ("int32 that may wrap", plus(i32, 1), FULL, ANY),
    ("int32 multiple that may wrap", times(i32, 12), FULL, (4, 0)),
    ("int32 multiple that does not", times(var("x", 0, 99, int32), 12), (0, 1188), (12, 0)),
    ("uint8 that wraps whole", plus(var("x", 250, 255, uint8), 10), (4, 9), ANY),
    ("negated uint8", make(ops.NEG, var("x", 1, 5, uint8)), (251, 255), ANY),
    ("negated uint8 that may be zero", make(ops.NEG, var("x", 0, 5, uint8)), (0, 255), ANY),
    ("negated int8", make(ops.NEG, var("x", -128, 5, int8)), (-128, 127), ANY),
    ("divided least int8", make(ops.TRUNCDIV, var("x", -128, 5, int8), const(int8, -1)), (-128, 127), ANY),
    ("complement", make(ops.NOT, times(r16, 4)), (-61, -1), (4, 3)),
    ("complement of uint8", make(ops.NOT, var("x", 0, 3, uint8)), (252, 255), ANY),
    ("narrowing cast that fits", cast(times(r16, 4), int8), (0, 60), (4, 0)),
    ("narrowing cast that may wrap", cast(times(r16, 12), int8), (-128, 127), (4, 0)),
    ("widening cast", cast(u8, int16), (0, 255), ANY),
    ("cast of a negative to unsigned", cast(var("x", -4, -1, int8), uint32), ((1 << 32) - 4, (1 << 32) - 1), ANY),
    ("cast of bool", cast(p, int32), (0, 1), ANY),
    ("cast of float", cast(f, uint8), (0, 255), ANY),
    ("cast of float to index", cast(f, index), ALL, ANY),
    ("cast to float", cast(r16, float32), ALL, ANY),
    ("bitcast", make(ops.BITCAST, var("x", 200, 210, uint8), dtype=int8), (-56, -46), ANY),
    ("bitcast of float", make(ops.BITCAST, f, dtype=int32), FULL, ANY),
    ("low bits", make(ops.AND, i32, const(int32, 255)), (0, 255), ANY),
    ("low bits of what has no more", make(ops.AND, times(r3, 4), number(15)), (0, 8), (4, 0)),
    ("some bits", make(ops.AND, i32, const(int32, 0x50)), (0, 0x50), (16, 0)),
    ("cleared low bits", make(ops.AND, plus(r16, 5), number(-4)), (4, 20), (4, 0)),
    ("cleared low bits of uint8", make(ops.AND, var("x", 5, 22, uint8), const(uint8, 0xFC)), (4, 20), (4, 0)),
    ("bits put side by side", make(ops.OR, times(r16, 4), r3), (0, 62), ANY),
    ("set low bits", make(ops.OR, times(free, 8), number(3)), ALL, (8, 3)),
    ("set a high bit", make(ops.OR, times(r16, 4), number(8)), (8, 63), (4, 0)),
    ("flipped low bits", make(ops.XOR, times(r16, 8), number(3)), (0, 123), (8, 3)),
    ("flipped sign", make(ops.XOR, var("x", -8, -2), var("y", 0, 3)), (-8, -1), ANY),
    ("shifted left", make(ops.SHL, var("x", 1, 3, int32), var("y", 2, 4, int32)), (4, 48), ANY),
    ("shifted out", make(ops.SHL, i32, const(int32, 4)), FULL, (16, 0)),
    ("shifted too far perhaps", make(ops.SHL, var("x", 1, 3, int32), var("y", 2, 32, int32)), FULL, ANY),
    ("shifted right", make(ops.SHR, plus(times(r16, 16), -8), number(2)), (-2, 58), (4, 2)),
    ("lanes", make(ops.VECTORIZE, times(r16, 4), plus(times(r3, 6), 2)), (0, 60), (2, 0)),
    ("a lane of lanes", make(ops.GEP, make(ops.VECTORIZE, r16, plus(times(r3, 6), 2)), arg=1), (2, 14), (6, 2)),
    ("a lane", make(ops.GEP, make(ops.VAR, dtype=int32.vec(2), arg="v"), arg=1), FULL, ANY),
    ("bool sum", make(ops.ADD, p, const(bool_, True)), (1, 1), (0, 1)),
    ("bool product", make(ops.MUL, p, const(bool_, False)), (0, 0), (0, 0)),
    ("exclusive or", make(ops.XOR, const(bool_, True), const(bool_, True)), (0, 0), (0, 0)),
    ("negated bool", make(ops.NEG, make(ops.LT, r16, number(16))), (0, 0), (0, 0)),
    ("fused", make(ops.MULACC, r16, number(12), plus(times(n, 6), 1)), (7, 781), (6, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("node", "bounds", "modulo"), [e[1:] for e in EXAMPLES], ids=[e[0] for e in EXAMPLES])
def test_facts_by_example(node: UOp, bounds: tuple[float, float], modulo: tuple[int, int]) -> None:
    assert interval(node) == bounds
    assert congruence(node) == modulo


# --- reductions ------------------------------------------------------------------------------------------------------

k8 = range_(8, 8, AxisKind.REDUCE)
k0 = range_(9, variable("m", 0, 5), AxisKind.REDUCE)


def reduce_(op: Op, value: UOp, *counters: UOp) -> UOp:
    return make(ops.REDUCE, value, *counters, arg=op)


x8 = var("x", 3, 9, int8)
REDUCED = [
    ("sum", reduce_(ops.ADD, x8, k8), (24, 72)),
    ("sum over two ranges", reduce_(ops.ADD, var("x", -1, 1, int32), k8, k0), (-40, 40)),
    ("sum of an unknown number", reduce_(ops.ADD, x8, k0), (0, 45)),
    ("sum that may wrap", reduce_(ops.ADD, var("x", 3, 29, int8), k8), (-128, 127)),
    ("sum of indices", reduce_(ops.ADD, k8, k8), (0, 56)),
    ("product", reduce_(ops.MUL, x8, k8), (-128, 127)),
    ("greatest", reduce_(ops.MAX, x8, k8), (3, 9)),
    ("greatest of perhaps none", reduce_(ops.MAX, x8, k0), (-128, 9)),
    ("least of perhaps none", reduce_(ops.MIN, x8, k0), (3, 127)),
    ("greatest index of perhaps none", reduce_(ops.MAX, r16, k0), ALL),
    ("any", reduce_(ops.ADD, const(bool_, True), k8), (1, 1)),
    ("any of perhaps none", reduce_(ops.MAX, const(bool_, True), k0), (0, 1)),
    ("all", reduce_(ops.MUL, const(bool_, False), k8), (0, 0)),
    ("all of perhaps none", reduce_(ops.MIN, const(bool_, False), k0), (0, 1)),
    ("sum of lanes", make(ops.FOLD_LANES, const(int8.vec(8), 5), dtype=int8.vec(2), arg=ops.ADD), (20, 20)),
    ("product of lanes", make(ops.FOLD_LANES, const(int8.vec(8), 5), dtype=int8.vec(2), arg=ops.MUL), (-128, 127)),
    ("greatest of lanes", make(ops.FOLD_LANES, make(ops.VECTORIZE, x8, x8), dtype=int8, arg=ops.MAX), (3, 9)),
    ("accumulator", make(ops.DEFINE_ACC, const(int8, 0), k8, arg=reduce_(ops.ADD, x8, k8)), (-128, 127)),
    ("widened", make(ops.WIDEN, times(k8, 4), k8, dtype=index.vec(8)), (0, 28)),
]


@pytest.mark.parametrize(("node", "bounds"), [e[1:] for e in REDUCED], ids=[e[0] for e in REDUCED])
def test_intervals_of_reductions(node: UOp, bounds: tuple[float, float]) -> None:
    assert interval(node) == bounds


# --- ranges ----------------------------------------------------------------------------------------------------------


def accumulator(value: UOp, *counters: UOp) -> UOp:
    return make(ops.DEFINE_ACC, const(value.dtype, 0), *counters, arg=reduce_(ops.ADD, value, *counters))


def load(*at: UOp) -> UOp:
    place = at[0]
    for more in at[1:]:
        place = make(ops.ADD, place, more)
    return make(ops.LOAD, BUF, place)


def bits(*axes: int) -> int:
    return sum(1 << axis for axis in axes)


lane = range_(4, 4, AxisKind.UPCAST)
triangle = range_(5, plus(r16, 1), AxisKind.REDUCE)  # a loop whose end depends on another
ACC = accumulator(load(r16, k8), k8)
LOCAL = make(ops.LOCAL, dtype=int32.ptr("local"), arg=ops.BufferArg(0, 64))
WRITTEN = make(ops.STORE, LOCAL, r3, load(r3, r16))

VARYING = [
    ("constant", number(3), bits()),
    ("range", r16, bits(0)),
    ("range to a range", triangle, bits(0, 5)),
    ("thread", make(ops.SPECIAL, number(8), arg=ops.SpecialArg(ops.ThreadKind.GROUP, 0)), bits()),
    ("load", load(r16, r3, n), bits(0, 1)),
    ("buffer", BUF, bits()),
    ("store", make(ops.STORE, BUF, r16, load(r3)), bits(0, 1)),
    ("reduce", reduce_(ops.ADD, load(r16, k8), k8), bits(0)),
    ("reduce over a range to a range", reduce_(ops.ADD, load(triangle), triangle), bits(0)),
    ("reduce over both", reduce_(ops.ADD, load(triangle), r16, triangle), bits()),
    ("accumulator", ACC, bits(8)),
    ("step of an accumulator", make(ops.ADD, ACC, load(r16, k8)), bits(0, 8)),
    ("phi", make(ops.PHI, ACC, make(ops.ADD, ACC, load(r16, k8))), bits(0)),
    ("phi over a range to a range", make(ops.PHI, accumulator(load(triangle), triangle), load(triangle)), bits(0)),
    ("phi of what is no accumulator any more", make(ops.PHI, const(int32, 0), load(r16)), bits(0)),
    ("widened", make(ops.WIDEN, load(r16, lane), lane, dtype=int32.vec(4)), bits(0)),
    ("barrier", make(ops.BARRIER, WRITTEN), bits(0)),
    ("buffer after a barrier", make(ops.AFTER, LOCAL, make(ops.BARRIER, WRITTEN)), bits(0)),
    ("barrier of widened stores",
     make(ops.BARRIER, make(ops.WIDEN, make(ops.STORE, LOCAL, r3, load(lane, r16)), lane)), bits(0)),
    ("sink", make(ops.SINK, make(ops.STORE, BUF, r16, load(r3))), bits()),
]  # fmt: skip


@pytest.mark.parametrize(("node", "mask"), [e[1:] for e in VARYING], ids=[e[0] for e in VARYING])
def test_ranges(node: UOp, mask: int) -> None:
    assert ranges(node) == mask


# --- predicates ------------------------------------------------------------------------------------------------------


def test_divides() -> None:
    x = plus(times(free, 12), 8)
    assert [c for c in range(-12, 13) if divides(c, x)] == [-4, -2, -1, 1, 2, 4]
    assert divides(5, number(0))
    assert divides(0, number(0))
    assert not divides(0, x)
    assert not divides(2, f)
    assert divides(4, make(ops.VECTORIZE, times(free, 12), times(r3, 8)))


def test_fits() -> None:
    x = plus(times(r16, 12), -100)  # -100..80
    assert fits(x, int8)
    assert not fits(plus(x, 48), int8)
    assert fits(plus(x, 47), int8)
    assert not fits(x, uint8)
    assert fits(plus(x, 100), uint8)
    assert fits(free, index)
    assert not fits(free, int64)
    assert not fits(i32, uint32)
    assert fits(i32, int64)
    assert fits(x, int8.vec(4))
    assert fits(plus(r3, -1), bool_) is False
    assert fits(range_(3, 2), bool_)


@pytest.mark.parametrize(
    ("dtype", "whole"), [("float16", 2048), ("bfloat16", 256), ("float32", 1 << 24), ("float64", 1 << 53)]
)
def test_integers_fit_a_float_as_far_as_its_mantissa_goes(dtype: str, whole: int) -> None:
    to = dtypes.by_name(dtype)
    assert fits(var("x", -whole, whole), to)
    assert not fits(var("x", 0, whole + 1), to)
    assert to.canonical(whole) == whole
    assert to.canonical(whole + 1) != whole + 1


def test_depends_on() -> None:
    assert depends_on(load(r16, k8), k8)
    assert not depends_on(reduce_(ops.ADD, load(r16, k8), k8), k8)
    assert not depends_on(load(r16), n)


# --- depth and growth ------------------------------------------------------------------------------------------------


def test_facts_of_a_chain_of_a_million() -> None:
    node, step = times(r16, 4), number(4)
    for _ in range(1_000_000):
        node = intern(ops.ADD, index, (node, step))
    assert congruence(node) == (4, 0)
    assert interval(node) == (4_000_000, 4_000_060)
    assert ranges(node) == bits(0)


def test_a_deep_expression_of_comparisons_and_remainders() -> None:
    """Here bounds ask for remainders, which ask for bounds."""
    node, twelve = times(r16, 12), number(12)
    for k in range(20_000):
        rest = intern(ops.FLOORMOD, index, (node, number(8 + 4 * (k % 3))))
        same = intern(ops.EQ, bool_, (rest, number(3)))
        node = intern(ops.WHERE, index, (same, rest, intern(ops.ADD, index, (node, twelve))))
    assert interval(node) == (240_000, 240_180)


def test_bounds_and_moduli_of_long_products_stay_short() -> None:
    node, total = plus(times(r16, 4), 4), r16
    for _ in range(20_000):
        node = intern(ops.MUL, index, (node, number(6)))
        total = intern(ops.ADD, index, (total, total))
    assert interval(node)[1] == interval(total)[1] == INF
    assert congruence(node) == (1 << 128, 0)
    assert interval(node)[0] == 1 << 128
    assert interval(number(10**50)) == (1 << 128, INF)


def test_facts_are_kept() -> None:
    node = plus(times(r16, 4), 1)
    assert interval(node) is interval(node)
    assert congruence(node) is congruence(node)
