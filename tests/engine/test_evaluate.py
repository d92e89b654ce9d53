"""The exact meanings of operators agree with NumPy and with fractions, edge values included."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine import evaluate as ev
from rulewright.engine.dtypes import (
    DATA_TYPES,
    DType,
    Scalar,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    index,
    int8,
    int16,
    int32,
    int64,
    round_float,
    uint8,
    uint16,
    uint32,
)
from rulewright.engine.errors import GraphError
from rulewright.engine.ops import Op

INTEGERS = tuple(t for t in DATA_TYPES if t.is_int)
FLOATS = (float16, bfloat16, float32, float64)
NUMPY_FLOATS = (float16, float32, float64)
NAN, INF = math.nan, math.inf


def result(op: Op, dtype: DType, *operands: Scalar) -> Scalar | None:
    """The value of an operator whose result has its operands' type."""
    assert op.evaluate is not None
    exact = op.evaluate(dtype, *operands)
    return None if exact is None else dtype.canonical(exact)


def edges(dtype: DType) -> list[Scalar]:
    if dtype.kind == "bool":
        return [False, True]
    if dtype.is_float:
        some = [0.0, 1.0, 0.1, 1.5, 2.5, 3.0, 1e-3, 1e30, 5e-324, 2.0**-130, 2.0**-24, 65504.0, INF]
        return [round_float(sign * value, dtype) for value in some for sign in (1.0, -1.0)] + [NAN]
    low, high = int(dtype.lowest), int(dtype.highest)
    return sorted({low, low + 1, 0, 1, 2, 3, 7, high // 2, high - 1, high} | {v for v in (-1, -2, -3, -7) if v >= low})


def same(a: object, b: object) -> bool:
    return isinstance(a, bool | int | float) and isinstance(b, bool | int | float) and ev.same_value(a, b)


# --- integers --------------------------------------------------------------------------------------------------------

EXACTLY_NUMPYS = {
    ops.ADD: np.add, ops.SUB: np.subtract, ops.MUL: np.multiply, ops.MAX: np.maximum, ops.MIN: np.minimum,
    ops.AND: np.bitwise_and, ops.OR: np.bitwise_or, ops.XOR: np.bitwise_xor,
    ops.FLOORDIV: np.floor_divide, ops.FLOORMOD: np.remainder, ops.TRUNCMOD: np.fmod,
    ops.SHL: np.left_shift, ops.SHR: np.right_shift,
}  # fmt: skip
COMPARED = {
    ops.LT: np.less, ops.LE: np.less_equal, ops.GT: np.greater, ops.GE: np.greater_equal,
    ops.EQ: np.equal, ops.NE: np.not_equal,
}  # fmt: skip


def is_defined(op: Op, dtype: DType, b: int) -> bool:
    if op in (ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD):
        return b != 0
    return op not in (ops.SHL, ops.SHR) or 0 <= b < dtype.bits


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@pytest.mark.parametrize("op", EXACTLY_NUMPYS, ids=repr)
def test_integers_agree_with_numpy(op: Op, dtype: DType) -> None:
    for a, b in itertools.product(edges(dtype), repeat=2):
        if not is_defined(op, dtype, int(b)):
            assert result(op, dtype, a, b) is None, (a, b)
            continue
        with np.errstate(all="ignore"):
            expected = EXACTLY_NUMPYS[op](np.array(a, dtype.name), np.array(b, dtype.name))
        assert result(op, dtype, a, b) == int(expected), (a, b)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_unary_integers_agree_with_numpy(dtype: DType) -> None:
    for a in edges(dtype):
        with np.errstate(all="ignore"):
            assert result(ops.NEG, dtype, a) == int(np.negative(np.array(a, dtype.name)))
            assert result(ops.NOT, dtype, a) == int(np.invert(np.array(a, dtype.name)))


@given(st.integers(-(1 << 70), 1 << 70), st.integers(-(1 << 40), 1 << 40).filter(bool))
@example(-7, 2)
@example(7, -2)
@example(-(1 << 63), -1)
def test_the_divisions_of_mathematical_integers(a: int, b: int) -> None:
    exact = Fraction(a, b)
    assert ev.floordiv(index, a, b) == math.floor(exact)
    assert ev.truncdiv(index, a, b) == math.trunc(exact)
    assert ev.floormod(index, a, b) == a - b * math.floor(exact)
    assert ev.truncmod(index, a, b) == a - b * math.trunc(exact)


def test_the_least_integer_divided_by_minus_one_wraps() -> None:
    for dtype in (int8, int16, int32, int64):
        assert result(ops.TRUNCDIV, dtype, dtype.lowest, -1) == dtype.lowest
        assert result(ops.FLOORDIV, dtype, dtype.lowest, -1) == dtype.lowest
        assert result(ops.TRUNCMOD, dtype, dtype.lowest, -1) == 0


def test_division_by_zero_is_undefined_for_an_index_too() -> None:
    for divide in (ev.floordiv, ev.floormod, ev.truncdiv, ev.truncmod):
        assert divide(index, 5, 0) is None


def test_shifts() -> None:
    assert result(ops.SHR, int8, -128, 7) == -1  # arithmetic
    assert result(ops.SHR, uint8, 128, 7) == 1  # logical
    assert result(ops.SHL, int8, 3, 7) == -128
    assert result(ops.SHL, index, 1, 63) == 1 << 63
    for amount in (-1, 8):
        assert result(ops.SHL, int8, 1, amount) is None
        assert result(ops.SHR, int8, 1, amount) is None
    assert result(ops.SHR, index, 1, 64) is None


@given(*[st.integers(-(1 << 31), (1 << 31) - 1)] * 3)
def test_mulacc_of_integers_wraps_like_a_product_and_a_sum(a: int, b: int, c: int) -> None:
    assert result(ops.MULACC, int32, a, b, c) == int32.canonical(a * b + c)


# --- bool ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "table"),
    [(ops.ADD, "0111"), (ops.OR, "0111"), (ops.MAX, "0111"), (ops.MUL, "0001"), (ops.AND, "0001"), (ops.MIN, "0001"),
     (ops.XOR, "0110"), (ops.LT, "0100"), (ops.LE, "1101"), (ops.GT, "0010"), (ops.GE, "1011"), (ops.EQ, "1001"),
     (ops.NE, "0110")],
    ids=lambda x: x.name if isinstance(x, Op) else x,
)  # fmt: skip
def test_truth_tables(op: Op, table: str) -> None:
    cases = itertools.product([False, True], repeat=2)
    assert [result(op, bool_, a, b) for a, b in cases] == [digit == "1" for digit in table]


def test_negation_of_a_bool() -> None:
    for op in (ops.NEG, ops.NOT):
        assert [result(op, bool_, a) for a in (False, True)] == [True, False]


# --- floats ----------------------------------------------------------------------------------------------------------

FLOAT_ARITHMETIC = {ops.ADD: np.add, ops.SUB: np.subtract, ops.MUL: np.multiply, ops.DIV: np.divide}


@pytest.mark.parametrize("dtype", NUMPY_FLOATS, ids=repr)
@pytest.mark.parametrize("op", FLOAT_ARITHMETIC, ids=repr)
def test_float_arithmetic_agrees_with_numpy_to_the_bit(op: Op, dtype: DType) -> None:
    for a, b in itertools.product(edges(dtype), repeat=2):
        with np.errstate(all="ignore"):
            expected = float(FLOAT_ARITHMETIC[op](np.array(a, dtype.name), np.array(b, dtype.name)))
        assert same(result(op, dtype, a, b), expected), (a, b)


@pytest.mark.parametrize("op", FLOAT_ARITHMETIC, ids=repr)
@given(a=st.floats(width=32), b=st.floats(width=32))
def test_float32_arithmetic_agrees_with_numpy_at_random(op: Op, a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        assert same(result(op, float32, a, b), float(FLOAT_ARITHMETIC[op](np.float32(a), np.float32(b))))


@given(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30))
def test_bfloat16_arithmetic_gives_the_nearest_value(a: float, b: float) -> None:
    x, y = round_float(a, bfloat16), round_float(b, bfloat16)
    for op, exact in ((ops.ADD, Fraction(x) + Fraction(y)), (ops.MUL, Fraction(x) * Fraction(y))):
        found = result(op, bfloat16, x, y)
        assert isinstance(found, float)
        if math.isinf(found):
            assert abs(exact) >= (2 - Fraction(1, 256)) * 2**127
            continue
        for neighbour in bfloat16_neighbours(found):
            assert abs(exact - Fraction(found)) <= abs(exact - Fraction(neighbour))


def bfloat16_neighbours(value: float) -> list[float]:
    pattern = ev.bitcast(bfloat16, abs(value), uint16)
    assert isinstance(pattern, int)
    around = [ev.bitcast(uint16, pattern + step, bfloat16) for step in (-1, 1) if pattern + step >= 0]
    return [math.copysign(n, value) for n in around if isinstance(n, float) and math.isfinite(n)]


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_max_and_min_pass_on_nan(dtype: DType) -> None:
    for a, b in itertools.product(edges(dtype), repeat=2):
        greater, less = result(ops.MAX, dtype, a, b), result(ops.MIN, dtype, a, b)
        assert greater is not None
        assert less is not None
        assert (greater == np.maximum(a, b) and less == np.minimum(a, b)) or (
            math.isnan(greater) and math.isnan(less) and (math.isnan(a) or math.isnan(b))
        )


@pytest.mark.parametrize("op", COMPARED, ids=repr)
@pytest.mark.parametrize("dtype", [float32, int32, uint8], ids=repr)
def test_comparisons_agree_with_numpy(op: Op, dtype: DType) -> None:
    for a, b in itertools.product(edges(dtype), repeat=2):
        assert op.evaluate is not None
        assert op.evaluate(dtype, a, b) is bool(COMPARED[op](np.array(a, dtype.name), np.array(b, dtype.name)))


def test_negation_keeps_the_sign_of_zero() -> None:
    assert same(result(ops.NEG, float32, 0.0), -0.0)
    assert same(result(ops.NEG, float32, -0.0), 0.0)


ROUNDING = [(ops.FLOOR, np.floor), (ops.CEIL, np.ceil), (ops.TRUNC, np.trunc), (ops.ROUND, np.rint)]


@pytest.mark.parametrize(("op", "numpys"), ROUNDING, ids=repr)
@given(a=st.floats())
@example(a=-0.5)
@example(a=0.5)
@example(a=2.5)
@example(a=-0.0)
@example(a=1e300)
def test_rounding_to_integers_agrees_with_numpy(op: Op, numpys: np.ufunc, a: float) -> None:
    assert same(result(op, float64, a), float(numpys(a)))


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [(ev.exp2, 2000.0, INF), (ev.exp2, -INF, 0.0), (ev.exp2, -2000.0, 0.0), (ev.exp2, INF, INF), (ev.exp2, 3.0, 8.0),
     (ev.exp2, NAN, NAN), (ev.log2, 0.0, -INF), (ev.log2, -0.0, -INF), (ev.log2, -1.0, NAN), (ev.log2, -INF, NAN),
     (ev.log2, INF, INF), (ev.log2, NAN, NAN), (ev.log2, 8.0, 3.0), (ev.log2, 5e-324, -1074.0), (ev.sqrt, -0.0, -0.0),
     (ev.sqrt, -1.0, NAN), (ev.sqrt, INF, INF), (ev.sqrt, NAN, NAN), (ev.sqrt, 9.0, 3.0), (ev.sin, INF, NAN),
     (ev.sin, -INF, NAN), (ev.sin, NAN, NAN), (ev.sin, -0.0, -0.0), (ev.recip, 0.0, INF), (ev.recip, -0.0, -INF),
     (ev.recip, -INF, -0.0), (ev.recip, 4.0, 0.25)],
)  # fmt: skip
def test_functions_at_their_edges(function: ev.Evaluator, at: float, expected: float) -> None:
    assert same(function(float64, at), expected)


@given(st.floats(min_value=0, width=32))
def test_a_float32_square_root_is_exact(a: float) -> None:
    assert result(ops.SQRT, float32, a) == float(np.sqrt(np.float32(a)))


def test_where_takes_one_side() -> None:
    assert ev.where(float32, True, 1.0, NAN) == 1.0
    assert ev.where(float32, False, NAN, 1.0) == 1.0


# --- conversions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [*INTEGERS, bool_, *NUMPY_FLOATS], ids=repr)
@pytest.mark.parametrize("source", [*INTEGERS, bool_], ids=repr)
def test_casts_of_integers_agree_with_numpy(source: DType, to: DType) -> None:
    for a in edges(source):
        with np.errstate(all="ignore"):
            expected = np.array(a, source.name).astype(to.name).item()
        value = ev.cast(source, a, to)
        assert same(value, expected), a
        assert type(value) is type(expected)


@pytest.mark.parametrize("to", [bool_, *NUMPY_FLOATS], ids=repr)
@pytest.mark.parametrize("source", NUMPY_FLOATS, ids=repr)
def test_casts_of_floats_agree_with_numpy(source: DType, to: DType) -> None:
    for a in edges(source):
        with np.errstate(all="ignore"):
            expected = np.array(a, source.name).astype(to.name).item()
        assert same(ev.cast(source, a, to), expected), a


@given(st.floats(), st.sampled_from(INTEGERS))
@example(255.5, uint8)
@example(256.0, uint8)
@example(-0.9, uint8)
@example(-1.0, uint8)
@example(2.0**63, int64)
@example(-(2.0**63), int64)
@example(NAN, int32)
def test_a_float_becomes_an_integer_only_in_its_range(a: float, to: DType) -> None:
    value = ev.cast(float64, a, to)
    if math.isfinite(a) and to.lowest <= math.trunc(a) <= to.highest:
        assert value == math.trunc(a)
    else:
        assert value is None


@given(st.integers(-(1 << 200), 1 << 200))
def test_an_index_wraps_where_it_becomes_a_data_integer(a: int) -> None:
    assert ev.cast(index, a, int32) == int32.canonical(a)
    assert ev.cast(index, a, uint32) == a % (1 << 32)
    assert ev.cast(index, a, index) == a


def test_an_index_beyond_all_floats_becomes_infinite() -> None:
    assert ev.cast(index, 10**400, float64) == INF
    assert ev.cast(index, -(10**400), float16) == -INF


SAME_WIDTH = [(s, t) for s in DATA_TYPES for t in DATA_TYPES if s.bits == t.bits and t is not bool_]


@pytest.mark.parametrize(("source", "to"), SAME_WIDTH, ids=repr)
def test_bitcasts_keep_the_bits(source: DType, to: DType) -> None:
    for a in edges(source):
        if math.isnan(a):
            assert ev.bitcast(source, a, to) is None
            continue
        value = ev.bitcast(source, a, to)
        if value is None:  # its bits are a NaN there
            assert to.is_float
            continue
        assert same(ev.bitcast(to, value, source) if source is not bool_ else bool(value), a)
        if bfloat16 not in (source, to):
            assert same(value, np.array(a, source.name).view(to.name).item())


def test_bitcasts_by_example() -> None:
    assert ev.bitcast(float32, 1.0, uint32) == 0x3F800000
    assert ev.bitcast(bfloat16, 1.0, uint16) == 0x3F80
    assert ev.bitcast(bfloat16.vec(4), 1.0, uint16.vec(4)) == 0x3F80
    assert ev.bitcast(uint16, 0x3F80, bfloat16) == 1.0
    assert ev.bitcast(uint16, 0x3C00, float16) == 1.0
    assert ev.bitcast(int8, -1, uint8) == 255
    assert ev.bitcast(uint16, 0x7FC0, bfloat16) is None  # a NaN would lose its payload
    assert ev.bitcast(int32, 1, int64) is None
    assert ev.bitcast(uint8, 2, bool_) is None  # no bool has these bits


# --- the operators' algebra ------------------------------------------------------------------------------------------

KINDS = (bool_, int8, uint16, float32, index)


def operands(dtype: DType) -> list[Scalar]:
    return [-5, 0, 3, 1 << 80] if dtype is index else edges(dtype)


def admits(op: Op, dtype: DType) -> bool:
    try:
        op.typing(None, (dtype,) * (op.arity or 1), None)
    except GraphError:
        return False
    return True


BINARY = [(op, t) for op in ops.ELEMENTWISE for t in KINDS if op.arity == 2 and op.evaluate and admits(op, t)]


@pytest.mark.parametrize(("op", "dtype"), BINARY, ids=repr)
def test_declared_facts_hold(op: Op, dtype: DType) -> None:
    identity = op.identity(dtype) if op.identity else None
    zero = op.zero(dtype) if op.zero and not dtype.is_float else None
    for a in operands(dtype):
        if identity is not None and identity not in (INF, -INF):
            assert same(result(op, dtype, a, identity), a), a
        if zero is not None and zero not in (INF, -INF):
            assert result(op, dtype, a, zero) == zero, a
        if op.idempotent:
            assert same(result(op, dtype, a, a), a), a


@pytest.mark.parametrize(("op", "dtype"), [(o, t) for o, t in BINARY if o.commutative], ids=repr)
def test_declared_commutative_operators_commute(op: Op, dtype: DType) -> None:
    for a, b in itertools.product(operands(dtype), repeat=2):
        forward, backward = result(op, dtype, a, b), result(op, dtype, b, a)
        zeros = op in (ops.MAX, ops.MIN) and a == b == 0  # which zero is unspecified
        assert zeros or same(forward, backward), (a, b)


@pytest.mark.parametrize(("op", "dtype"), [(o, t) for o, t in BINARY if o.associative and not t.is_float], ids=repr)
def test_declared_associative_operators_associate(op: Op, dtype: DType) -> None:
    for a, b, c in itertools.product(operands(dtype), repeat=3):
        left, right = result(op, dtype, a, b), result(op, dtype, b, c)
        assert left is not None
        assert right is not None
        assert result(op, dtype, left, c) == result(op, dtype, a, right), (a, b, c)


@pytest.mark.parametrize("op", COMPARED, ids=repr)
@pytest.mark.parametrize("dtype", [bool_, int8, uint8, index], ids=repr)
def test_comparisons_know_their_opposite_and_their_mirror_image(op: Op, dtype: DType) -> None:
    assert op.evaluate is not None
    assert op.negated is not None
    assert op.mirrored is not None
    opposite, mirror = ops.by_name(op.negated).evaluate, ops.by_name(op.mirrored).evaluate
    assert opposite is not None
    assert mirror is not None
    for a, b in itertools.product(operands(dtype), repeat=2):
        assert op.evaluate(dtype, a, b) is (not opposite(dtype, a, b))
        assert op.evaluate(dtype, a, b) is mirror(dtype, b, a)


@pytest.mark.parametrize("dtype", [*DATA_TYPES, float32.vec(4)], ids=repr)
@pytest.mark.parametrize("op", ops.REDUCERS, ids=repr)
def test_a_reduction_starts_where_the_first_value_wins(op: Op, dtype: DType) -> None:
    start = ops.identity_of(op, dtype)
    for a in edges(dtype.scalar):
        found = result(op, dtype, start, a)
        assert found == a or math.isnan(a), a


def test_an_empty_float_sum_is_positive_zero() -> None:
    assert same(ops.identity_of(ops.ADD, float32), 0.0)
    assert same(ops.identity_of(ops.MAX, dtypes.uint64), 0)
    assert same(ops.identity_of(ops.MIN, bool_), True)


def test_same_value_compares_bits() -> None:
    assert ev.same_value(NAN, NAN)
    assert not ev.same_value(0.0, -0.0)
    assert ev.same_value(3, 3)
    assert not ev.same_value(3, 4)
