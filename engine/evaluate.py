"""The exact meaning of every scalar operator on Python values.

Each function takes the operand type and canonical values, and gives the exact result before it is put into the
result's type, or None where semantics.md leaves the value undefined. `engine.ops` attaches them to the operators;
the folder, the interpreter's tests and the rule checks all read them from there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from .dtypes import DType, Scalar, float_bits

Evaluator = Callable[..., Scalar | None]


def add(dtype: DType, a: Scalar, b: Scalar) -> Scalar:
    return (a or b) if dtype.kind == "bool" else a + b


def sub(dtype: DType, a: Scalar, b: Scalar) -> Scalar:
    return a - b


def mul(dtype: DType, a: Scalar, b: Scalar) -> Scalar:
    return (a and b) if dtype.kind == "bool" else a * b


def neg(dtype: DType, a: Scalar) -> Scalar:
    return (not a) if dtype.kind == "bool" else -a


def floordiv(dtype: DType, a: int, b: int) -> int | None:
    return None if b == 0 else a // b


def floormod(dtype: DType, a: int, b: int) -> int | None:
    return None if b == 0 else a % b


def truncdiv(dtype: DType, a: int, b: int) -> int | None:
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def truncmod(dtype: DType, a: int, b: int) -> int | None:
    if b == 0:
        return None
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


def div(dtype: DType, a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def recip(dtype: DType, a: float) -> float:
    return div(dtype, 1.0, a)


def maximum(dtype: DType, a: Scalar, b: Scalar) -> Scalar:
    return a if a != a or a > b else b


def minimum(dtype: DType, a: Scalar, b: Scalar) -> Scalar:
    return a if a != a or a < b else b


def lt(dtype: DType, a: Scalar, b: Scalar) -> bool:
    return a < b


def le(dtype: DType, a: Scalar, b: Scalar) -> bool:
    return a <= b


def gt(dtype: DType, a: Scalar, b: Scalar) -> bool:
    return a > b


def ge(dtype: DType, a: Scalar, b: Scalar) -> bool:
    return a >= b


def eq(dtype: DType, a: Scalar, b: Scalar) -> bool:
    return a == b


def ne(dtype: DType, a: Scalar, b: Scalar) -> bool:
    return a != b


def and_(dtype: DType, a: int, b: int) -> int:
    return a & b


def or_(dtype: DType, a: int, b: int) -> int:
    return a | b


def xor(dtype: DType, a: int, b: int) -> int:
    return a ^ b


def not_(dtype: DType, a: int) -> Scalar:
    return (not a) if dtype.kind == "bool" else ~a


def shl(dtype: DType, a: int, b: int) -> int | None:
    return a << b if _shift_is_defined(dtype, b) else None


def shr(dtype: DType, a: int, b: int) -> int | None:
    return a >> b if _shift_is_defined(dtype, b) else None


def _shift_is_defined(dtype: DType, amount: int) -> bool:
    return 0 <= amount < (dtype.bits if dtype.is_int else 64)


def where(dtype: DType, condition: bool, a: Scalar, b: Scalar) -> Scalar:
    return a if condition else b


def mulacc(dtype: DType, a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    return add(dtype, dtype.canonical(mul(dtype, a, b)), c)


def texel(dtype: DType, column: int, row: int, width: int) -> int:
    return (row * width + column) * 4


def exp2(dtype: DType, a: float) -> float:
    try:
        return math.pow(2.0, a)
    except OverflowError:
        return math.inf


def log2(dtype: DType, a: float) -> float:
    if a == 0.0:
        return -math.inf
    return math.nan if a < 0.0 or a != a else math.log2(a)


def sin(dtype: DType, a: float) -> float:
    return math.sin(a) if math.isfinite(a) else math.nan


def sqrt(dtype: DType, a: float) -> float:
    return math.nan if a < 0.0 else math.sqrt(a)


def floor(dtype: DType, a: float) -> float:
    return _signed(math.floor, a)


def ceil(dtype: DType, a: float) -> float:
    return _signed(math.ceil, a)


def trunc(dtype: DType, a: float) -> float:
    return _signed(math.trunc, a)


def round_(dtype: DType, a: float) -> float:
    return _signed(round, a)


def _signed(function: Callable[[float], int], a: float) -> float:
    """Rounds to an integer; keeps the sign of zero, infinities and NaN."""
    return math.copysign(float(function(a)), a) if math.isfinite(a) else a


def cast(source: DType, a: Scalar, to: DType) -> Scalar | None:
    """`a` of type `source` converted to `to`. None where a float is out of the integer type's range."""
    if to.kind == "bool":
        return a != 0
    if isinstance(a, float) and not to.is_float:
        if not math.isfinite(a) or not to.lowest <= math.trunc(a) <= to.highest:
            return None
        return math.trunc(a)
    return to.canonical(a)


_PACK = {("sint", 8): "b", ("sint", 16): "h", ("sint", 32): "i", ("sint", 64): "q",
         ("uint", 8): "B", ("uint", 16): "H", ("uint", 32): "I", ("uint", 64): "Q",
         ("float", 16): "e", ("float", 32): "f", ("float", 64): "d", ("bool", 8): "?"}  # fmt: skip


def bitcast(source: DType, a: Scalar, to: DType) -> Scalar | None:
    """The same bits read as `to`. None where the widths differ, or where a NaN's payload would be lost."""
    if source.bits != to.bits or "index" in (source.kind, to.kind) or to.kind == "bool":
        return None
    pattern = _pack(source, a)
    value = _unpack(to, pattern)
    return None if (source.is_float and a != a) or value != value else value


def _pack(dtype: DType, value: Scalar) -> bytes:
    if dtype.scalar.name == "bfloat16":
        return struct.pack("<f", value)[2:]
    return struct.pack("<" + _PACK[dtype.kind, dtype.bits], value)


def _unpack(dtype: DType, pattern: bytes) -> Scalar:
    if dtype.scalar.name == "bfloat16":
        widened: float = struct.unpack("<f", b"\0\0" + pattern)[0]
        return widened
    value: Scalar = struct.unpack("<" + _PACK[dtype.kind, dtype.bits], pattern)[0]
    return value


def same_value(a: Scalar, b: Scalar) -> bool:
    """Whether two constants of one type are the same bits (0.0 is not -0.0; NaN is NaN)."""
    if isinstance(a, float) and isinstance(b, float):
        return float_bits(a) == float_bits(b)
    return a == b
