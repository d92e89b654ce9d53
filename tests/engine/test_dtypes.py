"""Types are interned and named; canonical values wrap and round exactly as NumPy's do, once."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rulewright.engine import dtypes
from rulewright.engine.dtypes import (
    DATA_TYPES,
    DType,
    bfloat16,
    bool_,
    by_name,
    float16,
    float32,
    float64,
    float_bits,
    index,
    int8,
    int32,
    int64,
    round_float,
    round_int,
    uint8,
    uint64,
)  # fmt: skip

INTEGERS = tuple(t for t in DATA_TYPES if t.is_int)
NUMPY_FLOATS = (float16, float32, float64)
DOUBLES = st.floats(width=64)


def test_types_are_one_object_each() -> None:
    assert float32.vec(4) is float32.vec(4)
    assert float32.vec(4).vec(2) is float32.vec(2)
    assert float32.vec(4).vec(1) is float32
    assert int8.ptr("global") is int8.ptr("global")
    assert int8.ptr("global") is not int8.ptr("local")
    assert int8.ptr("global") is not int8


def test_a_vector_keeps_its_scalar_and_a_pointer_its_element() -> None:
    vector = float32.vec(4)
    assert (vector.kind, vector.bits, vector.lanes, vector.scalar) == ("float", 32, 4, float32)
    pointer = vector.ptr("local")
    assert (pointer.kind, pointer.element, pointer.space, pointer.lanes) == ("pointer", vector, "local", 1)


NAMED = [
    *DATA_TYPES,
    index,
    dtypes.void,
    float16.vec(8),
    bool_.vec(16),
    int64.ptr("local"),
    float32.vec(4).ptr("global"),
]


@pytest.mark.parametrize("dtype", NAMED, ids=repr)
def test_the_name_and_a_pickle_give_the_same_object(dtype: DType) -> None:
    assert by_name(dtype.name) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


def test_a_type_not_yet_used_is_found_by_its_name() -> None:
    assert by_name("local uint16x3*").element is dtypes.uint16.vec(3)


@pytest.mark.parametrize(
    "name", ["", "float", "x4", "float32x", "float32x1", "float32x04", "float32x-4", "float32x4x2", "voidx4",
             "global float32*x4", "shared float32*", "global float*"],
)  # fmt: skip
def test_an_unknown_name_is_a_key_error(name: str) -> None:
    with pytest.raises(KeyError):
        by_name(name)


@pytest.mark.parametrize(("scalar", "lanes"), [(dtypes.void, 4), (float32.ptr("global"), 2), (float32, 0), (int8, -2)])
def test_there_are_no_vectors_of_these(scalar: DType, lanes: int) -> None:
    with pytest.raises(ValueError, match="there is no vector of"):
        scalar.vec(lanes)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_bounds_of_integers_are_numpys(dtype: DType) -> None:
    info = np.iinfo(dtype.name)
    assert (dtype.lowest, dtype.highest) == (info.min, info.max)


def test_bounds_of_the_other_types() -> None:
    assert (bool_.lowest, bool_.highest) == (0, 1)
    for dtype in (index, float16, float64):
        assert (dtype.lowest, dtype.highest) == (-math.inf, math.inf)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@given(value=st.one_of(st.integers(-300, 300), st.integers(-(1 << 70), 1 << 70)))
@example(value=1 << 63)
@example(value=-(1 << 63) - 1)
def test_integers_wrap(dtype: DType, value: int) -> None:
    wrapped = dtype.canonical(value)
    assert isinstance(wrapped, int)
    assert dtype.lowest <= wrapped <= dtype.highest
    assert (wrapped - value) % (1 << dtype.bits) == 0


def test_canonical_values_have_the_types_own_python_type() -> None:
    assert [type(t.canonical(1)) for t in (bool_, int8, index, float32, bfloat16)] == [bool, int, int, float, float]
    assert [type(t.canonical(True)) for t in (bool_, int8, index, float32)] == [bool, int, int, float]
    assert int8.canonical(2.75) == 2
    assert int8.vec(4).canonical(255) == -1
    assert index.canonical(1 << 200) == 1 << 200
    assert bool_.canonical(math.nan) is True


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_an_integer_cannot_hold_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match="is not a value of uint8"):
        uint8.canonical(value)


@pytest.mark.parametrize("dtype", NUMPY_FLOATS, ids=repr)
@given(value=DOUBLES)
@example(value=65520.0)  # the tie between the greatest float16 and infinity
@example(value=65519.999)
@example(value=2.0**-25)  # the tie between 0 and the least float16
@example(value=3.4028235677973366e38)  # the tie between the greatest float32 and infinity
@example(value=-0.0)
@example(value=5e-324)
def test_floats_round_as_numpys_do(dtype: DType, value: float) -> None:
    with np.errstate(all="ignore"):
        expected = float(np.float64(value).astype(dtype.name))
    assert float_bits(round_float(value, dtype)) == float_bits(expected)


def bfloat16_neighbours(value: float) -> tuple[float, float]:
    """The values of bfloat16 next to a finite `value`, by float32's bits: the low 16 cleared, and one more."""
    pattern = int(np.float32(abs(value)).view(np.uint32))
    while Fraction(as_float(pattern)) > Fraction(abs(value)):
        pattern -= 1
    low = pattern & 0xFFFF0000
    return as_float(low), as_float(low + 0x10000)


def as_float(pattern: int) -> float:
    return float(np.uint32(pattern).view(np.float32))


@given(st.floats(-3.3e38, 3.3e38))
@example(1.00390625)  # ties: to even, down and up
@example(1.01171875)
@example(2.0**-134)
@example(2.0**-133 * 1.5)
@example(-0.0)
@example(1.0000001e-45)
def test_bfloat16_is_the_nearest_with_ties_to_even(value: float) -> None:
    rounded = round_float(value, bfloat16)
    low, high = bfloat16_neighbours(value)
    below, above = Fraction(abs(value)) - Fraction(low), Fraction(high) - Fraction(abs(value))
    even = low if int(np.float32(low).view(np.uint32)) >> 16 & 1 == 0 else high
    expected = low if below < above else high if above < below else even
    assert float_bits(rounded) == float_bits(math.copysign(expected, value))


@given(DOUBLES)
def test_rounding_twice_is_rounding_once(value: float) -> None:
    for dtype in (float16, bfloat16, float32, float64):
        once = round_float(value, dtype)
        assert float_bits(round_float(once, dtype)) == float_bits(once)


def test_bfloat16_overflows_to_infinity() -> None:
    greatest = (2 - 2**-7) * 2.0**127
    assert round_float(greatest, bfloat16) == greatest
    assert round_float(greatest + 2.0**118, bfloat16) == greatest
    assert round_float(greatest + 2.0**119, bfloat16) == math.inf
    assert round_float(-1e308, bfloat16) == -math.inf
    assert round_float(-math.inf, bfloat16) == -math.inf
    assert math.isnan(round_float(math.nan, bfloat16))


@pytest.mark.parametrize("dtype", NUMPY_FLOATS, ids=repr)
@given(value=st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 12), 1 << 12)))
@example(value=(1 << 60) + (1 << 36) + 1)  # by way of a double this would be a tie
@example(value=-(1 << 60) - (1 << 36) - 1)
@example(value=(1 << 53) + 1)
@example(value=65520)
def test_integers_round_once(dtype: DType, value: int) -> None:
    with np.errstate(all="ignore"):
        expected = float(np.int64(value).astype(dtype.name))
    assert round_int(value, dtype) == expected
    assert dtype.canonical(value) == expected


@given(st.integers(0, (1 << 64) - 1))
def test_an_integer_becomes_the_nearest_bfloat16(value: int) -> None:
    low, high = bfloat16_neighbours(value)
    assert abs(Fraction(round_int(value, bfloat16)) - value) == min(value - Fraction(low), Fraction(high) - value)


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=repr)
def test_an_integer_beyond_all_floats_is_infinite(dtype: DType) -> None:
    assert dtype.canonical(10**400) == math.inf
    assert dtype.canonical(-(10**400)) == -math.inf


def test_float_bits_tell_zeros_apart_and_make_one_of_all_nans() -> None:
    assert float_bits(0.0) != float_bits(-0.0)
    negative = float(np.uint64(0xFFF8000000000001).view(np.float64))
    assert float_bits(math.nan) == float_bits(-math.nan) == float_bits(negative)
    assert float_bits(1.0) == 0x3FF0000000000000


def test_only_wrapping_types_count_as_integers() -> None:
    assert [t for t in (bool_, index, int32, uint64, float32, int32.vec(2)) if t.is_int] == [
        int32,
        uint64,
        int32.vec(2),
    ]
