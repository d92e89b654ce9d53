"""The LLVM renderer: one operator -> exact text, whole kernels -> golden files, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # the package has no type information
import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.dtypes import DType
from rulewright.engine.errors import RenderError
from rulewright.engine.intervals import Interval
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.ops import AxisKind, Op, RangeArg, SpecialArg, ThreadKind, VarArg
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.renderers.llvm import LlvmRenderer
from rulewright.renderers.llvm_arithmetic import elementwise, fold_lanes
from rulewright.renderers.llvm_casts import bitcast, cast
from rulewright.renderers.llvm_math import quarter_turns
from rulewright.renderers.llvm_text import Builder, literal, symbol

GOLDEN = Path(__file__).parent / "golden"

# --- one operator -> exact text --------------------------------------------------------------------------------------


def lines(b: Builder) -> list[str]:
    return [line.strip() for line in b.body().splitlines()[1:]]


def printed(op: Op, source: DType, *bounds: Interval) -> list[str]:
    """The instructions of `op` on operands %a, %b, %c of type `source`, whose intervals may be given."""
    b = Builder()
    result = d.bool_.vec(source.lanes) if op in (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE) else source
    names = ["%a", "%b", "%c"][: op.arity]
    elementwise(b, op, result, source, names, (lambda k: bounds[k]) if bounds else None)
    return lines(b)


SINGLE: list[tuple[Op, DType, str]] = [
    (ops.ADD, d.int32, "%v0 = add i32 %a, %b"),
    (ops.ADD, d.uint8.vec(4), "%v0 = add <4 x i8> %a, %b"),
    (ops.SUB, d.int64, "%v0 = sub i64 %a, %b"),
    (ops.MUL, d.int16, "%v0 = mul i16 %a, %b"),
    (ops.NEG, d.int32, "%v0 = sub i32 0, %a"),
    (ops.NOT, d.uint32, "%v0 = xor i32 %a, -1"),
    (ops.NOT, d.bool_, "%v0 = xor i1 %a, true"),
    (ops.NEG, d.bool_, "%v0 = xor i1 %a, true"),
    (ops.AND, d.int32, "%v0 = and i32 %a, %b"),
    (ops.OR, d.bool_, "%v0 = or i1 %a, %b"),
    (ops.ADD, d.bool_, "%v0 = or i1 %a, %b"),
    (ops.MUL, d.bool_, "%v0 = and i1 %a, %b"),
    (ops.MAX, d.bool_, "%v0 = or i1 %a, %b"),
    (ops.MIN, d.bool_.vec(2), "%v0 = and <2 x i1> %a, %b"),
    (ops.XOR, d.uint64, "%v0 = xor i64 %a, %b"),
    (ops.MAX, d.int32, "%v0 = call i32 @llvm.smax.i32(i32 %a, i32 %b)"),
    (ops.MIN, d.uint16.vec(8), "%v0 = call <8 x i16> @llvm.umin.v8i16(<8 x i16> %a, <8 x i16> %b)"),
    (ops.ADD, d.float32, "%v0 = fadd float %a, %b"),
    (ops.SUB, d.float64, "%v0 = fsub double %a, %b"),
    (ops.MUL, d.float16.vec(2), "%v0 = fmul <2 x half> %a, %b"),
    (ops.DIV, d.float32, "%v0 = fdiv float %a, %b"),
    (ops.RECIP, d.float32, "%v0 = fdiv float 0x3FF0000000000000, %a"),
    (ops.RECIP, d.float16.vec(2), "%v0 = fdiv <2 x half> <half 0xH3C00, half 0xH3C00>, %a"),
    (ops.NEG, d.float32.vec(4), "%v0 = fneg <4 x float> %a"),
    (ops.MAX, d.float32, "%v0 = call nsz float @llvm.maximum.f32(float %a, float %b)"),
    (ops.MIN, d.float16, "%v0 = call nsz half @llvm.minimum.f16(half %a, half %b)"),
    (ops.MULACC, d.float32, "%v0 = call float @llvm.fmuladd.f32(float %a, float %b, float %c)"),
    (ops.SQRT, d.float64, "%v0 = call double @llvm.sqrt.f64(double %a)"),
    (ops.FLOOR, d.float32.vec(8), "%v0 = call <8 x float> @llvm.floor.v8f32(<8 x float> %a)"),
    (ops.CEIL, d.float32, "%v0 = call float @llvm.ceil.f32(float %a)"),
    (ops.TRUNC, d.float32, "%v0 = call float @llvm.trunc.f32(float %a)"),
    (ops.ROUND, d.float32, "%v0 = call float @llvm.rint.f32(float %a)"),
    (ops.EXP2, d.float32.vec(4), "%v0 = call <4 x float> @exp2.v4f32(<4 x float> %a)"),
    (ops.LOG2, d.float32, "%v0 = call float @log2.f32(float %a)"),
    (ops.SIN, d.float64, "%v0 = call double @llvm.sin.f64(double %a)"),
    (ops.LT, d.int32, "%v0 = icmp slt i32 %a, %b"),
    (ops.GE, d.uint32, "%v0 = icmp uge i32 %a, %b"),
    (ops.LT, d.bool_, "%v0 = icmp ult i1 %a, %b"),
    (ops.EQ, d.float32, "%v0 = fcmp oeq float %a, %b"),
    (ops.NE, d.float64.vec(2), "%v0 = fcmp une <2 x double> %a, %b"),
    (ops.LE, d.float16, "%v0 = fcmp ole half %a, %b"),
]


@pytest.mark.parametrize(("op", "dtype", "text"), SINGLE, ids=[f"{op}-{dtype}" for op, dtype, _ in SINGLE])
def test_operator(op: Op, dtype: DType, text: str) -> None:
    assert printed(op, dtype) == [text]


PROVEN: list[tuple[Op, DType, tuple[Interval, ...], list[str]]] = [
    (ops.ADD, d.int32, ((0, 100), (0, 5)), ["%v0 = add nuw nsw i32 %a, %b"]),
    (ops.ADD, d.int32, ((-1, 100), (0, 5)), ["%v0 = add nsw i32 %a, %b"]),
    (ops.ADD, d.int32, ((0, 2**31 - 1), (0, 1)), ["%v0 = add i32 %a, %b"]),
    (ops.ADD, d.uint8, ((0, 200), (0, 55)), ["%v0 = add nuw i8 %a, %b"]),
    (ops.ADD, d.uint8, ((0, 200), (0, 56)), ["%v0 = add i8 %a, %b"]),
    (ops.SUB, d.int32, ((0, 9), (0, 9)), ["%v0 = sub nsw i32 %a, %b"]),
    (ops.SUB, d.uint32, ((9, 9), (0, 9)), ["%v0 = sub nuw i32 %a, %b"]),
    (ops.MUL, d.int32, ((0, 1 << 15), (0, 1 << 15)), ["%v0 = mul nuw nsw i32 %a, %b"]),
    (ops.MUL, d.int32, ((0, 1 << 16), (0, 1 << 15)), ["%v0 = mul i32 %a, %b"]),
    (ops.MUL, d.int32, ((-5, 5), (-5, 5)), ["%v0 = mul nsw i32 %a, %b"]),
    (ops.NEG, d.int32, ((-(2**31) + 1, 7),), ["%v0 = sub nsw i32 0, %a"]),
    (ops.MULACC, d.int32, ((0, 9), (0, 9), (0, 9)), ["%v0 = mul nuw nsw i32 %a, %b", "%v1 = add nuw nsw i32 %v0, %c"]),
    (ops.SHL, d.int32, ((0, 9), (0, 31)), ["%v0 = shl i32 %a, %b"]),
    (ops.SHL, d.int32, ((0, 9), (0, 32)), ["%v0 = and i32 %b, 31", "%v1 = shl i32 %a, %v0"]),
    (ops.SHR, d.int32, ((0, 9), (1, 1)), ["%v0 = ashr i32 %a, %b"]),
    (ops.SHR, d.uint16, ((0, 9), (1, 1)), ["%v0 = lshr i16 %a, %b"]),
    (ops.TRUNCDIV, d.int32, ((0, 99), (1, 8)), ["%v0 = udiv i32 %a, %b"]),
    (ops.TRUNCMOD, d.int32, ((0, 99), (1, 8)), ["%v0 = urem i32 %a, %b"]),
    (ops.TRUNCDIV, d.int32, ((-9, 99), (1, 8)), ["%v0 = sdiv i32 %a, %b"]),
    (ops.TRUNCDIV, d.int32, ((-9, 99), (-8, -1)), ["%v0 = sdiv i32 %a, %b"]),
    (ops.TRUNCDIV, d.uint32, ((0, 99), (0, 8)),
     ["%v0 = icmp eq i32 %b, 0", "%v1 = select i1 %v0, i32 1, i32 %b", "%v2 = udiv i32 %a, %v1"]),
    (ops.TRUNCMOD, d.int32, ((-9, 99), (-8, 8)),
     ["%v0 = icmp eq i32 %b, 0", "%v1 = select i1 %v0, i32 1, i32 %b", "%v2 = srem i32 %a, %v1"]),
]  # fmt: skip
"""What the operands' intervals prove is used; a near miss beside each hit."""


@pytest.mark.parametrize(("op", "dtype", "bounds", "text"), PROVEN, ids=[f"{p[0]}-{p[1]}-{p[2]}" for p in PROVEN])
def test_operator_with_known_bounds(op: Op, dtype: DType, bounds: tuple[Interval, ...], text: list[str]) -> None:
    assert printed(op, dtype, *bounds) == text


def test_signed_division_of_unknown_values_is_made_safe() -> None:
    assert printed(ops.TRUNCDIV, d.int32) == [
        "%v0 = add i32 %b, 1",
        "%v1 = icmp ult i32 %v0, 2",
        "%v2 = select i1 %v1, i32 1, i32 %b",
        "%v3 = sdiv i32 %a, %v2",
        "%v4 = sub i32 0, %a",
        "%v5 = icmp eq i32 %b, -1",
        "%v6 = select i1 %v5, i32 %v4, i32 %v3",
    ]


CASTS: list[tuple[DType, DType, list[str]]] = [
    (d.int32, d.int32, []),
    (d.int32, d.uint32, []),
    (d.int8, d.int32, ["%v0 = sext i8 %a to i32"]),
    (d.uint8, d.int32, ["%v0 = zext i8 %a to i32"]),
    (d.int64, d.uint16, ["%v0 = trunc i64 %a to i16"]),
    (d.bool_, d.int8, ["%v0 = zext i1 %a to i8"]),
    (d.int32, d.bool_, ["%v0 = icmp ne i32 %a, 0"]),
    (d.float32, d.bool_, ["%v0 = fcmp une float %a, 0x0000000000000000"]),
    (d.int32, d.float32, ["%v0 = sitofp i32 %a to float"]),
    (d.uint64.vec(2), d.float32.vec(2), ["%v0 = uitofp <2 x i64> %a to <2 x float>"]),
    (d.bool_, d.float32, ["%v0 = uitofp i1 %a to float"]),
    (d.float32, d.int32, ["%v0 = fptosi float %a to i32", "%v1 = freeze i32 %v0"]),
    (d.float16, d.uint8, ["%v0 = fpext half %a to float", "%v1 = fptoui float %v0 to i8", "%v2 = freeze i8 %v1"]),
    (d.float32, d.float64, ["%v0 = fpext float %a to double"]),
    (d.float64, d.float32, ["%v0 = fptrunc double %a to float"]),
    (d.float32.vec(4), d.float16.vec(4), ["%v0 = fptrunc <4 x float> %a to <4 x half>"]),
    (d.float16, d.float64, ["%v0 = fpext half %a to float", "%v1 = fpext float %v0 to double"]),
    (d.int64, d.float16, ["%v0 = sitofp i64 %a to float", "%v1 = fptrunc float %v0 to half"]),
    (d.bfloat16, d.float32,
     ["%v0 = zext i16 %a to i32", "%v1 = shl i32 %v0, 16", "%v2 = bitcast i32 %v1 to float"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "to", "text"), CASTS, ids=[f"{a}-{b}" for a, b, _ in CASTS])
def test_cast(source: DType, to: DType, text: list[str]) -> None:
    b = Builder()
    cast(b, source, to, "%a")
    assert lines(b) == text


@pytest.mark.parametrize(
    ("source", "to", "text"),
    [
        (d.float32, d.int32, ["%v0 = bitcast float %a to i32"]),
        (d.uint32, d.int32, []),
        (d.bfloat16, d.uint16, []),
        (d.float16, d.bfloat16, ["%v0 = bitcast half %a to i16"]),
        (d.bool_, d.uint8, ["%v0 = zext i1 %a to i8"]),
        (d.uint8, d.bool_, ["%v0 = icmp ne i8 %a, 0"]),
    ],
    ids=str,
)
def test_bitcast(source: DType, to: DType, text: list[str]) -> None:
    b = Builder()
    bitcast(b, source, to, "%a")
    assert lines(b) == text


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        (d.float32, 0.1, "0x3FB99999A0000000"),
        (d.float32, -0.0, "0x8000000000000000"),
        (d.float64, float("nan"), "0x7FF8000000000000"),
        (d.float32, float("-inf"), "0xFFF0000000000000"),
        (d.float16, -2.0, "0xHC000"),
        (d.bfloat16, 1.0, "16256"),
        (d.bool_, True, "true"),
        (d.int8, -128, "-128"),
        (d.uint64, 2**64 - 1, "18446744073709551615"),
        (d.int32.vec(2), 7, "<i32 7, i32 7>"),
    ],
    ids=str,
)
def test_literal(dtype: DType, value: float, text: str) -> None:
    assert literal(dtype, dtype.canonical(value)) == text


def test_fold_lanes_by_halves_then_one_by_one() -> None:
    b = Builder()
    fold_lanes(b, ops.ADD, d.float32.vec(4), d.float32, "%a")
    assert lines(b) == [
        "%v0 = shufflevector <4 x float> %a, <4 x float> poison, <2 x i32> <i32 0, i32 1>",
        "%v1 = shufflevector <4 x float> %a, <4 x float> poison, <2 x i32> <i32 2, i32 3>",
        "%v2 = fadd <2 x float> %v0, %v1",
        "%v3 = extractelement <2 x float> %v2, i32 0",
        "%v4 = extractelement <2 x float> %v2, i32 1",
        "%v5 = fadd float %v3, %v4",
    ]
    b = Builder()
    fold_lanes(b, ops.MAX, d.int32.vec(3), d.int32, "%a")
    assert lines(b) == [
        "%v0 = extractelement <3 x i32> %a, i32 0",
        "%v1 = extractelement <3 x i32> %a, i32 1",
        "%v2 = call i32 @llvm.smax.i32(i32 %v0, i32 %v1)",
        "%v3 = extractelement <3 x i32> %a, i32 2",
        "%v4 = call i32 @llvm.smax.i32(i32 %v2, i32 %v3)",
    ]


def test_quoted_symbols() -> None:
    assert symbol("E_16") == "E_16"
    assert symbol("a b") == '"a b"'
    assert symbol('q"\\é') == '"q\\22\\5C\\C3\\A9"'


def test_table_of_quarter_turns_splits_two_over_pi_without_loss() -> None:
    rows = quarter_turns()
    assert len(rows) == 129
    high, low = rows[0]  # 2/pi * 2^-23, which a double holds to 53 bits
    assert (high + low) * 2**23 == 0.6366197723675814
    assert all(abs(low) < 2**-27 and 0 <= high < 4 for high, low in rows)
    assert all((high * 2**60) % 2**3 == 0 for high, _ in rows[30:])


# --- whole kernels -> golden files -----------------------------------------------------------------------------------


def kernel(name: str, *nodes: UOp, threads: int = 1) -> LinearKernel:
    """A kernel of these nodes; the signature is read off them."""
    stored = {s.src[0] for s in nodes if s.op is ops.STORE}
    buffers = []
    for node in nodes:
        if node.op is ops.BUFFER:
            assert isinstance(node.arg, ops.BufferArg) and node.dtype.element is not None
            buffers.append(BufferParam(node.arg.slot, node.dtype.element, node.arg.size, node in stored))
    variables = sorted(node.arg for node in nodes if isinstance(node.arg, VarArg))
    return LinearKernel(name, nodes, tuple(buffers), tuple(variables), (), (), threads)


def i32(value: int) -> UOp:
    return const(d.int32, value)


def loop(axis: int, end: int | UOp, kind: AxisKind = AxisKind.LOOP) -> UOp:
    return make(ops.RANGE, i32(end) if isinstance(end, int) else end, arg=RangeArg(axis, kind))


def elementwise_kernel() -> LinearKernel:
    """Eight lanes at a time: data0 = where(data1 < 0, exp2(data1), data1)."""
    out, x, r = buffer(0, d.float32, 64), buffer(1, d.float32, 64), loop(0, 8)
    i = make(ops.MUL, r, i32(8))
    value = make(ops.LOAD, x, i, dtype=d.float32.vec(8))
    power = make(ops.EXP2, value)
    negative = make(ops.LT, value, const(d.float32.vec(8), 0.0))
    chosen = make(ops.WHERE, negative, power, value)
    store = make(ops.STORE, out, i, chosen)
    return kernel("E_64", out, x, r, i, value, power, negative, chosen, store, make(ops.ENDRANGE, r))


def reduction_kernel() -> LinearKernel:
    """Sums of rows of symbolic length, padded: what lies beyond 100 counts as 0."""
    out, x, n = (
        buffer(0, d.float32, 4),
        buffer(1, d.float32, None),
        make(ops.VAR, dtype=d.int32, arg=VarArg("n", 1, 128)),
    )
    i, r = loop(0, 4), loop(1, n, AxisKind.REDUCE)
    zero = const(d.float32, 0.0)
    base = make(ops.MUL, i, n)
    accumulator = make(ops.DEFINE_ACC, zero, r, arg=make(ops.REDUCE, zero, r, arg=ops.ADD))
    place, gate = make(ops.ADD, base, r), make(ops.LT, r, i32(100))
    value = make(ops.LOAD, x, place, gate, zero)
    new = make(ops.ADD, accumulator, value)
    total = make(ops.PHI, accumulator, new)
    store = make(ops.STORE, out, i, total)
    end_r, end_i = make(ops.ENDRANGE, r), make(ops.ENDRANGE, i)
    return kernel("r_4_n", out, x, n, i, base, accumulator, r, place, gate, value, new, total, end_r, store, end_i)


def threads_kernel() -> LinearKernel:
    """Shared out over 4 threads; bools in memory; a store inside an if."""
    out, x = buffer(0, d.bool_, 16), buffer(1, d.bool_, 16)
    thread = make(ops.SPECIAL, i32(4), arg=SpecialArg(ThreadKind.THREAD, 0))
    r = loop(0, 4)
    base = make(ops.MUL, thread, i32(4))
    i = make(ops.ADD, base, r)
    value = make(ops.LOAD, x, i)
    gate = make(ops.NE, r, i32(2))
    opened = make(ops.IF, gate)
    inverse = make(ops.NOT, value)
    store = make(ops.STORE, out, i, inverse)
    closed, end = make(ops.ENDIF, opened), make(ops.ENDRANGE, r)
    return kernel("E_4_4", out, x, thread, base, r, i, value, gate, opened, inverse, store, closed, end, threads=4)


KERNELS = {"elementwise": elementwise_kernel, "reduction": reduction_kernel, "threads": threads_kernel}


@pytest.mark.parametrize("name", KERNELS)
def test_golden(name: str) -> None:
    """RULEWRIGHT_UPDATE_GOLDEN=1 writes the files anew, to be read before they are committed."""
    text = LlvmRenderer().render(KERNELS[name]())
    file = GOLDEN / f"{name}.ll"
    if os.environ.get("RULEWRIGHT_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
    llvm.parse_assembly(text, llvm.create_context()).verify()


# --- what it refuses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        (ops.FLOORDIV, d.int32),
        (ops.FLOORMOD, d.int64),
        (ops.ADD, d.bfloat16),
        (ops.ADD, d.index),
        (ops.LT, d.bfloat16),
        (ops.SHL, d.index),
    ],
    ids=repr,
)
def test_what_rules_must_lower_is_refused(op: Op, dtype: DType) -> None:
    with pytest.raises(RenderError) as refusal:
        printed(op, dtype)
    assert str(refusal.value) == (
        f"llvm cannot express {op.name} of {dtype}: lower the kernel with the rules for this target first, "
        f"or run it on the device 'interpreter'"
    )


def test_hardware_indices_local_memory_and_gathers_are_refused() -> None:
    group = make(ops.SPECIAL, i32(4), arg=SpecialArg(ThreadKind.GROUP, 0))
    with pytest.raises(RenderError, match="llvm cannot express a group index: the device has no work-groups"):
        LlvmRenderer().render(kernel("k", group))
    local = make(ops.LOCAL, dtype=d.int32.ptr("local"), arg=ops.BufferArg(0, 4))
    with pytest.raises(RenderError, match="llvm cannot express local of local int32"):
        LlvmRenderer().render(kernel("k", local))
    x, places = buffer(0, d.int32, 4), const(d.int32.vec(2), 1)
    gather = make(ops.LOAD, x, places)
    with pytest.raises(RenderError, match=r"llvm cannot express an access with a vector of indices \(int32x2\)"):
        LlvmRenderer().render(kernel("k", x, places, gather))


def test_an_index_that_was_not_narrowed_is_refused() -> None:
    i = make(ops.RANGE, const(d.index, 4), arg=RangeArg(0, AxisKind.LOOP))
    with pytest.raises(RenderError, match="a value of type index has no form in LLVM IR"):
        LlvmRenderer().render(kernel("k", i))
