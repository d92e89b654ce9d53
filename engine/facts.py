"""What is known about the value of a node: its bounds, its value modulo some m, the loops that it varies in.

Each fact is computed when it is first asked for and kept in the node; a fact of a deep graph is built up from the
leaves with an explicit stack. A fact is about every defined value: it holds whatever the variables, the loops, the
threads and the memory are, wrap-around included. Unknown is an answer: `ALL`, `(1, 0)`; predicates say no.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import gcd
from typing import TypeVar

from . import intervals, ops
from .congruences import ANY, Congruence, join, remainder, wrapped
from .congruences import NUMBER as MODULAR
from .dtypes import DType
from .intervals import ALL, BOOL, FALSE, TRUE, Interval, enclose, hull, limits, product, type_range
from .ops import Narrowed, Op, RangeArg, VarArg
from .uop import UOp

F = TypeVar("F")
"""What a fact says: an interval, or a congruence."""

_PLAIN = 1 << 63
"""Constants below it are what they are: the short way."""

# --- intervals -------------------------------------------------------------------------------------------------------


def interval(node: UOp) -> Interval:
    """(low, high) around every value of a bool, integer or index node (0 and 1 for a bool), of all lanes of a vector.

    The bounds are integers, or infinite: an index may have no bound. Of a float and of what has no value: `ALL`.
    """
    known = node._interval
    if known is not None:
        return known
    arg = node.arg
    if type(arg) is int and node.op is ops.CONST and -_PLAIN < arg < _PLAIN and not node.dtype.is_float:
        known = node._interval = (arg, arg)
        return known
    if _is_number(node):
        for operand in node.src:
            if operand._interval is None:
                _fill(node, "_interval", _is_number, _interval)
                known = node._interval
                assert known is not None
                return known
    known = node._interval = _interval(node)
    return known


def _is_number(node: UOp) -> bool:
    """Whether bounds of the node can follow from bounds of its operands."""
    return node.dtype.kind in _ELEMENTWISE and node.op is not ops.LOAD


def _fill(root: UOp, slot: str, looks_down: Callable[[UOp], bool], compute: Callable[[UOp], object]) -> None:
    """Computes a fact for `root` and all below it that it needs, operands first."""
    stack = [root]
    while stack:
        node = stack[-1]
        if getattr(node, slot) is None:
            missing = [s for s in node.src if getattr(s, slot) is None] if looks_down(node) else ()
            if missing:
                stack.extend(missing)
                continue
            setattr(node, slot, compute(node))
        stack.pop()


def _interval(node: UOp) -> Interval:
    """The interval of a node whose operands' intervals are known."""
    dtype = node.dtype
    table = _ELEMENTWISE.get(dtype.kind)
    if table is None:
        return ALL
    transfer = table.get(node.op)
    if transfer is None:
        special = _SPECIAL.get(node.op)
        return special(node) if special else type_range(dtype)
    src = node.src
    if len(src) == 2:
        low, high = transfer(dtype, src[0]._interval, src[1]._interval)
    elif len(src) == 1:
        low, high = transfer(dtype, src[0]._interval)
    else:
        low, high = transfer(dtype, *[s._interval for s in src])
    lowest, highest = limits(dtype)
    if lowest <= low and high <= highest:
        return low, high
    return enclose(dtype, low, high)


def _of_const(node: UOp) -> Interval:
    value = node.arg
    assert isinstance(value, int)
    return enclose(node.dtype, int(value), int(value))


def _of_var(node: UOp) -> Interval:
    return (node.arg.low, node.arg.high) if isinstance(node.arg, VarArg | Narrowed) else type_range(node.dtype)


def _of_count(node: UOp) -> Interval:
    """A range or a hardware index: from 0 up to below its end."""
    return 0, max(0, interval(node.src[0])[1] - 1)


def _over_lanes(fact: Callable[[UOp], F], join: Callable[[F, F], F]) -> Callable[[UOp], F]:
    """Of a vector that is built lane by lane: what holds of every lane."""
    return lambda node: reduce(join, map(fact, node.src))


def _of_lane(fact: Callable[[UOp], F]) -> Callable[[UOp], F]:
    """Of a picked lane: that of the lane itself where it is known, else of the whole vector."""

    def of_lane(node: UOp) -> F:
        (vector,) = node.src
        if vector.op is ops.VECTORIZE and isinstance(node.arg, int):
            return fact(vector.src[node.arg])
        return fact(vector)

    return of_lane


def _of_first(fact: Callable[[UOp], F]) -> Callable[[UOp], F]:
    return lambda node: fact(node.src[0])


def _of_folded(node: UOp) -> Interval:
    (value,) = node.src
    return _combined(
        node, interval(value), value.dtype.lanes // node.dtype.lanes, value.dtype.lanes // node.dtype.lanes
    )


def _of_reduce(node: UOp) -> Interval:
    low: intervals.Bound = 1
    high: intervals.Bound = 1
    for counter in node.src[1:]:
        least, most = interval(counter.src[0]) if counter.op is ops.RANGE else (0, intervals.INF)
        low, high = product(low, max(0, least)), product(high, max(0, most))
    return _combined(node, interval(node.src[0]), low, high)


def _combined(node: UOp, value: Interval, low: intervals.Bound, high: intervals.Bound) -> Interval:
    """Between `low` and `high` many values brought together by the reducer `node.arg`."""
    dtype, reducer = node.dtype, node.arg
    truth = dtype.kind == "bool"
    if reducer is ops.ADD and not truth:
        total = intervals.mul(dtype, value, (low, high))
        return enclose(dtype, *total)
    if reducer is ops.MUL and not truth:
        return type_range(dtype)
    if low >= 1:
        return value
    start = (dtype.lowest if reducer in (ops.MAX, ops.ADD) else dtype.highest,) * 2
    return ALL if dtype.kind == "index" else hull(value, start)


def _of_remainder(node: UOp) -> Interval:
    dividend, divisor = node.src
    around = interval(divisor)
    low, high = intervals.NUMBER[node.op](node.dtype, interval(dividend), around)
    if (low, high) == interval(dividend) or around[0] <= 0 <= around[1]:
        return enclose(node.dtype, low, high)
    m, r = remainder(congruence(dividend), congruence(divisor))
    if m > 1:  # only some of the remainders occur
        low = low + (r - low) % m if isinstance(low, int) else low
        high = high - (high - r) % m if isinstance(high, int) else high
    return enclose(node.dtype, low, high)


def _of_equality(node: UOp) -> Interval:
    a, b = node.src
    around = intervals.TRUTH[node.op](node.dtype, interval(a), interval(b))
    if around is BOOL and a.dtype.kind != "float" and _never_equal(congruence(a), congruence(b)):
        return TRUE if node.op is ops.NE else FALSE
    return around


def _of_cast(node: UOp) -> Interval:
    (value,) = node.src
    around = interval(value)
    if node.dtype.kind != "bool":
        return enclose(node.dtype, *around)
    around = intervals.is_true(node.dtype, around)
    return TRUE if around is BOOL and _never_equal(congruence(value), (0, 0)) else around


def _never_equal(a: Congruence, b: Congruence) -> bool:
    m = gcd(a[0], b[0])
    return a[1] != b[1] if m == 0 else (a[1] - b[1]) % m != 0


_SPECIAL: dict[Op, Callable[[UOp], Interval]] = {
    ops.CONST: _of_const, ops.VAR: _of_var, ops.RANGE: _of_count, ops.SPECIAL: _of_count,
    ops.VECTORIZE: _over_lanes(interval, hull), ops.GEP: _of_lane(interval), ops.WIDEN: _of_first(interval),
    ops.FOLD_LANES: _of_folded, ops.REDUCE: _of_reduce,
    ops.FLOORMOD: _of_remainder, ops.TRUNCMOD: _of_remainder,
    ops.EQ: _of_equality, ops.NE: _of_equality, ops.CAST: _of_cast,
}  # fmt: skip
"""Operators whose interval takes more than those of the operands. Of one that is nowhere, the type's range is known."""

_ELEMENTWISE: dict[str, dict[Op, intervals.Transfer]] = {
    kind: {op: transfer for op, transfer in table.items() if op not in _SPECIAL}
    for kind, table in intervals.BY_KIND.items()
}

# --- congruences -----------------------------------------------------------------------------------------------------


def congruence(node: UOp) -> Congruence:
    """(m, r): every value of an integer or index node, in every lane, is r plus a multiple of m.

    (0, r) says that it is r, (1, 0) that nothing is known; otherwise 0 <= r < m.
    """
    known = node._congruence
    if known is not None:
        return known
    arg = node.arg
    if type(arg) is int and node.op is ops.CONST and -_PLAIN < arg < _PLAIN and not node.dtype.is_float:
        known = node._congruence = (0, arg)
        return known
    interval(node)
    if _has_congruence(node):
        for operand in node.src:
            if operand._congruence is None:
                _fill(node, "_congruence", _has_congruence, _congruence)
                known = node._congruence
                assert known is not None
                return known
    known = node._congruence = _congruence(node)
    return known


def _has_congruence(node: UOp) -> bool:
    """Whether the node's congruence follows from those of its operands (else it has none, or is a constant)."""
    around = interval(node)
    return around[0] != around[1] and (node.op in MODULAR or node.op in _JOINED) and node.dtype.kind in _NUMBERS


_NUMBERS = frozenset({"sint", "uint", "index"})


def _congruence(node: UOp) -> Congruence:
    """The congruence of a node whose operands' congruences are known."""
    low, high = interval(node)
    if low == high and isinstance(low, int):
        return 0, low
    if node.op is ops.VAR and isinstance(node.arg, Narrowed):
        return node.arg.modulus, node.arg.remainder
    if not _has_congruence(node):
        return ANY
    if node.op in _JOINED:
        return _JOINED[node.op](node)
    src, op, dtype = node.src, node.op, node.dtype
    if op is ops.TRUNCDIV and interval(src[0])[0] >= 0 and interval(src[1])[0] >= 0:
        op = ops.FLOORDIV
    result = MODULAR[op](*[s._congruence for s in src])
    if result == ANY or (op in _REMAINDERS and may_be_zero(src[1])):
        return ANY
    if dtype.kind == "index" or never_wraps(node):
        return result
    return wrapped(dtype.bits, result)


def never_wraps(node: UOp) -> bool:
    """Whether the exact result is always a value of the node's type."""
    dtype = node.dtype
    low, high = intervals.NUMBER[node.op](dtype, *[s._interval for s in node.src])
    lowest, highest = limits(dtype)
    return lowest <= low and high <= highest


def may_be_zero(node: UOp) -> bool:
    """Whether 0 is within the node's bounds."""
    low, high = interval(node)
    return low <= 0 <= high


_REMAINDERS = frozenset({ops.FLOORMOD, ops.TRUNCMOD})

_JOINED: dict[Op, Callable[[UOp], Congruence]] = {
    ops.VECTORIZE: _over_lanes(congruence, join), ops.GEP: _of_lane(congruence), ops.WIDEN: _of_first(congruence),
}  # fmt: skip

# --- the loops that a node varies in ---------------------------------------------------------------------------------


def ranges(node: UOp) -> int:
    """A bit mask, 1 << axis, of the ranges that the node's value varies in.

    A reduction does not vary in its own ranges (but in what their ends vary in); an accumulator does. A buffer after
    a barrier, like the barrier, varies in the loops that the stored values vary in and the places stored to don't:
    over the others the buffer is complete. A sink varies in none.
    """
    known = node._ranges
    if known is not None:
        return known
    for operand in node.src:
        if operand._ranges is None:
            _fill(node, "_ranges", _always, _ranges)
            known = node._ranges
            assert known is not None
            return known
    known = node._ranges = _ranges(node)
    return known


def _always(node: UOp) -> bool:
    return True


def _ranges(node: UOp) -> int:
    """The ranges of a node whose operands' ranges are known."""
    if node.op is ops.BARRIER:
        return _of_barrier(node)
    mask = 0
    for operand in node.src:
        mask |= ranges(operand)
    if node.op in _BOUND_BY:
        mask &= ~_BOUND_BY[node.op](node)
    elif node.op is ops.RANGE:
        mask |= axis_bit(node)
    elif isinstance(node.arg, Narrowed):
        mask |= ranges(node.arg.node)
    return mask


def axis_bit(node: UOp) -> int:
    """The bit of a RANGE node in a mask of ranges; 0 for another node."""
    return 1 << node.arg.axis if isinstance(node.arg, RangeArg) else 0


def _axes(nodes: tuple[UOp, ...]) -> int:
    mask = 0
    for node in nodes:
        mask |= axis_bit(node)
    return mask


def _of_barrier(node: UOp) -> int:
    mask = 0
    for store in node.src:
        done = 0
        while store.op is ops.WIDEN:
            done |= axis_bit(store.src[1])
            store = store.src[0]
        if store.op is ops.STORE:
            done |= ranges(store.src[1])
        mask |= ranges(store) & ~done
    return mask


_BOUND_BY: dict[Op, Callable[[UOp], int]] = {
    ops.REDUCE: lambda node: _axes(node.src[1:]),
    ops.GROUP_REDUCE: lambda node: _axes(node.src[4:]),
    ops.PHI: lambda node: _axes(node.src[0].src[1:]) if node.src[0].op is ops.DEFINE_ACC else 0,
    ops.WIDEN: lambda node: axis_bit(node.src[1]),
    ops.SINK: lambda node: -1,
}
"""The ranges that end with a node."""

# --- predicates for guards -------------------------------------------------------------------------------------------


def divides(c: int, node: UOp) -> bool:
    """Whether every value of the node is proven to be a multiple of `c`."""
    m, r = congruence(node)
    return m % c == 0 and r % c == 0 if c else m == 0 and r == 0


def fits(node: UOp, dtype: DType) -> bool:
    """Whether every value of an integer or index node is proven to be one of `dtype`, exactly.

    In a float type these are the integers with no more digits than the mantissa has. Of a float nothing is known.
    """
    if node.dtype.is_float:
        return False
    low, high = interval(node)
    if dtype.kind == "float":
        whole = 1 << _MANTISSA[dtype.scalar.name]
        return -whole <= low and high <= whole
    return dtype.lowest <= low and high <= dtype.highest


_MANTISSA = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def depends_on(node: UOp, counter: UOp) -> bool:
    """Whether the node varies in this RANGE."""
    return bool(ranges(node) & axis_bit(counter))
