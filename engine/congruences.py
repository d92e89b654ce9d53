"""Congruence arithmetic: what an operator does to what is known of its operands modulo some m.

A congruence is a pair (m, r): the value is r plus some multiple of m. (0, r) is exactly r, (1, 0) says nothing;
otherwise 0 <= r < m. The functions hold for mathematical integers; `engine.facts` weakens a result with `wrapped`
where it may leave its type. They know nothing of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from . import ops
from .ops import Op

Congruence = tuple[int, int]
Transfer = Callable[..., Congruence]
"""A congruence for each operand -> the result's."""

ANY: Congruence = (1, 0)

CAP = 1 << 128
"""Larger moduli and constants are replaced by a power of two, so that numbers stay short in long chains."""


def normal(m: int, r: int) -> Congruence:
    """(m, r) in its normal form."""
    if 0 < m <= CAP:
        return m, r % m
    if m == 0 and -CAP <= r <= CAP:
        return m, r
    m = (m or r) & -(m or r)
    m = min(m, CAP)
    return m, r % m


def wrapped(bits: int, congruence: Congruence) -> Congruence:
    """What is left where the value may wrap modulo 2^bits: the power of two in m."""
    m = gcd(congruence[0], 1 << bits)
    return m, congruence[1] % m


def join(a: Congruence, b: Congruence) -> Congruence:
    """The strongest congruence that holds for what either side holds for."""
    if a == b:
        return a
    return normal(gcd(a[0], b[0], a[1] - b[1]), a[1])


def add(a: Congruence, b: Congruence) -> Congruence:
    return normal(gcd(a[0], b[0]), a[1] + b[1])


def sub(a: Congruence, b: Congruence) -> Congruence:
    return normal(gcd(a[0], b[0]), a[1] - b[1])


def neg(a: Congruence) -> Congruence:
    return normal(a[0], -a[1])


def mul(a: Congruence, b: Congruence) -> Congruence:
    (m, r), (n, s) = a, b
    return normal(gcd(m * n, m * s, n * r), r * s)


def mulacc(a: Congruence, b: Congruence, c: Congruence) -> Congruence:
    return add(mul(a, b), c)


def floordiv(a: Congruence, b: Congruence) -> Congruence:
    (m, r), (n, s) = a, b
    if n == 0 and s != 0 and m % s == 0:
        return normal(abs(m // s), r // s)
    return ANY


def truncdiv(a: Congruence, b: Congruence) -> Congruence:
    """Where the division leaves no remainder; `floordiv` is right too where neither operand is negative."""
    if b[1] != 0 and a[1] % b[1] == 0:
        return floordiv(a, b)
    return ANY


def remainder(a: Congruence, b: Congruence) -> Congruence:
    """Of either division: the value is a minus a multiple of b."""
    if b == (0, 0):
        return ANY
    return normal(gcd(a[0], b[0], b[1]), a[1])


def convert(a: Congruence) -> Congruence:
    return a


def where(condition: Congruence, a: Congruence, b: Congruence) -> Congruence:
    if condition[0] == 0:
        return a if condition[1] else b
    return join(a, b)


def shl(a: Congruence, b: Congruence) -> Congruence:
    """By a constant, a product; by at least s places (unknown here) nothing is claimed."""
    m, amount = b
    return mul(a, (0, 1 << amount)) if m == 0 and 0 <= amount < 64 else ANY


def shr(a: Congruence, b: Congruence) -> Congruence:
    m, amount = b
    return floordiv(a, (0, 1 << amount)) if m == 0 and 0 <= amount < 64 else ANY


def not_(a: Congruence) -> Congruence:
    return normal(a[0], -1 - a[1])


# --- bits: how many of the lowest are known --------------------------------------------------------------------------


def _known(a: Congruence) -> int:
    """How many of the lowest bits are those of a[1]; of a constant, all that count."""
    m = a[0]
    return (m & -m).bit_length() - 1 if m else 128


def _trailing(bits: int, start: int, end: int) -> int:
    """How many ones `bits` has from place `start` on, below `end`."""
    rest = ~(bits >> start)
    return min((rest & -rest).bit_length() - 1 if rest else end, end - start)


def and_(a: Congruence, b: Congruence) -> Congruence:
    return _masked(a, b, False)


def or_(a: Congruence, b: Congruence) -> Congruence:
    return _masked(a, b, True)


def _masked(a: Congruence, b: Congruence, absorbing: bool) -> Congruence:
    """A bit is known where both are, and where one is known to be zero (of `and`) or one (of `or`)."""
    if _known(a) > _known(b):
        a, b = b, a
    low, high = _known(a), _known(b)
    low += _trailing(b[1] if absorbing else ~b[1], low, high)
    return normal(1 << low, a[1] | b[1] if absorbing else a[1] & b[1])


def xor(a: Congruence, b: Congruence) -> Congruence:
    return normal(1 << min(_known(a), _known(b)), a[1] ^ b[1])


NUMBER: dict[Op, Transfer] = {
    ops.NEG: neg, ops.NOT: not_, ops.CAST: convert, ops.BITCAST: convert,
    ops.ADD: add, ops.SUB: sub, ops.MUL: mul, ops.MAX: join, ops.MIN: join,
    ops.FLOORDIV: floordiv, ops.FLOORMOD: remainder, ops.TRUNCDIV: truncdiv, ops.TRUNCMOD: remainder,
    ops.AND: and_, ops.OR: or_, ops.XOR: xor, ops.SHL: shl, ops.SHR: shr,
    ops.WHERE: where, ops.MULACC: mulacc,
}  # fmt: skip
"""Of the elementwise operators whose result is an integer or an index."""
