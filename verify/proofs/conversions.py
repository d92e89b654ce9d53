"""What `cast` and `bitcast` mean to the solver, and where they are defined."""

from __future__ import annotations

import z3  # type: ignore[import-untyped] # has no types

from ...engine.dtypes import DType
from .meanings import NEAREST, Expr, constant, sort_of

TRUE = z3.BoolVal(True)


def cast(a: Expr, source: DType, target: DType) -> tuple[Expr, Expr]:
    """`a` converted to the scalar type `target`, and whether that has a value."""
    if source is target:
        return a, TRUE
    if target.kind == "bool":
        return _to_bool(a, source), TRUE
    if source.kind == "bool":
        return z3.If(a, constant(target, 1), constant(target, 0)), TRUE
    if target.is_float:
        return _to_float(a, source, target), TRUE
    if source.is_float:
        return _truncated(a, source, target)
    if target.kind == "index":
        return z3.BV2Int(a, source.kind == "sint"), TRUE
    if source.kind == "index":
        return z3.Int2BV(a, target.bits), TRUE
    return resized(a, source.kind == "sint", target.bits), TRUE


def resized(a: Expr, signed: bool, bits: int) -> Expr:
    """A bit-vector cut or extended to `bits`."""
    more = bits - a.size()
    if more <= 0:
        return z3.Extract(bits - 1, 0, a) if more < 0 else a
    return z3.SignExt(more, a) if signed else z3.ZeroExt(more, a)


def _to_bool(a: Expr, source: DType) -> Expr:
    return z3.Not(z3.fpIsZero(a)) if source.is_float else a != constant(source, 0)


def _to_float(a: Expr, source: DType, target: DType) -> Expr:
    if source.is_float:
        return z3.fpFPToFP(NEAREST, a, sort_of(target))
    if source.kind == "sint":
        return z3.fpSignedToFP(NEAREST, a, sort_of(target))
    if source.kind == "uint":
        return z3.fpUnsignedToFP(NEAREST, a, sort_of(target))
    return z3.Function(f"index_to_{target.name}", z3.IntSort(), sort_of(target))(a)


def _truncated(a: Expr, source: DType, target: DType) -> tuple[Expr, Expr]:
    """A float towards zero; of an index the solver knows only that it is one function of the float."""
    finite = z3.Not(z3.Or(z3.fpIsNaN(a), z3.fpIsInf(a)))
    if target.kind == "index":
        return z3.Function(f"{source.name}_to_index", a.sort(), z3.IntSort())(a), finite
    whole = z3.fpRoundToIntegral(z3.RTZ(), a)
    low, end = constant(source, float(target.lowest)), constant(source, float(target.highest + 1))
    inside = z3.And(finite, z3.fpGEQ(whole, low), z3.fpLT(whole, end))
    convert = z3.fpToSBV if target.kind == "sint" else z3.fpToUBV
    return convert(z3.RTZ(), a, z3.BitVecSort(target.bits)), inside


def bitcast(a: Expr, source: DType, target: DType) -> tuple[Expr, Expr]:
    """The same bits as `target`; a NaN, whose payload is lost, has no value on either side."""
    if source.is_float and target.is_float:
        return (a, z3.Not(z3.fpIsNaN(a))) if source is target else _through_bits(a, source, target)
    if source.is_float:
        return z3.fpToIEEEBV(a), z3.Not(z3.fpIsNaN(a))
    if target.is_float:
        made = z3.fpBVToFP(a, sort_of(target))
        return made, z3.Not(z3.fpIsNaN(made))
    return a, TRUE


def _through_bits(a: Expr, source: DType, target: DType) -> tuple[Expr, Expr]:
    made = z3.fpBVToFP(z3.fpToIEEEBV(a), sort_of(target))
    return made, z3.And(z3.Not(z3.fpIsNaN(a)), z3.Not(z3.fpIsNaN(made)))
