"""Literals are read back as the same bits, and are as short as that allows."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rulewright.engine import dtypes as d
from rulewright.engine.dtypes import DType
from rulewright.renderers import literals


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0.0f"), (-0.0, "(-0.0f)"), (1.0, "1.0f"), (-1.5, "(-1.5f)"), (0.1, "0.1f"), (1 / 3, "0.33333334f"),
    (16777216.0, "16777216.0f"), (1e10, "1e+10f"), (2.0**-149, "1e-45f"), (3.4028234663852886e38, "3.4028235e+38f"),
    (math.inf, "INFINITY"), (-math.inf, "(-INFINITY)"), (math.nan, "NAN"),
])  # fmt: skip
def test_float32(value: float, text: str) -> None:
    assert literals.floating(d.float32.canonical(value), d.float32, "f") == text


@pytest.mark.parametrize(("value", "dtype", "text"), [
    (5, d.int32, "5"), (-5, d.int32, "(-5)"), (-(2**31), d.int32, "(-2147483647 - 1)"), (-128, d.int8, "(-128)"),
    (-(2**31), d.int64, "(-2147483648l)"), (-(2**63), d.int64, "(-9223372036854775807l - 1l)"),
    (2**64 - 1, d.uint64, "18446744073709551615l"),
])  # fmt: skip
def test_integers(value: int, dtype: DType, text: str) -> None:
    assert literals.integer(value, dtype, "l" if dtype.bits == 64 else "") == text


@pytest.mark.parametrize(("value", "dtype", "text"), [
    (1.0, d.float16, "0x3c00"), (-0.0, d.float16, "0x8000"), (math.inf, d.float16, "0x7c00"),
    (1.0, d.bfloat16, "0x3f80"), (-2.0, d.bfloat16, "0xc000"), (2.0**-133, d.bfloat16, "0x0001"),
])  # fmt: skip
def test_bits_of_16_bit_floats(value: float, dtype: DType, text: str) -> None:
    assert literals.pattern(value, dtype) == text


def read(text: str) -> float:
    """The float32 nearest to a decimal number, found without rounding twice."""
    exact = Fraction(text)
    near = d.float32.canonical(float(exact))
    assert isinstance(near, float)
    (bits,) = struct.unpack("<I", struct.pack("<f", near))
    around = [struct.unpack("<f", struct.pack("<I", b))[0] for b in (bits - 1, bits, bits + 1) if 0 <= b < 0x7F800000]
    return float(min(around, key=lambda f: abs(Fraction(f) - exact)))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=0.0))
def test_every_float32_is_read_back(value: float) -> None:
    assert read(literals.shortest(value, d.float32)) == value


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0.0))
def test_every_float64_is_read_back(value: float) -> None:
    assert float(literals.shortest(value, d.float64)) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=2.0**-126))
def test_no_literal_is_longer_than_nine_digits(value: float) -> None:
    mantissa = literals.shortest(value, d.float32).partition("e")[0].replace(".", "")
    assert len(mantissa.strip("0")) <= 9
