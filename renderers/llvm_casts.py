"""Conversions between types as LLVM instructions.

`fptosi` and `fptoui` of a value out of range are poison, which may spread into control flow; frozen, they are any
number, as semantics.md allows. A rounding in two steps would not be to nearest, so the first step of double ->
float -> half (or bfloat16) rounds to odd: it keeps in the last bit that something was lost. The conversions of LLVM
that would call a run-time library (double to half, wide integers to half) are never used.
"""

from __future__ import annotations

from ..engine.dtypes import DType, bfloat16, float16, float32, float64
from .llvm_text import Builder, float_literal, literal, overload, register_type, splat, widened


def cast(b: Builder, source: DType, to: DType, x: str) -> str:
    """`x` converted to `to`, which has as many lanes."""
    if to.kind == "bool":
        return _to_bool(b, source, x)
    if source.is_float:
        return _from_float(b, source, to, x) if to.is_float else _float_to_int(b, source, to, x)
    return _int_to_float(b, source, to, x) if to.is_float else _int_to_int(b, source, to, x)


def bitcast(b: Builder, source: DType, to: DType, x: str) -> str:
    """The bits of `x` read as `to`."""
    if source.kind == to.kind == "bool" or register_type(source) == register_type(to):
        return x
    if to.kind == "bool":
        return _to_bool(b, source, x)
    if source.kind == "bool":
        return b.emit(f"zext {register_type(source)} {x} to {register_type(to)}")
    return b.emit(f"bitcast {register_type(source)} {x} to {register_type(to)}")


def _to_bool(b: Builder, source: DType, x: str) -> str:
    if source.kind == "bool":
        return x
    if source.scalar is bfloat16:  # any bit but the sign's
        magnitude = b.emit(f"and {register_type(source)} {x}, {splat('i16', '32767', source.lanes)}")
        return b.emit(f"icmp ne {register_type(source)} {magnitude}, {splat('i16', '0', source.lanes)}")
    compare = "fcmp une" if source.is_float else "icmp ne"
    return b.emit(f"{compare} {register_type(source)} {x}, {literal(source, 0)}")


def _int_to_int(b: Builder, source: DType, to: DType, x: str) -> str:
    old, new = register_type(source), register_type(to)
    if old == new:
        return x
    if source.kind == "bool":
        return b.emit(f"zext {old} {x} to {new}")
    if to.bits < source.bits:
        return b.emit(f"trunc {old} {x} to {new}")
    return b.emit(f"{'sext' if source.kind == 'sint' else 'zext'} {old} {x} to {new}")


def _float_to_int(b: Builder, source: DType, to: DType, x: str) -> str:
    if source.bits == 16:
        source, x = float32.vec(source.lanes), widen(b, source, x)
    convert = "fptosi" if to.kind == "sint" else "fptoui"
    number = b.emit(f"{convert} {register_type(source)} {x} to {register_type(to)}")
    return b.emit(f"freeze {register_type(to)} {number}")


def _int_to_float(b: Builder, source: DType, to: DType, x: str) -> str:
    """Integers that a float32 cannot hold are beyond float16's range, so float32 is a safe way to it.

    To bfloat16 the way is a double that rounds to odd; see `_sticky` for 64-bit integers.
    """
    convert = "sitofp" if source.kind == "sint" else "uitofp"
    via = to
    if to.bits == 16:
        exact = source.bits <= 16 or to.scalar is float16
        via = (float32 if exact else float64).vec(to.lanes)
        if source.bits == 64 and not exact:
            x = _sticky(b, source, x)
    number = b.emit(f"{convert} {register_type(source)} {x} to {register_type(via)}")
    return number if via is to else _from_float(b, via, to, number)


def _sticky(b: Builder, source: DType, x: str) -> str:
    """A 64-bit integer whose low 11 bits are folded into bit 11 where it has more than 53 bits.

    The result is exact as a double, and rounds to any type of at most 40 bits as `x` does.
    """
    kind, lanes = register_type(source), source.lanes

    def number(value: int) -> str:
        return splat("i64", str(value), lanes)

    low = b.emit(f"and {kind} {x}, {number(2047)}")
    lost = b.emit(f"icmp ne {kind} {low}, {number(0)}")
    bit = b.emit(f"select {widened('i1', lanes)} {lost}, {kind} {number(2048)}, {kind} {number(0)}")
    high = b.emit(f"and {kind} {x}, {number(-2048)}")
    folded = b.emit(f"or {kind} {high}, {bit}")
    magnitude = x
    if source.kind == "sint":  # the least integer's magnitude is itself, and large as an unsigned number
        magnitude = b.call(f"llvm.abs.{overload('i64', lanes)}", kind, (kind, x), ("i1", "false"))
    large = b.emit(f"icmp ugt {kind} {magnitude}, {number(1 << 53)}")
    return b.emit(f"select {widened('i1', lanes)} {large}, {kind} {folded}, {kind} {x}")


def _from_float(b: Builder, source: DType, to: DType, x: str) -> str:
    if source is to:
        return x
    if source.bits == 16:  # both 16-bit types are exact in float32
        return _from_float(b, float32.vec(to.lanes), to, widen(b, source, x))
    if to.bits > source.bits:
        return b.emit(f"fpext {register_type(source)} {x} to {register_type(to)}")
    if to.scalar is float32:
        return b.emit(f"fptrunc {register_type(source)} {x} to {register_type(to)}")
    if source.scalar is float64:
        x = _round_to_odd(b, x, to.lanes)
    return _narrow(b, to, x)


def widen(b: Builder, source: DType, x: str) -> str:
    """A float16 or bfloat16 as float32: exact."""
    single = register_type(float32.vec(source.lanes))
    if source.scalar is float16:
        return b.emit(f"fpext {register_type(source)} {x} to {single}")
    word = widened("i32", source.lanes)
    wide = b.emit(f"zext {register_type(source)} {x} to {word}")
    shifted = b.emit(f"shl {word} {wide}, {splat('i32', '16', source.lanes)}")
    return b.emit(f"bitcast {word} {shifted} to {single}")


def _narrow(b: Builder, to: DType, x: str) -> str:
    """A float32 rounded to float16 or bfloat16, to nearest even. A NaN stays a NaN."""
    lanes = to.lanes
    single, word = widened("float", lanes), widened("i32", lanes)
    if to.scalar is float16:
        return b.emit(f"fptrunc {single} {x} to {register_type(to)}")

    def number(value: int) -> str:
        return splat("i32", str(value), lanes)

    bits = b.emit(f"bitcast {single} {x} to {word}")
    kept = b.emit(f"lshr {word} {bits}, {number(16)}")
    odd = b.emit(f"and {word} {kept}, {number(1)}")
    biased = b.emit(f"add {word} {bits}, {number(0x7FFF)}")
    rounded = b.emit(f"add {word} {biased}, {odd}")
    nan = b.emit(f"fcmp uno {single} {x}, {splat('float', float_literal(0.0), lanes)}")
    quiet = b.emit(f"or {word} {bits}, {number(0x400000)}")
    chosen = b.emit(f"select {widened('i1', lanes)} {nan}, {word} {quiet}, {word} {rounded}")
    high = b.emit(f"lshr {word} {chosen}, {number(16)}")
    return b.emit(f"trunc {word} {high} to {register_type(to)}")


def _round_to_odd(b: Builder, x: str, lanes: int) -> str:
    """A double as a float32 that is exact, or the one of its two neighbours whose last bit is 1."""
    double, single = widened("double", lanes), widened("float", lanes)
    word, flag = widened("i32", lanes), widened("i1", lanes)
    near = b.emit(f"fptrunc {double} {x} to {single}")
    back = b.emit(f"fpext {single} {near} to {double}")
    size = b.call(f"llvm.fabs.{overload('double', lanes)}", double, (double, x))
    back_size = b.call(f"llvm.fabs.{overload('double', lanes)}", double, (double, back))
    above = b.emit(f"fcmp ogt {double} {back_size}, {size}")
    inexact = b.emit(f"fcmp one {double} {back_size}, {size}")
    bits = b.emit(f"bitcast {single} {near} to {word}")
    step = b.emit(f"sext {flag} {above} to {word}")
    below = b.emit(f"add {word} {bits}, {step}")
    mark = b.emit(f"zext {flag} {inexact} to {word}")
    odd = b.emit(f"or {word} {below}, {mark}")
    return b.emit(f"bitcast {word} {odd} to {single}")
