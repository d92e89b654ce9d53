"""What every scalar operator means to the solver: one table for each kind of type.

A wrapping integer is a bit-vector, an index a mathematical integer, a float a value of IEEE 754 as the solver has it,
a bool a truth value. `tests/verify/test_meanings.py` compares each entry with the operator's exact evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import z3  # type: ignore[import-untyped] # has no types

from ...engine import ops
from ...engine.dtypes import DType, Scalar
from ...engine.ops import Op

Expr: TypeAlias = Any
"""A formula of the solver, which has no types that a checker could read."""
Meaning = Callable[..., Expr]

NEAREST = z3.RNE()
_FLOATS = {"float16": (5, 11), "bfloat16": (8, 8), "float32": (8, 24), "float64": (11, 53)}


def sort_of(dtype: DType) -> z3.SortRef:
    """The sort of a scalar type."""
    match dtype.kind:
        case "bool":
            return z3.BoolSort()
        case "index":
            return z3.IntSort()
        case "float":
            return z3.FPSort(*_FLOATS[dtype.scalar.name])
        case _:
            return z3.BitVecSort(dtype.bits)


def constant(dtype: DType, value: Scalar) -> Expr:
    """A constant of a scalar type."""
    match dtype.kind:
        case "bool":
            return z3.BoolVal(bool(value))
        case "index":
            return z3.IntVal(int(value))
        case "float":
            return _float(float(value), sort_of(dtype))
        case _:
            return z3.BitVecVal(int(value), dtype.bits)


def _float(value: float, sort: z3.SortRef) -> Expr:
    if value != value:
        return z3.fpNaN(sort)
    if value in (float("inf"), float("-inf")):
        return z3.fpInfinity(sort, value < 0)
    if value == 0:
        return z3.fpZero(sort, str(value).startswith("-"))
    exact = Fraction(value)
    return z3.simplify(z3.fpToFP(NEAREST, z3.RealVal(f"{exact.numerator}/{exact.denominator}"), sort))


def same(a: Expr, b: Expr) -> Expr:
    """Whether two values are the same bits: every NaN is one value, 0.0 is not -0.0."""
    return a == b


# --- integers that wrap ----------------------------------------------------------------------------------------------


def _floordiv_signed(a: Expr, b: Expr) -> Expr:
    rest = z3.SRem(a, b)
    return z3.If(z3.And(rest != 0, (rest < 0) != (b < 0)), a / b - 1, a / b)


def _floormod_signed(a: Expr, b: Expr) -> Expr:
    rest = z3.SRem(a, b)
    return z3.If(z3.And(rest != 0, (rest < 0) != (b < 0)), rest + b, rest)


_BITS: dict[Op, Meaning] = {
    ops.NEG: lambda a: -a,
    ops.NOT: lambda a: ~a,
    ops.ADD: lambda a, b: a + b,
    ops.SUB: lambda a, b: a - b,
    ops.MUL: lambda a, b: a * b,
    ops.AND: lambda a, b: a & b,
    ops.OR: lambda a, b: a | b,
    ops.XOR: lambda a, b: a ^ b,
    ops.SHL: lambda a, b: a << b,
    ops.EQ: lambda a, b: a == b,
    ops.NE: lambda a, b: a != b,
    ops.MULACC: lambda a, b, c: a * b + c,
}

SIGNED: dict[Op, Meaning] = _BITS | {
    ops.FLOORDIV: _floordiv_signed,
    ops.FLOORMOD: _floormod_signed,
    ops.TRUNCDIV: lambda a, b: a / b,
    ops.TRUNCMOD: z3.SRem,
    ops.MAX: lambda a, b: z3.If(a > b, a, b),
    ops.MIN: lambda a, b: z3.If(a < b, a, b),
    ops.SHR: lambda a, b: a >> b,
    ops.LT: lambda a, b: a < b,
    ops.LE: lambda a, b: a <= b,
    ops.GT: lambda a, b: a > b,
    ops.GE: lambda a, b: a >= b,
}

UNSIGNED: dict[Op, Meaning] = _BITS | {
    ops.FLOORDIV: z3.UDiv,
    ops.FLOORMOD: z3.URem,
    ops.TRUNCDIV: z3.UDiv,
    ops.TRUNCMOD: z3.URem,
    ops.MAX: lambda a, b: z3.If(z3.UGT(a, b), a, b),
    ops.MIN: lambda a, b: z3.If(z3.ULT(a, b), a, b),
    ops.SHR: z3.LShR,
    ops.LT: z3.ULT,
    ops.LE: z3.ULE,
    ops.GT: z3.UGT,
    ops.GE: z3.UGE,
}

# --- truth values ----------------------------------------------------------------------------------------------------

BOOL: dict[Op, Meaning] = {
    ops.NEG: z3.Not,
    ops.NOT: z3.Not,
    ops.ADD: z3.Or,
    ops.MUL: z3.And,
    ops.MAX: z3.Or,
    ops.MIN: z3.And,
    ops.AND: z3.And,
    ops.OR: z3.Or,
    ops.XOR: z3.Xor,
    ops.LT: lambda a, b: z3.And(z3.Not(a), b),
    ops.LE: lambda a, b: z3.Or(z3.Not(a), b),
    ops.GT: lambda a, b: z3.And(a, z3.Not(b)),
    ops.GE: lambda a, b: z3.Or(a, z3.Not(b)),
    ops.EQ: lambda a, b: a == b,
    ops.NE: lambda a, b: a != b,
}

# --- indices: mathematical integers; the divisions stand in `division` -----------------------------------------------

INTEGER: dict[Op, Meaning] = {
    ops.NEG: lambda a: -a,
    ops.NOT: lambda a: -a - 1,
    ops.ADD: lambda a, b: a + b,
    ops.SUB: lambda a, b: a - b,
    ops.MUL: lambda a, b: a * b,
    ops.MAX: lambda a, b: z3.If(a > b, a, b),
    ops.MIN: lambda a, b: z3.If(a < b, a, b),
    ops.LT: lambda a, b: a < b,
    ops.LE: lambda a, b: a <= b,
    ops.GT: lambda a, b: a > b,
    ops.GE: lambda a, b: a >= b,
    ops.EQ: lambda a, b: a == b,
    ops.NE: lambda a, b: a != b,
    ops.MULACC: lambda a, b, c: a * b + c,
}

# --- floats ----------------------------------------------------------------------------------------------------------


def _function(op: Op, a: Expr) -> Expr:
    """An operator of which the solver knows that it is one function, besides its special values below."""
    return z3.Function(f"{op.name}_{a.sort().sexpr()}", a.sort(), a.sort())(a)


def _exp2(a: Expr) -> Expr:
    sort = a.sort()
    finite = z3.If(z3.fpIsZero(a), z3.fpToFP(NEAREST, z3.RealVal(1), sort), z3.fpAbs(_function(ops.EXP2, a)))
    infinite = z3.If(z3.fpIsNegative(a), z3.fpPlusZero(sort), z3.fpPlusInfinity(sort))
    return z3.If(z3.fpIsNaN(a), a, z3.If(z3.fpIsInf(a), infinite, finite))


def _log2(a: Expr) -> Expr:
    sort = a.sort()
    outside = z3.Or(z3.fpIsNaN(a), z3.And(z3.fpIsNegative(a), z3.Not(z3.fpIsZero(a))))
    inside = z3.If(z3.fpIsInf(a), a, z3.If(z3.fpIsZero(a), z3.fpMinusInfinity(sort), _function(ops.LOG2, a)))
    return z3.If(outside, z3.fpNaN(sort), inside)


def _sin(a: Expr) -> Expr:
    nowhere = z3.Or(z3.fpIsNaN(a), z3.fpIsInf(a))
    return z3.If(nowhere, z3.fpNaN(a.sort()), z3.If(z3.fpIsZero(a), a, _function(ops.SIN, a)))


def _rounded(mode: z3.FPRMRef) -> Meaning:
    return lambda a: z3.fpRoundToIntegral(mode, a)


FLOAT: dict[Op, Meaning] = {
    ops.NEG: z3.fpNeg,
    ops.RECIP: lambda a: z3.fpDiv(NEAREST, constant_like(a, 1), a),
    ops.SQRT: lambda a: z3.fpSqrt(NEAREST, a),
    ops.EXP2: _exp2,
    ops.LOG2: _log2,
    ops.SIN: _sin,
    ops.FLOOR: _rounded(z3.RTN()),
    ops.CEIL: _rounded(z3.RTP()),
    ops.TRUNC: _rounded(z3.RTZ()),
    ops.ROUND: _rounded(NEAREST),
    ops.ADD: lambda a, b: z3.fpAdd(NEAREST, a, b),
    ops.SUB: lambda a, b: z3.fpSub(NEAREST, a, b),
    ops.MUL: lambda a, b: z3.fpMul(NEAREST, a, b),
    ops.DIV: lambda a, b: z3.fpDiv(NEAREST, a, b),
    ops.MAX: lambda a, b: z3.If(z3.Or(z3.fpIsNaN(a), z3.fpGT(a, b)), a, b),
    ops.MIN: lambda a, b: z3.If(z3.Or(z3.fpIsNaN(a), z3.fpLT(a, b)), a, b),
    ops.LT: z3.fpLT,
    ops.LE: z3.fpLEQ,
    ops.GT: z3.fpGT,
    ops.GE: z3.fpGEQ,
    ops.EQ: z3.fpEQ,
    ops.NE: lambda a, b: z3.Not(z3.fpEQ(a, b)),
    ops.MULACC: lambda a, b, c: z3.fpAdd(NEAREST, z3.fpMul(NEAREST, a, b), c),
}

ALTERNATIVES: dict[Op, Meaning] = {
    ops.MAX: lambda a, b: z3.If(z3.And(z3.fpIsZero(a), z3.fpIsZero(b)), a, FLOAT[ops.MAX](a, b)),
    ops.MIN: lambda a, b: z3.If(z3.And(z3.fpIsZero(a), z3.fpIsZero(b)), a, FLOAT[ops.MIN](a, b)),
    ops.MULACC: lambda a, b, c: z3.fpFMA(NEAREST, a, b, c),
}
"""The other result that a float operator may give: the other zero of an extremum, the fused product and sum."""


def constant_like(a: Expr, value: int) -> Expr:
    """`value` in the sort of the float `a`."""
    return z3.simplify(z3.fpToFP(NEAREST, z3.RealVal(value), a.sort()))


REAL: dict[Op, Meaning] = {
    op: INTEGER[op]
    for op in (ops.NEG, ops.ADD, ops.SUB, ops.MUL, ops.MAX, ops.MIN, ops.MULACC,
               ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)
} | {
    ops.DIV: lambda a, b: a / b,
    ops.RECIP: lambda a: 1 / a,
    ops.EXP2: lambda a: _function(ops.EXP2, a),
    ops.LOG2: lambda a: _function(ops.LOG2, a),
    ops.SIN: lambda a: _function(ops.SIN, a),
    ops.SQRT: lambda a: _function(ops.SQRT, a),
    ops.FLOOR: lambda a: z3.ToReal(z3.ToInt(a)),
    ops.CEIL: lambda a: -z3.ToReal(z3.ToInt(-a)),
}  # fmt: skip
"""Floats as real numbers: for rules whose flags allow rounding to differ."""

BY_KIND: dict[str, dict[Op, Meaning]] = {
    "bool": BOOL, "sint": SIGNED, "uint": UNSIGNED, "index": INTEGER, "float": FLOAT,
}  # fmt: skip
