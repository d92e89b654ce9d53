"""Values to try: the edges of each type first, then what lies near the constants of the rule, then anything."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from random import Random

from ..engine.dtypes import DType, Scalar, float_bits

INDEX_EDGES = (
    0, 1, -1, 2, -2, 3, 4, 5, 7, 8, -3, -4, -8, 12, 16, 15, 17, 64, 100, -100, 255, 256, 2**31 - 1, 2**31, -(2**31),
    -(2**31) - 1, 2**32, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63),
)  # fmt: skip

_FLOATS = {
    "float16": (6.103515625e-05, 5.960464477539063e-08, 65504.0, 2049.0, 0.0999755859375),
    "bfloat16": (1.1754943508222875e-38, 9.183549615799121e-41, 3.3895313892515355e38, 257.0, 0.10009765625),
    "float32": (1.1754943508222875e-38, 1.401298464324817e-45, 3.4028234663852886e38, 16777217.0, 0.10000000149011612),
    "float64": (2.2250738585072014e-308, 5e-324, 1.7976931348623157e308, 9007199254740993.0, 0.1),
}
"""The least normal and subnormal value, the greatest, one that needs all digits, one that is not exact."""


@lru_cache(maxsize=256)
def edges(dtype: DType) -> tuple[Scalar, ...]:
    """The values of a scalar type that break wrong rules, the simplest first."""
    if dtype.kind == "bool":
        return False, True
    if dtype.kind == "index":
        return INDEX_EDGES
    if dtype.is_float:
        normal, subnormal, greatest, digits, tenth = _FLOATS[dtype.name]
        numbers = (1.0, 0.0, -1.0, 2.0, -0.0, math.inf, math.nan, -math.inf, 0.5, 3.0, -2.0, -0.5, 1.5, 2.5, -1.5,
                   tenth, greatest, -greatest, normal, subnormal, -subnormal, digits, 7.0, 100.0, 1e4)  # fmt: skip
        return _distinct(dtype, numbers)
    low, high = int(dtype.lowest), int(dtype.highest)
    top = 1 << (dtype.bits - 1)
    numbers_: tuple[int, ...] = (
        0, 1, -1, 2, high, low, 3, high - 1, low + 1, -2, 4, 5, 7, 8, -3, -8, 16, 100, high // 2, high // 2 + 1, top,
        top - 1, top >> 1, (1 << (dtype.bits // 2)) - 1, 1 << (dtype.bits // 2), 0x55, -0x56,
    )  # fmt: skip
    return _distinct(dtype, numbers_)


def _distinct(dtype: DType, numbers: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """The numbers as values of the type, each once; 0.0 and -0.0 are two."""
    found: dict[object, Scalar] = {}
    for number in numbers:
        value = dtype.canonical(number)
        found.setdefault(float_bits(value) if isinstance(value, float) else value, value)
    return tuple(found.values())


def near(dtype: DType, constants: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers at which something changes in an expression with these constants: multiples, bounds, overflow."""
    found: dict[int, None] = {}
    for c in constants[:6]:
        for value in (c, c - 1, c + 1, -c, 2 * c, 2 * c - 1, 3 * c, -c - 1, -2 * c):
            found[value] = None
        if dtype.is_int and c:
            low, high = int(dtype.lowest), int(dtype.highest)
            for value in (
                high - c,
                high - c + 1,
                low - c,
                low - c - 1,
                low + c,
                high // c,
                high // c + 1,
                low // c - 1,
            ):
                found[value] = None
    if dtype.kind == "index":
        return tuple(found)
    return tuple(v for v in found if dtype.lowest <= v <= dtype.highest)


def anything(random: Random, dtype: DType) -> Scalar:
    """Any value of a scalar type; small ones, and ones that use all digits, are equally likely."""
    if dtype.kind == "bool":
        return random.random() < 0.5
    if dtype.is_float:
        return dtype.canonical(_float(random, dtype))
    bits = 48 if dtype.kind == "index" else dtype.bits
    return dtype.canonical(random.getrandbits(random.randint(1, bits)) * random.choice((1, -1)))


def _float(random: Random, dtype: DType) -> float:
    kind = random.randrange(4)
    if kind == 0:
        return float(random.randint(-20, 20))
    if kind == 1:
        return random.uniform(-4.0, 4.0)
    largest = math.frexp(float(_FLOATS[dtype.name][2]))[1]
    return math.ldexp(random.uniform(-1.0, 1.0), random.randint(-largest if kind == 2 else 0, largest))


def between(random: Random, dtype: DType, low: int | float, high: int | float) -> Scalar:
    """A value of a whole-number type between bounds that are included; a bound may be infinite."""
    if low == -math.inf or high == math.inf:
        value = int(anything(random, dtype))
        if low != -math.inf:
            return int(low) + abs(value)
        return int(high) - abs(value) if high != math.inf else value
    low, high = int(low), int(high)
    if high - low < 1 << 16 or random.random() < 0.5:
        return random.randint(low, high)
    return low + random.getrandbits(random.randint(1, (high - low).bit_length())) % (high - low + 1)
