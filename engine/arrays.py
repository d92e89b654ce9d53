"""Elementwise operators on whole NumPy arrays: what the interpreter and the reference of kernels compute with.

Floats are computed in float64 and rounded to the type, which is exact enough to round only once; integers wrap.
Values of bfloat16 are kept as float32; buffers hold them as the uint16 of their bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import dtypes, ops
from .dtypes import DType

Array = npt.NDArray[np.generic]


def numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    """The NumPy type that holds a buffer's elements; bfloat16 is held as the uint16 of its bits."""
    if dtype is dtypes.bfloat16:
        return np.dtype(np.uint16)
    return np.dtype(np.bool_ if dtype is dtypes.bool_ else dtype.name)


def held_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy type that values of a type are kept in: bfloat16 as float32."""
    return np.dtype(np.float32) if dtype is dtypes.bfloat16 else numpy_dtype(dtype)


def rounded(value: npt.NDArray[Any], dtype: DType) -> npt.NDArray[Any]:
    if dtype is dtypes.bfloat16:
        return from_storage(to_bfloat16(value), dtype)
    return value.astype(held_dtype(dtype))


def to_bfloat16(value: npt.NDArray[Any]) -> Array:
    """The bits of the nearest values, from numbers of any type by one rounding."""
    bits = _to_odd_float32(value).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(value), 0x7FC0, rounded).astype(np.uint16)


def _to_odd_float32(value: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """As float32; where that is inexact, the neighbour whose last bit is 1, so that a further rounding sees it."""
    if value.dtype == np.float32:
        return np.asarray(value)
    if value.dtype.kind in "iu" and value.dtype.itemsize == 8:
        value = _to_odd_53_bits(value)
    exact = value.astype(np.float64)
    near = exact.astype(np.float32)
    inexact = (near != exact) & ~np.isnan(exact)
    beyond = np.abs(near.astype(np.float64)) > np.abs(exact)
    bits = np.where(beyond, np.nextafter(near, np.float32(0)), near).view(np.uint32)
    return np.where(inexact, bits | np.uint32(1), bits).view(np.float32)


def _to_odd_53_bits(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Of large integers the last 12 bits become one, so that float64 holds the rest and whether there was more."""
    large = (value >= 2**52) if value.dtype.kind == "u" else (value >= 2**52) | (value <= -(2**52))
    low = value & value.dtype.type(0xFFF)
    odd = (value - low) | np.where(low != 0, value.dtype.type(0x1000), value.dtype.type(0))
    return np.where(large, odd, value)


def from_storage(data: Array, dtype: DType) -> npt.NDArray[Any]:
    return np.asarray((data.astype(np.uint32) << 16).view(np.float32)) if dtype is dtypes.bfloat16 else data


def to_storage(value: npt.NDArray[Any], dtype: DType) -> Array:
    return to_bfloat16(value) if dtype is dtypes.bfloat16 else value.astype(numpy_dtype(dtype))


def _truncdiv(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    quotient = np.floor_divide(a, b)
    inexact = quotient * b != a
    return np.asarray(np.where(inexact & ((a < 0) != (b < 0)), quotient + np.array(1, a.dtype), quotient))


UNARY_FLOAT: dict[ops.Op, Any] = {
    ops.EXP2: np.exp2, ops.LOG2: np.log2, ops.SIN: np.sin, ops.SQRT: np.sqrt, ops.FLOOR: np.floor, ops.CEIL: np.ceil,
    ops.TRUNC: np.trunc, ops.ROUND: np.rint, ops.RECIP: lambda x: 1.0 / x,
}  # fmt: skip
BINARY: dict[ops.Op, Any] = {
    ops.ADD: np.add, ops.SUB: np.subtract, ops.MUL: np.multiply, ops.DIV: np.divide, ops.MAX: np.maximum,
    ops.MIN: np.minimum, ops.FLOORDIV: np.floor_divide, ops.FLOORMOD: np.mod, ops.AND: np.bitwise_and,
    ops.OR: np.bitwise_or, ops.XOR: np.bitwise_xor, ops.SHL: np.left_shift, ops.SHR: np.right_shift,
    ops.TRUNCMOD: np.fmod, ops.TRUNCDIV: _truncdiv,
    ops.LT: np.less, ops.LE: np.less_equal, ops.GT: np.greater, ops.GE: np.greater_equal,
    ops.EQ: np.equal, ops.NE: np.not_equal,
}  # fmt: skip


def apply(op: ops.Op, source: DType, dtype: DType, operands: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """An elementwise operator on arrays of values of type `source` (of a `where`: its branches), giving `dtype`.

    Call it under `np.errstate(all="ignore")`. What has no defined value is any value.
    """
    source, dtype = source.scalar, dtype.scalar
    if op is ops.CAST:
        return _cast(operands[0], source, dtype)
    if op is ops.BITCAST:
        return from_storage(to_storage(operands[0], source).view(numpy_dtype(dtype)), dtype)
    if op is ops.WHERE:
        return np.where(operands[0], operands[1], operands[2])
    if op is ops.NEG:
        return np.asarray(np.logical_not(operands[0]) if source is dtypes.bool_ else np.negative(operands[0]))
    if op is ops.NOT:
        return np.asarray(np.invert(operands[0]))
    wide = [o.astype(np.float64) for o in operands] if source.is_float else operands
    if op is ops.MULACC:
        return rounded(rounded(wide[0] * wide[1], dtype).astype(wide[2].dtype) + wide[2], dtype)
    function = UNARY_FLOAT.get(op) or BINARY[op]
    if source is dtypes.bool_ and op in (ops.ADD, ops.MUL, ops.MAX, ops.MIN):
        function = np.logical_or if op in (ops.ADD, ops.MAX) else np.logical_and
    result = np.asarray(function(*wide))
    return result if result.dtype == np.bool_ else rounded(result, dtype)


def _cast(value: npt.NDArray[Any], source: DType, dtype: DType) -> npt.NDArray[Any]:
    if dtype is dtypes.bool_:
        return np.asarray(value != 0)
    return rounded(value, dtype)
