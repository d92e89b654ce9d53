"""Interval arithmetic: what an operator does to bounds of its operands.

An interval is a pair (low, high) of Python integers, both included; `-math.inf` and `math.inf` say "no bound". Values
of bool count as 0 and 1. The functions compute in mathematical integers; `enclose` then puts a result into a type,
where it may wrap. They know nothing of nodes; `engine.facts` applies them to a graph.

Where semantics.md leaves a value undefined (division by zero, a shift by too much) nothing is known: `ALL`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from . import ops
from .dtypes import DType
from .ops import Op

Bound = int | float
Interval = tuple[Bound, Bound]
Transfer = Callable[..., Interval]
"""(the node's type, an interval for each operand) -> an interval in mathematical integers."""

INF = math.inf
ALL: Interval = (-INF, INF)
BOOL: Interval = (0, 1)
FALSE: Interval = (0, 0)
TRUE: Interval = (1, 1)

CAP = 1 << 128
"""Bounds of an index beyond this are given up: without it, bounds of a long chain of products would grow for ever."""

_limits: dict[DType, Interval] = {}


def limits(dtype: DType) -> Interval:
    """The values that need no wrapping: all of a bool or integer type; of an index those below the cap."""
    found = _limits.get(dtype)
    if found is None:
        found = (-CAP, CAP) if dtype.kind == "index" else (dtype.lowest, dtype.highest)
        _limits[dtype] = found
    return found


def type_range(dtype: DType) -> Interval:
    """The interval of a value of which only the type is known."""
    return limits(dtype) if dtype.is_int or dtype.kind == "bool" else ALL


def enclose(dtype: DType, low: Bound, high: Bound) -> Interval:
    """The values of a type that stand for mathematical integers in low..high: wrapped where they leave the type."""
    lowest, highest = limits(dtype)
    if lowest <= low and high <= highest:
        return low, high
    if dtype.kind == "index":
        return (min(low, CAP) if low >= -CAP else -INF), (max(high, -CAP) if high <= CAP else INF)
    if isinstance(low, int) and isinstance(high, int) and isinstance(lowest, int):
        period = (low - lowest) >> dtype.bits
        if period == (high - lowest) >> dtype.bits:  # all of it wraps by the same amount
            return low - (period << dtype.bits), high - (period << dtype.bits)
    return type_range(dtype)


def hull(a: Interval, b: Interval) -> Interval:
    """The least interval around both."""
    return min(a[0], b[0]), max(a[1], b[1])


def product(a: Bound, b: Bound) -> Bound:
    """a * b, where nothing times no bound is nothing."""
    return a * b if a and b else 0


# --- integers and indices --------------------------------------------------------------------------------------------


def add(dtype: DType, a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def sub(dtype: DType, a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def neg(dtype: DType, a: Interval) -> Interval:
    return -a[1], -a[0]


def mul(dtype: DType, a: Interval, b: Interval) -> Interval:
    a0, a1 = a
    b0, b1 = b
    if b0 == b1 and b0:  # by a constant
        return (a0 * b0, a1 * b0) if b0 > 0 else (a1 * b0, a0 * b0)
    if a0 >= 0 and b0 >= 0:
        return a0 * b0, product(a1, b1)
    corners = product(a0, b0), product(a0, b1), product(a1, b0), product(a1, b1)
    return min(corners), max(corners)


def mulacc(dtype: DType, a: Interval, b: Interval, c: Interval) -> Interval:
    low, high = mul(dtype, a, b)
    return low + c[0], high + c[1]


def _quotient(a: Bound, b: Bound) -> Bound:
    """floor(a / b) for b > 0, either without bound."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(a, int):
        return 0 if a >= 0 else -1
    return a


def _truncated(a: Bound, b: Bound) -> Bound:
    return _quotient(a, b) if a >= 0 else -_quotient(-a, b)


def _without_zero(transfer: Transfer, dtype: DType, a: Interval, b: Interval) -> Interval:
    """A division where the divisor may be zero, which has no value: the negative and the positive divisors together."""
    parts = [part for part in ((b[0], -1), (1, b[1])) if part[0] <= part[1]]
    return reduce(hull, (transfer(dtype, a, part) for part in parts)) if parts else ALL


def floordiv(dtype: DType, a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return _without_zero(floordiv, dtype, a, b)
    if b[1] < 0:
        a, b = (-a[1], -a[0]), (-b[1], -b[0])
    b0, b1 = b
    a0, a1 = a
    return _quotient(a0, b1 if a0 >= 0 else b0), _quotient(a1, b0 if a1 >= 0 else b1)


def truncdiv(dtype: DType, a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return _without_zero(truncdiv, dtype, a, b)
    if b[1] < 0:
        a, b = (-a[1], -a[0]), (-b[1], -b[0])
    b0, b1 = b
    a0, a1 = a
    return _truncated(a0, b1 if a0 >= 0 else b0), _truncated(a1, b0 if a1 >= 0 else b1)


def floormod(dtype: DType, a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return _without_zero(floormod, dtype, a, b)
    if b[1] < 0:  # the remainder has the divisor's sign
        low, high = floormod(dtype, (-a[1], -a[0]), (-b[1], -b[0]))
        return -high, -low
    b0, b1 = b
    a0, a1 = a
    if a0 >= 0 and a1 < b0:
        return a
    if b0 == b1 and isinstance(a0, int) and isinstance(a1, int) and a0 // b0 == a1 // b0:  # within one period
        return a0 % b0, a1 % b0
    return 0, (a1 if 0 <= a0 and a1 < b1 else b1 - 1)


def truncmod(dtype: DType, a: Interval, b: Interval) -> Interval:
    if b[0] <= 0 <= b[1]:
        return _without_zero(truncmod, dtype, a, b)
    if b[1] < 0:  # the divisor's sign does not matter
        b = -b[1], -b[0]
    a0, a1 = a
    if a0 >= 0:
        return floormod(dtype, a, b)
    if a1 <= 0:
        low, high = floormod(dtype, (-a1, -a0), b)
        return -high, -low
    return max(a0, 1 - b[1]), min(a1, b[1] - 1)


def maximum(dtype: DType, a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), max(a[1], b[1])


def minimum(dtype: DType, a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), min(a[1], b[1])


def where(dtype: DType, condition: Interval, a: Interval, b: Interval) -> Interval:
    low, high = condition
    if low == high:
        return a if low else b
    return hull(a, b)


def convert(dtype: DType, a: Interval) -> Interval:
    return a


# --- bits ------------------------------------------------------------------------------------------------------------


def shift_limit(dtype: DType) -> int:
    """The first amount by which a shift is undefined."""
    return dtype.bits if dtype.is_int else 64


def shl(dtype: DType, a: Interval, b: Interval) -> Interval:
    powers = _powers(dtype, b)
    return mul(dtype, a, powers) if powers else ALL


def shr(dtype: DType, a: Interval, b: Interval) -> Interval:
    powers = _powers(dtype, b)
    return floordiv(dtype, a, powers) if powers else ALL


def _powers(dtype: DType, amount: Interval) -> Interval | None:
    low, high = amount
    if isinstance(low, int) and isinstance(high, int) and 0 <= low and high < shift_limit(dtype):
        return 1 << low, 1 << high
    return None


def not_(dtype: DType, a: Interval) -> Interval:
    return -1 - a[1], -1 - a[0]


def and_(dtype: DType, a: Interval, b: Interval) -> Interval:
    if a[0] == a[1]:
        a, b = b, a
    (a0, a1), (b0, b1) = a, b
    if b0 == b1 and isinstance(b0, int) and isinstance(a0, int) and isinstance(a1, int):
        if a0 == a1:
            return (a0 & b0,) * 2
        mask = b0
        if mask >= 0 and not mask & (mask + 1):  # low bits: a remainder
            return floormod(dtype, a, (mask + 1, mask + 1))
        top = mask - (1 << dtype.bits) if dtype.kind == "uint" else mask
        if top < 0 and not -top & (-top - 1):  # all but the low bits: rounds down, which keeps the order
            return a0 & mask, a1 & mask
    if a0 >= 0:
        return 0, (min(a1, b1) if b0 >= 0 else a1)
    if b0 >= 0:
        return 0, b1
    low, high = (min(a0, b0), (min(a1, b1) if a1 < 0 and b1 < 0 else b1 if a1 < 0 else a1 if b1 < 0 else max(a1, b1)))
    return (-(1 << (~low).bit_length()) if isinstance(low, int) else low), high


def or_(dtype: DType, a: Interval, b: Interval) -> Interval:
    (a0, a1), (b0, b1) = a, b
    if a0 == a1 and b0 == b1 and isinstance(a0, int) and isinstance(b0, int):
        return (a0 | b0,) * 2
    if a0 >= 0 and b0 >= 0:
        return max(a0, b0), min(a1 + b1, _ones(a1, b1))
    low, high = and_(dtype, not_(dtype, a), not_(dtype, b)) if dtype.kind != "uint" else ALL
    return -1 - high, -1 - low


def xor(dtype: DType, a: Interval, b: Interval) -> Interval:
    (a0, a1), (b0, b1) = a, b
    if a0 == a1 and b0 == b1 and isinstance(a0, int) and isinstance(b0, int):
        return (a0 ^ b0,) * 2
    if a0 >= 0 and b0 >= 0:
        return 0, min(a1 + b1, _ones(a1, b1))
    top = max(_ones(a1, b1), _ones(-1 - a0, -1 - b0))
    if a1 < 0 and b1 < 0:
        return 0, top
    return -1 - top, (-1 if (a1 < 0 <= b0 or b1 < 0 <= a0) else top)


def _ones(a: Bound, b: Bound) -> Bound:
    """All ones in as many bits as the greater needs; 0 if neither is positive."""
    top = max(a, b, 0)
    return (1 << top.bit_length()) - 1 if isinstance(top, int) else top


# --- bool ------------------------------------------------------------------------------------------------------------


def either(dtype: DType, a: Interval, b: Interval) -> Interval:
    return (a[0] or b[0]), (a[1] or b[1])


def both(dtype: DType, a: Interval, b: Interval) -> Interval:
    return (a[0] and b[0]), (a[1] and b[1])


def one_of(dtype: DType, a: Interval, b: Interval) -> Interval:
    if a[0] == a[1] and b[0] == b[1]:
        return FALSE if a[0] == b[0] else TRUE
    return BOOL


def negation(dtype: DType, a: Interval) -> Interval:
    return 1 - a[1], 1 - a[0]


def is_true(dtype: DType, a: Interval) -> Interval:
    return FALSE if a[0] == a[1] == 0 else TRUE if a[0] > 0 or a[1] < 0 else BOOL


def lt(dtype: DType, a: Interval, b: Interval) -> Interval:
    return TRUE if a[1] < b[0] else FALSE if a[0] >= b[1] else BOOL


def le(dtype: DType, a: Interval, b: Interval) -> Interval:
    return TRUE if a[1] <= b[0] else FALSE if a[0] > b[1] else BOOL


def gt(dtype: DType, a: Interval, b: Interval) -> Interval:
    return TRUE if a[0] > b[1] else FALSE if a[1] <= b[0] else BOOL


def ge(dtype: DType, a: Interval, b: Interval) -> Interval:
    return TRUE if a[0] >= b[1] else FALSE if a[1] < b[0] else BOOL


def eq(dtype: DType, a: Interval, b: Interval) -> Interval:
    if a[1] < b[0] or a[0] > b[1]:
        return FALSE
    return TRUE if a[0] == a[1] == b[0] == b[1] else BOOL


def ne(dtype: DType, a: Interval, b: Interval) -> Interval:
    if a[1] < b[0] or a[0] > b[1]:
        return TRUE
    return FALSE if a[0] == a[1] == b[0] == b[1] else BOOL


NUMBER: dict[Op, Transfer] = {
    ops.NEG: neg, ops.NOT: not_, ops.CAST: convert, ops.BITCAST: convert,
    ops.ADD: add, ops.SUB: sub, ops.MUL: mul, ops.MAX: maximum, ops.MIN: minimum,
    ops.FLOORDIV: floordiv, ops.FLOORMOD: floormod, ops.TRUNCDIV: truncdiv, ops.TRUNCMOD: truncmod,
    ops.AND: and_, ops.OR: or_, ops.XOR: xor, ops.SHL: shl, ops.SHR: shr,
    ops.WHERE: where, ops.MULACC: mulacc,
}  # fmt: skip
"""Of the elementwise operators whose result is an integer or an index."""

TRUTH: dict[Op, Transfer] = {
    ops.NEG: negation, ops.NOT: negation, ops.CAST: is_true,
    ops.ADD: either, ops.MAX: either, ops.OR: either, ops.MUL: both, ops.MIN: both, ops.AND: both, ops.XOR: one_of,
    ops.LT: lt, ops.LE: le, ops.GT: gt, ops.GE: ge, ops.EQ: eq, ops.NE: ne, ops.WHERE: where,
}  # fmt: skip
"""Of the elementwise operators whose result is a bool."""

BY_KIND: dict[str, dict[Op, Transfer]] = {"bool": TRUTH, "sint": NUMBER, "uint": NUMBER, "index": NUMBER}
