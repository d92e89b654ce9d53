"""The numbers of guards: mathematical integers without a type, as formulas.

A constant of a wrapping type is a bit-vector of that many bits; a guard computes with its mathematical value. So each
step gets as many more bits as its result can need, and nothing wraps. Numbers of an index are the solver's integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import z3  # type: ignore[import-untyped] # has no types

from ...engine import ops
from ...engine.dtypes import DType
from ...engine.ops import Op
from .conversions import resized
from .division import Division
from .meanings import Expr, constant

MOST_BITS = 300


class Unsupported(Exception):
    """A form that has no meaning for the solver; the text says which."""


@dataclass(frozen=True, slots=True)
class Wide:
    """A signed bit-vector that holds a mathematical integer without loss."""

    term: Expr

    @property
    def bits(self) -> int:
        size: int = self.term.size()
        return size


@dataclass(frozen=True, slots=True)
class Whole:
    """A mathematical integer, or a real number where floats are counted as such."""

    term: Expr


@dataclass(frozen=True, slots=True)
class Ieee:
    """A float of a type."""

    term: Expr
    dtype: DType


Number = int | float | bool | Wide | Whole | Ieee


def number_of(term: Expr, dtype: DType, reals: bool = False) -> Number:
    """The mathematical value of a constant of a scalar type."""
    match dtype.kind:
        case "bool":
            return Wide(z3.If(term, z3.BitVecVal(1, 2), z3.BitVecVal(0, 2)))
        case "index":
            return Whole(term)
        case "float":
            return Whole(term) if reals else Ieee(term, dtype)
        case _:
            return Wide(resized(term, dtype.kind == "sint", dtype.bits + 1))


def in_type(number: Number, dtype: DType) -> Expr:
    """The number wrapped into a scalar integer type, or made a constant of it."""
    match number:
        case Wide() if dtype.kind == "index":
            return z3.BV2Int(number.term, True)
        case Wide() if dtype.is_int:
            return resized(number.term, True, dtype.bits)
        case Whole() if dtype.kind == "index" or dtype.is_float and z3.is_real(number.term):
            return number.term
        case Whole() if dtype.is_int:
            return z3.Int2BV(number.term, dtype.bits)
        case Ieee() if number.dtype is dtype:
            return number.term
        case Wide() | Whole() | Ieee():
            raise Unsupported(f"a computed number as {dtype}")
        case _:
            if isinstance(number, float) and not dtype.is_float:
                raise Unsupported(f"{number} as {dtype}")
            return constant(dtype, dtype.canonical(number))


def operate(op: Op, a: Number, b: Number, division: Division) -> Number | Expr:
    """`a op b` on mathematical numbers; a comparison gives a truth value."""
    if isinstance(a, bool | int | float) and isinstance(b, bool | int | float):
        return _plain(op, a, b)
    if isinstance(a, float) and math.isinf(a) or isinstance(b, float) and math.isinf(b):
        return _with_infinity(op, a, b)
    if isinstance(a, Ieee) or isinstance(b, Ieee):
        return _floats(op, a, b)
    if isinstance(a, Whole) or isinstance(b, Whole):
        return _wholes(op, _whole(a), _whole(b), division)
    return _wides(op, _wide(a), _wide(b))


_PLAIN: dict[Op, Callable[..., int | float | bool]] = {
    ops.ADD: lambda a, b: a + b, ops.SUB: lambda a, b: a - b, ops.MUL: lambda a, b: a * b,
    ops.FLOORDIV: lambda a, b: a // b, ops.FLOORMOD: lambda a, b: a % b,
    ops.AND: lambda a, b: a & b, ops.OR: lambda a, b: a | b, ops.XOR: lambda a, b: a ^ b,
    ops.SHL: lambda a, b: a << b, ops.SHR: lambda a, b: a >> b,
    ops.LT: lambda a, b: a < b, ops.LE: lambda a, b: a <= b, ops.GT: lambda a, b: a > b,
    ops.GE: lambda a, b: a >= b, ops.EQ: lambda a, b: a == b, ops.NE: lambda a, b: a != b,
    ops.MIN: min, ops.MAX: max,
}  # fmt: skip


def _plain(op: Op, a: float, b: float) -> Number:
    return _PLAIN[op](a, b)


def _with_infinity(op: Op, a: Number, b: Number) -> bool:
    """A comparison with an infinite bound, beside which every other number is 0."""
    if op.negated is None:
        raise Unsupported("arithmetic on an infinite bound")
    x = a if isinstance(a, float) and math.isinf(a) else 0
    y = b if isinstance(b, float) and math.isinf(b) else 0
    return bool(_PLAIN[op](x, y))


def _whole(number: Number) -> Expr:
    if isinstance(number, Whole):
        return number.term
    if isinstance(number, Wide):
        return z3.BV2Int(number.term, True)
    if isinstance(number, Ieee):
        raise Unsupported("a float among integers")
    return z3.RealVal(number) if isinstance(number, float) else z3.IntVal(int(number))


def _wide(number: Number) -> Expr:
    if isinstance(number, Wide):
        return number.term
    if isinstance(number, bool | int):
        return z3.BitVecVal(number, max(2, int(number).bit_length() + 1))
    raise Unsupported("a fraction among integers")


_COMPARE: dict[Op, Callable[[Expr, Expr], Expr]] = {
    ops.LT: lambda a, b: a < b, ops.LE: lambda a, b: a <= b, ops.GT: lambda a, b: a > b, ops.GE: lambda a, b: a >= b,
    ops.EQ: lambda a, b: a == b, ops.NE: lambda a, b: a != b,
}  # fmt: skip


def _wholes(op: Op, a: Expr, b: Expr, division: Division) -> Number | Expr:
    if op in _COMPARE:
        return _COMPARE[op](a, b)
    match op:
        case ops.ADD:
            return Whole(a + b)
        case ops.SUB:
            return Whole(a - b)
        case ops.MUL:
            return Whole(a * b)
        case ops.FLOORDIV:
            return Whole(division.floor(a, b)[0])
        case ops.FLOORMOD:
            return Whole(division.floor(a, b)[1])
        case ops.MIN:
            return Whole(z3.If(a < b, a, b))
        case ops.MAX:
            return Whole(z3.If(a > b, a, b))
        case _:
            return Whole(z3.Function(f"bit{op.name}", *[z3.IntSort()] * 3)(a, b))


def _wides(op: Op, a: Expr, b: Expr) -> Number | Expr:
    need = {ops.MUL: a.size() + b.size()}.get(op, max(a.size(), b.size()) + 1)
    if need > MOST_BITS or op in (ops.SHL, ops.SHR):
        raise Unsupported(f"`{op.name}` in a guard on wrapping integers")
    a, b = resized(a, True, need), resized(b, True, need)
    if op in _COMPARE:
        return _COMPARE[op](a, b)
    rest = z3.SRem(a, b)
    mends = z3.And(rest != 0, (rest < 0) != (b < 0))
    results: dict[Op, Callable[[], Expr]] = {
        ops.ADD: lambda: a + b, ops.SUB: lambda: a - b, ops.MUL: lambda: a * b,
        ops.AND: lambda: a & b, ops.OR: lambda: a | b, ops.XOR: lambda: a ^ b,
        ops.FLOORDIV: lambda: z3.If(mends, a / b - 1, a / b), ops.FLOORMOD: lambda: z3.If(mends, rest + b, rest),
        ops.MIN: lambda: z3.If(a < b, a, b), ops.MAX: lambda: z3.If(a > b, a, b),
    }  # fmt: skip
    return Wide(results[op]())


_FLOAT_COMPARE: dict[Op, Callable[[Expr, Expr], Expr]] = {
    ops.LT: z3.fpLT, ops.LE: z3.fpLEQ, ops.GT: z3.fpGT, ops.GE: z3.fpGEQ, ops.EQ: z3.fpEQ,
    ops.NE: lambda a, b: z3.Not(z3.fpEQ(a, b)),
}  # fmt: skip


def _floats(op: Op, a: Number, b: Number) -> Expr:
    """Comparisons of float constants; their arithmetic in a guard is Python's, in double precision."""
    dtype = a.dtype if isinstance(a, Ieee) else b.dtype if isinstance(b, Ieee) else None
    assert dtype is not None
    if op not in _FLOAT_COMPARE:
        raise Unsupported("arithmetic on floats in a guard")
    return _FLOAT_COMPARE[op](_ieee(a, dtype), _ieee(b, dtype))


def _ieee(number: Number, dtype: DType) -> Expr:
    if isinstance(number, Ieee) and number.dtype is dtype:
        return number.term
    if isinstance(number, bool | int | float) and float(number) == dtype.canonical(float(number)):
        return constant(dtype, float(number))
    raise Unsupported("floats of several types in a guard")
