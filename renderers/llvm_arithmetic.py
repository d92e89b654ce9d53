"""Elementwise operators as LLVM instructions.

Data integers wrap, so an instruction gets `nsw` or `nuw` only where the operands' intervals prove that it cannot
overflow: this is what lets LLVM widen index arithmetic. A division never traps, since the side of a `where` that is
not taken is computed all the same: where the intervals do not exclude it, the divisor is made safe first. A shift
takes its amount modulo the width, since LLVM's own out-of-range shift is poison.
"""

from __future__ import annotations

from collections.abc import Callable

from ..engine import intervals, ops
from ..engine.dtypes import DType, bfloat16, float16, float32, float64
from ..engine.errors import RenderError
from ..engine.intervals import Interval
from ..engine.ops import Op
from . import llvm_math
from .llvm_casts import cast, widen
from .llvm_text import Builder, literal, overload, register_type, scalar_type, widened

Facts = Callable[[int], Interval]
"""The interval of operand number k."""


def elementwise(
    b: Builder, op: Op, dtype: DType, source: DType, operands: list[str], facts: Facts | None = None
) -> str:
    """`op` on operands, of which the first compared, shifted, … is of type `source`; the result is of type `dtype`.

    Raises RenderError for an operator that has no LLVM form on the type.
    """
    if source.scalar is bfloat16 or source.kind == "index":
        raise cannot(op, source)
    if op in _PREDICATES:
        return _compare(b, op, source, operands)
    if source.kind == "bool":
        return _logic(b, op, source, operands)
    if source.is_float:
        return _on_floats(b, op, source, operands)
    return _on_ints(b, op, source, operands, facts or (lambda k: intervals.type_range(source)))


def cannot(op: Op, dtype: DType) -> RenderError:
    """The error for an operator that must be lowered before rendering."""
    return RenderError(
        f"llvm cannot express {op.name} of {dtype}: lower the kernel with the rules for this target first, "
        f"or run it on the device 'interpreter'"
    )


def where(b: Builder, dtype: DType, condition: str, a: str, c: str) -> str:
    """`a` in the lanes where the condition holds, elsewhere `c`."""
    kind = register_type(dtype)
    return b.emit(f"select {widened('i1', dtype.lanes)} {condition}, {kind} {a}, {kind} {c}")


# --- comparisons and logic -------------------------------------------------------------------------------------------

_PREDICATES = {
    ops.LT: ("slt", "ult", "olt"),
    ops.LE: ("sle", "ule", "ole"),
    ops.GT: ("sgt", "ugt", "ogt"),
    ops.GE: ("sge", "uge", "oge"),
    ops.EQ: ("eq", "eq", "oeq"),
    ops.NE: ("ne", "ne", "une"),
}
"""The predicates of signed integers, of unsigned ones and bools, and of floats."""

_LOGIC = {
    ops.ADD: "or", ops.OR: "or", ops.MAX: "or", ops.MUL: "and", ops.AND: "and", ops.MIN: "and", ops.XOR: "xor",
}  # fmt: skip


def _compare(b: Builder, op: Op, source: DType, operands: list[str]) -> str:
    signed, unsigned, ordered = _PREDICATES[op]
    if source.is_float:
        return b.emit(f"fcmp {ordered} {register_type(source)} {operands[0]}, {operands[1]}")
    predicate = signed if source.kind == "sint" else unsigned
    return b.emit(f"icmp {predicate} {register_type(source)} {operands[0]}, {operands[1]}")


def _logic(b: Builder, op: Op, source: DType, operands: list[str]) -> str:
    kind = register_type(source)
    if op in (ops.NOT, ops.NEG):
        return b.emit(f"xor {kind} {operands[0]}, {literal(source, True)}")
    if op not in _LOGIC:
        raise cannot(op, source)
    return b.emit(f"{_LOGIC[op]} {kind} {operands[0]}, {operands[1]}")


# --- floats ----------------------------------------------------------------------------------------------------------

_FLOAT_INSTRUCTIONS = {ops.ADD: "fadd", ops.SUB: "fsub", ops.MUL: "fmul", ops.DIV: "fdiv"}

_FLOAT_INTRINSICS = {
    ops.SQRT: "sqrt",
    ops.FLOOR: "floor",
    ops.CEIL: "ceil",
    ops.TRUNC: "trunc",
    ops.ROUND: "rint",
    ops.MULACC: "fmuladd",
}

_EXTREMES = {ops.MAX: "maximum", ops.MIN: "minimum"}

_FUNCTIONS = (ops.EXP2, ops.LOG2, ops.SIN)


def _on_floats(b: Builder, op: Op, source: DType, operands: list[str]) -> str:
    kind = register_type(source)
    if op in _FLOAT_INSTRUCTIONS:
        return b.emit(f"{_FLOAT_INSTRUCTIONS[op]} {kind} {operands[0]}, {operands[1]}")
    if op is ops.NEG:
        return b.emit(f"fneg {kind} {operands[0]}")
    if op is ops.RECIP:
        return b.emit(f"fdiv {kind} {literal(source, 1.0)}, {operands[0]}")
    if op in _FLOAT_INTRINSICS:
        return intrinsic(b, _FLOAT_INTRINSICS[op], source, operands)
    if op in _EXTREMES:  # which zero is unspecified, so the code that orders zeros may go
        return intrinsic(b, _EXTREMES[op], source, operands, flags="nsz ")
    if op in _FUNCTIONS:
        return _function(b, op, source, operands[0])
    raise cannot(op, source)


def _function(b: Builder, op: Op, source: DType, x: str) -> str:
    """float32 by our own vector code; float16 through float32; float64 by the C library, lane by lane."""
    if source.scalar is float64:
        return _each_lane(b, source, x, lambda lane: intrinsic(b, op.name, float64, [lane]))
    single = float32.vec(source.lanes)
    if source.scalar is float16:
        x = widen(b, source, x)
    result = llvm_math.call(b, op, source.lanes, x)
    return cast(b, single, source, result)


def _each_lane(b: Builder, dtype: DType, x: str, function: Callable[[str], str]) -> str:
    """A function of scalars applied to every lane of `x`."""
    if dtype.lanes == 1:
        return function(x)
    kind, one = register_type(dtype), scalar_type(dtype)
    result = "poison"
    for lane in range(dtype.lanes):
        value = function(b.emit(f"extractelement {kind} {x}, i32 {lane}"))
        result = b.emit(f"insertelement {kind} {result}, {one} {value}, i32 {lane}")
    return result


def intrinsic(b: Builder, name: str, dtype: DType, operands: list[str], flags: str = "") -> str:
    """`llvm.NAME` overloaded on `dtype`, all of whose operands are of that type."""
    kind = register_type(dtype)
    function = f"llvm.{name}.{overload(scalar_type(dtype), dtype.lanes)}"
    return b.call(function, kind, *((kind, x) for x in operands), flags=flags)


# --- integers --------------------------------------------------------------------------------------------------------

_INT_INSTRUCTIONS = {ops.ADD: "add", ops.SUB: "sub", ops.MUL: "mul", ops.AND: "and", ops.OR: "or", ops.XOR: "xor"}


def _on_ints(b: Builder, op: Op, source: DType, operands: list[str], facts: Facts) -> str:
    kind = register_type(source)
    if op in _INT_INSTRUCTIONS:
        flags = _flags(op, source, facts(0), facts(1))
        return b.emit(f"{_INT_INSTRUCTIONS[op]}{flags} {kind} {operands[0]}, {operands[1]}")
    if op is ops.NEG:
        flags = _flags(ops.SUB, source, (0, 0), facts(0))
        return b.emit(f"sub{flags} {kind} {literal(source, 0)}, {operands[0]}")
    if op is ops.NOT:
        return b.emit(f"xor {kind} {operands[0]}, {literal(source, -1)}")
    if op in (ops.MAX, ops.MIN):
        return intrinsic(b, ("s" if source.kind == "sint" else "u") + op.name, source, operands)
    if op is ops.MULACC:
        product = b.emit(f"mul{_flags(ops.MUL, source, facts(0), facts(1))} {kind} {operands[0]}, {operands[1]}")
        flags = _flags(ops.ADD, source, intervals.mul(source, facts(0), facts(1)), facts(2))
        return b.emit(f"add{flags} {kind} {product}, {operands[2]}")
    if op in (ops.SHL, ops.SHR):
        return _shift(b, op, source, operands, facts)
    if op in (ops.TRUNCDIV, ops.TRUNCMOD):
        return _divide(b, op, source, operands, facts)
    raise cannot(op, source)


def _flags(op: Op, dtype: DType, a: Interval, c: Interval) -> str:
    """The flags that hold for all operands in these intervals: `nuw` where no operand and no result is negative."""
    if op is ops.ADD:
        bounds = [a[0] + c[0], a[1] + c[1]]
    elif op is ops.SUB:
        bounds = [a[0] - c[1], a[1] - c[0]]
    elif op is ops.MUL:
        bounds = [x * y for x in a for y in c]
    else:
        return ""
    if min(bounds) < dtype.lowest or max(bounds) > dtype.highest:
        return ""
    positive = min(a[0], c[0], *bounds) >= 0
    return (" nuw" if positive else "") + (" nsw" if dtype.kind == "sint" else "")


def _shift(b: Builder, op: Op, source: DType, operands: list[str], facts: Facts) -> str:
    kind, amount = register_type(source), operands[1]
    low, high = facts(1)
    if low < 0 or high >= source.bits:
        amount = b.emit(f"and {kind} {amount}, {literal(source, source.bits - 1)}")
    right = "ashr" if source.kind == "sint" else "lshr"
    return b.emit(f"{'shl' if op is ops.SHL else right} {kind} {operands[0]}, {amount}")


def _divide(b: Builder, op: Op, source: DType, operands: list[str], facts: Facts) -> str:
    """Where neither operand is negative the unsigned instruction gives the same, and cheaper, also on signed types."""
    low, (divisor_low, divisor_high) = facts(0)[0], facts(1)
    kind = register_type(source)
    a, divisor = operands
    name = "div" if op is ops.TRUNCDIV else "rem"
    may_be_zero = divisor_low <= 0 <= divisor_high
    if source.kind == "uint" or (low >= 0 and divisor_low >= 0):
        if may_be_zero:
            divisor = _at_least_one(b, source, divisor)
        return b.emit(f"u{name} {kind} {a}, {divisor}")
    if divisor_low <= -1 <= divisor_high and low <= source.lowest:
        return _divide_any(b, name, source, a, divisor)
    if may_be_zero:
        divisor = _at_least_one(b, source, divisor)
    return b.emit(f"s{name} {kind} {a}, {divisor}")


def _at_least_one(b: Builder, source: DType, divisor: str) -> str:
    """The divisor, or 1 where it is 0."""
    zero = b.emit(f"icmp eq {register_type(source)} {divisor}, {literal(source, 0)}")
    return where(b, source, zero, literal(source, 1), divisor)


def _divide_any(b: Builder, name: str, source: DType, a: str, divisor: str) -> str:
    """A signed division by 1 instead of 0 and -1; the quotient by -1 is the wrapping negation, the remainder is 0."""
    kind = register_type(source)
    shifted = b.emit(f"add {kind} {divisor}, {literal(source, 1)}")
    unsafe = b.emit(f"icmp ult {kind} {shifted}, {literal(source, 2)}")
    safe = where(b, source, unsafe, literal(source, 1), divisor)
    result = b.emit(f"s{name} {kind} {a}, {safe}")
    if name == "rem":
        return result
    negated = b.emit(f"sub {kind} {literal(source, 0)}, {a}")
    minus_one = b.emit(f"icmp eq {kind} {divisor}, {literal(source, -1)}")
    return where(b, source, minus_one, negated, result)


def fold_lanes(b: Builder, op: Op, source: DType, to: DType, x: str) -> str:
    """Combines the lanes of `x` that are congruent modulo the lanes of `to`: by halves while these are even in number,
    the rest one after the other.
    """
    width, lanes = to.lanes, source.lanes
    while lanes > width and (lanes // width) % 2 == 0:
        low, high = (
            _part(b, source.scalar.vec(lanes), x, 0, lanes // 2),
            _part(b, source.scalar.vec(lanes), x, lanes // 2, lanes // 2),
        )
        lanes //= 2
        half = source.vec(lanes)
        x = elementwise(b, op, half, half, [low, high])
    whole = source.vec(lanes)
    result = _part(b, whole, x, 0, width)
    for start in range(width, lanes, width):
        result = elementwise(b, op, to, to, [result, _part(b, whole, x, start, width)])
    return result


def _part(b: Builder, source: DType, x: str, start: int, width: int) -> str:
    """Lanes `start` … `start + width - 1` of `x`."""
    if width == source.lanes:
        return x
    kind = register_type(source)
    if width == 1:
        return b.emit(f"extractelement {kind} {x}, i32 {start}")
    mask = ", ".join(f"i32 {lane}" for lane in range(start, start + width))
    return b.emit(f"shufflevector {kind} {x}, {kind} poison, <{width} x i32> <{mask}>")
