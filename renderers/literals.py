"""Constants as the C family writes them: exact, readable, and accepted at the ends of every range."""

from __future__ import annotations

import math
import struct

from ..engine.dtypes import DType, Scalar, float32, float64, round_float

_MOST_DIGITS = 9
"""With so many decimal digits every float32 is read back as itself."""


def integer(value: int, dtype: DType, suffix: str) -> str:
    """A decimal literal; in parentheses if negative. The least value of a type has none: it is spelt as a difference."""
    if dtype.kind == "sint" and dtype.bits >= 32 and value == dtype.lowest:
        return f"(-{-value - 1}{suffix} - 1{suffix})"
    return f"(-{-value}{suffix})" if value < 0 else f"{value}{suffix}"


def floating(value: float, dtype: DType, suffix: str) -> str:
    """The shortest decimal literal that is read back as `value`; infinities and NaN by the names of <math.h>."""
    if math.isnan(value):
        return "NAN"
    sign = math.copysign(1.0, value) < 0
    text = "INFINITY" if math.isinf(value) else shortest(abs(value), dtype) + suffix
    return f"(-{text})" if sign else text


def shortest(value: float, dtype: DType) -> str:
    """The fewest digits that a correct reader turns back into a finite `value`; with a point or an exponent.

    A 16-bit type is read as float32, in which its values are exact.
    """
    text = repr(value)
    if dtype is not float64:
        for digits in range(1, _MOST_DIGITS + 1):
            text = f"{value:.{digits}g}"
            if _reads_back(text, value):
                break
    return text if any(mark in text for mark in ".e") else text + ".0"


def _reads_back(text: str, value: float) -> bool:
    """Whether the decimal number, rounded once to float32, is `value`.

    Python rounds it twice, by way of a double. Where the doubles next to that one agree it makes no difference.
    """
    double = float(text)
    candidates = (math.nextafter(double, -math.inf), double, math.nextafter(double, math.inf))
    return all(round_float(candidate, float32) == value for candidate in candidates)


def pattern(value: Scalar, dtype: DType) -> str:
    """The bits of a 16-bit float as a hexadecimal integer, for languages that hold such values as integers."""
    assert dtype.is_float and dtype.bits == 16
    bits: int
    if dtype.name == "bfloat16":
        bits = struct.unpack("<H", struct.pack("<f", value)[2:])[0]
    else:
        bits = struct.unpack("<H", struct.pack("<e", value))[0]
    return f"0x{bits:04x}"
