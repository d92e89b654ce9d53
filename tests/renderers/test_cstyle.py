"""C and OpenCL text: one operator -> exact text, whole kernels -> golden files, names, scopes and refusals.

That the text computes the right values on every edge is the execution suite's part (tests/runtimes/test_execution.py);
the golden kernels run here too, so that a readable text is also a right one. To accept a new text on purpose, run
with RULEWRIGHT_WRITE_GOLDEN=1 and read the difference.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.dtypes import DType
from rulewright.engine.errors import RenderError
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.ops import AxisKind, BufferArg, Op, RangeArg, SpecialArg, ThreadKind, VarArg
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.renderers.c import CRenderer
from rulewright.renderers.cstyle import CStyle
from rulewright.renderers.cuda import CudaRenderer
from rulewright.renderers.opencl import OpenCLRenderer
from rulewright.runtimes import devices
from rulewright.runtimes.base import Array

C = CRenderer(half_storage=True)
C_HALF = CRenderer(half=True)
CL = OpenCLRenderer()
CL_HALF = OpenCLRenderer(half=True)
CUDA = CudaRenderer()


# --- writing kernels -------------------------------------------------------------------------------------------------


class Writer:
    """Writes the nodes of a kernel in the order in which they run."""

    def __init__(self) -> None:
        self.nodes: dict[UOp, None] = {}
        self.params: list[BufferParam] = []
        self.variables: list[VarArg] = []
        self.axes = itertools.count()

    def put(self, op: Op, *src: UOp, dtype: DType | None = None, arg: object = None) -> UOp:
        """A node, after its constant operands. Only a loop variable may be named before it is there."""
        node = make(op, *src, dtype=dtype, arg=arg)
        for operand in src:
            for constant in operand.src if operand.op is ops.RANGE else (operand,):
                if constant.op is ops.CONST:
                    self.nodes.setdefault(constant)
            assert operand in self.nodes or operand.op is ops.RANGE, f"{operand.op} is not there yet"
        self.nodes.setdefault(node)
        return node

    def buffer(self, dtype: DType, size: int, written: bool = False) -> UOp:
        self.params.append(BufferParam(len(self.params), dtype, size, written))
        node = buffer(len(self.params) - 1, dtype, size)
        self.nodes.setdefault(node)
        return node

    def variable(self, name: str, low: int, high: int) -> UOp:
        self.variables.append(VarArg(name, low, high))
        return self.put(ops.VAR, dtype=d.int32, arg=self.variables[-1])

    def range(self, end: int | UOp, kind: AxisKind = AxisKind.LOOP) -> UOp:
        """A loop variable whose loop is not open yet."""
        return make(ops.RANGE, number(end) if isinstance(end, int) else end, arg=RangeArg(next(self.axes), kind))

    @contextmanager
    def loop(self, counter: int | UOp) -> Iterator[UOp]:
        node = counter if isinstance(counter, UOp) and counter.op is ops.RANGE else self.range(counter)
        yield self.put(ops.RANGE, *node.src, arg=node.arg)
        self.put(ops.ENDRANGE, node)

    def special(self, kind: ThreadKind, dim: int, size: int) -> UOp:
        return self.put(ops.SPECIAL, number(size), arg=SpecialArg(kind, dim))

    def index(self, *terms: tuple[UOp, int]) -> UOp:
        """Σ counter * stride."""
        products = [node if stride == 1 else self.put(ops.MUL, node, number(stride)) for node, stride in terms]
        total = products[0]
        for product in products[1:]:
            total = self.put(ops.ADD, total, product)
        return total

    def accumulator(self, op: Op, start: UOp, *ranges: UOp) -> UOp:
        return self.put(ops.DEFINE_ACC, start, *ranges, arg=make(ops.REDUCE, start, *ranges, arg=op))

    def load(self, memory: UOp, at: UOp, lanes: int = 1) -> UOp:
        assert memory.dtype.element is not None
        return self.put(ops.LOAD, memory, at, dtype=memory.dtype.element.vec(lanes))

    def kernel(
        self, name: str, groups: tuple[int, ...] = (), local: tuple[int, ...] = (), threads: int = 1
    ) -> LinearKernel:
        sizes = tuple(number(n) for n in groups)
        variables = tuple(sorted(self.variables))
        return LinearKernel(name, tuple(self.nodes), tuple(self.params), variables, sizes, local, threads)


def number(value: int) -> UOp:
    return const(d.int32, value)


# --- one operator -> exact text --------------------------------------------------------------------------------------


def text_of(style: CStyle, op: Op, *operands: UOp | DType, dtype: DType | None = None) -> str:
    """What is stored by a kernel that applies the operator to a constant or to loads data1[0], data2[0], …"""
    w = Writer()
    types = [o if isinstance(o, DType) else o.dtype for o in operands]
    result = make(op, *(const(t, 1) for t in types), dtype=dtype).dtype
    out = w.buffer(result.scalar, 16, written=True)
    memory = [w.buffer(t.scalar, 16) for t in types]
    source = [
        w.load(m, number(0), o.lanes) if isinstance(o, DType) else o for m, o in zip(memory, operands, strict=True)
    ]
    w.put(ops.STORE, out, number(0), w.put(op, *source, dtype=dtype))
    text = style.render(w.kernel("k"))
    body = text[text.index("{\n", text.index("void k(")) + 2 :].splitlines()[:-1]
    return " ".join(line.strip() for line in body).replace("data0[0] = ", "", 1).removesuffix(";")


i8, i32, i64, u8, u16, u32, u64 = d.int8, d.int32, d.int64, d.uint8, d.uint16, d.uint32, d.uint64
f16, f32, f64, b1 = d.float16, d.float32, d.float64, d.bool_
X, Y, Z = "data1[0]", "data2[0]", "data3[0]"

BOTH: list[tuple[str, Op, tuple[UOp | DType, ...], str]] = [
    ("add", ops.ADD, (f32, f32), f"{X} + {Y}"),
    ("sub", ops.SUB, (f32, f32), f"{X} - {Y}"),
    ("mul", ops.MUL, (f32, f32), f"{X} * {Y}"),
    ("div", ops.DIV, (f32, f32), f"{X} / {Y}"),
    ("neg", ops.NEG, (f32,), f"-{X}"),
    ("recip", ops.RECIP, (f32,), f"1.0f / {X}"),
    ("recip-double", ops.RECIP, (f64,), f"1.0 / {X}"),
    ("mulacc", ops.MULACC, (f32, f32, f32), f"{X} * {Y} + {Z}"),
    ("mulacc-unsigned", ops.MULACC, (u32, u32, u32), f"{X} * {Y} + {Z}"),
    ("and", ops.AND, (u32, u32), f"{X} & {Y}"),
    ("or", ops.OR, (i32, i32), f"{X} | {Y}"),
    ("xor", ops.XOR, (i64, i64), f"{X} ^ {Y}"),
    ("not", ops.NOT, (i32,), f"~{X}"),
    ("lt", ops.LT, (f32, f32), f"{X} < {Y}"),
    ("ne", ops.NE, (i32, i32), f"{X} != {Y}"),
    ("shl-unsigned", ops.SHL, (u32, const(u32, 3)), f"{X} << 3u"),
    ("shr", ops.SHR, (i32, const(i32, 31)), f"{X} >> 31"),
    ("div-constant", ops.TRUNCDIV, (i32, const(i32, 3)), f"{X} / 3"),
    ("mod-constant", ops.TRUNCMOD, (u32, const(u32, 3)), f"{X} % 3u"),
    ("div-helper", ops.TRUNCDIV, (i32, i32), f"truncdiv_int({X}, {Y})"),
    ("div-by-minus-one", ops.TRUNCDIV, (i32, const(i32, -1)), f"truncdiv_int({X}, (-1))"),
    ("mod-helper", ops.TRUNCMOD, (u64, u64), f"truncmod_ulong({X}, {Y})"),
    ("cast-up", ops.CAST, (i32,), f"(float){X}"),
    ("cast-same", ops.CAST, (f32,), X),
    ("negative-literal", ops.SUB, (f32, const(f32, -1)), f"{X} - (-1.0f)"),
    ("minus-zero", ops.ADD, (f32, const(f32, -0.0)), f"{X} + (-0.0f)"),
    ("infinity", ops.LT, (f32, const(f32, -float("inf"))), f"{X} < (-INFINITY)"),
    ("nan", ops.ADD, (f32, const(f32, float("nan"))), f"{X} + NAN"),
    ("tenth", ops.MUL, (f32, const(f32, 0.1)), f"{X} * 0.1f"),
    ("tenth-double", ops.MUL, (f64, const(f64, 0.1)), f"{X} * 0.1"),
    ("least-int", ops.XOR, (i32, const(i32, -(2**31))), f"{X} ^ (-2147483647 - 1)"),
    ("sqrt-double", ops.SQRT, (f64,), f"sqrt({X})"),
]

ONLY_C: list[tuple[str, CRenderer, Op, tuple[UOp | DType, ...], DType | None, str]] = [
    ("add-int-wraps", C, ops.ADD, (i32, i32), None, f"{X} + {Y}"),
    ("add-narrow", C, ops.ADD, (i8, i8), None, f"(int8_t)({X} + {Y})"),
    ("neg-narrow", C, ops.NEG, (u8,), None, f"(uint8_t)-{X}"),
    ("shl-any-amount", C, ops.SHL, (i64, i64), None, f"{X} << ({Y} & 63ll)"),
    ("shr-any-amount-narrow", C, ops.SHR, (u8, u8), None, f"(uint8_t)({X} >> ({Y} & 7))"),
    ("bool-add", C, ops.ADD, (b1, b1), None, f"{X} | {Y}"),
    ("bool-mul", C, ops.MUL, (b1, b1), None, f"{X} & {Y}"),
    ("bool-xor", C, ops.XOR, (b1, b1), None, f"{X} != {Y}"),
    ("bool-not", C, ops.NOT, (b1,), None, f"!{X}"),
    ("where", C, ops.WHERE, (b1, f32, f32), None, f"{X} ? {Y} : {Z}"),
    ("exp2", C, ops.EXP2, (f32,), None, f"exp2f({X})"),
    ("exp2-double", C, ops.EXP2, (f64,), None, f"exp2({X})"),
    ("round", C, ops.ROUND, (f32,), None, f"rintf({X})"),
    ("max-int", C, ops.MAX, (i32, i32), None, f"max_int({X}, {Y})"),
    ("max-float", C, ops.MAX, (f32, f32), None, f"max_float({X}, {Y})"),
    ("to-bool", C, ops.CAST, (f32,), b1, f"(_Bool){X}"),
    ("narrow-cast", C, ops.CAST, (i64,), u16, f"(uint16_t){X}"),
    ("half-to-float", C, ops.CAST, (f16,), f32, f"half_to_float({X})"),
    ("half-to-int", C, ops.CAST, (f16,), i32, f"(int)half_to_float({X})"),
    ("int-to-half", C, ops.CAST, (i32,), f16, f"float_to_half((float){X})"),
    ("double-to-half", C, ops.CAST, (f64,), f16, f"double_to_half({X})"),
    ("native-half-cast", C_HALF, ops.CAST, (f64,), f16, f"(_Float16){X}"),
    ("native-half-add", C_HALF, ops.ADD, (f16, const(f16, 1)), None, f"{X} + (_Float16)1.0f"),
    ("native-half-exp2", C_HALF, ops.EXP2, (f16,), None, f"(_Float16)exp2f({X})"),
    ("bitcast", C, ops.BITCAST, (f32,), u32, f"bitcast_float_uint({X})"),
    ("bitcast-sign", C, ops.BITCAST, (i32,), u32, f"(uint32_t){X}"),
    ("bitcast-half", C, ops.BITCAST, (f16,), u16, X),
    ("least-long", C, ops.XOR, (i64, const(i64, -(2**63))), None, f"{X} ^ (-9223372036854775807ll - 1ll)"),
    ("vector-add", C, ops.ADD, (f32.vec(4), const(f32.vec(4), 2)), None,
     "store_float4(data0 + 0, load_float4(data1 + 0) + (float4){2.0f, 2.0f, 2.0f, 2.0f})"),
    ("vector-cast", C, ops.CAST, (f32.vec(4),), i32.vec(4),
     "store_int4(data0 + 0, __builtin_convertvector(load_float4(data1 + 0), int4))"),
    ("vector-exp2", C, ops.EXP2, (f32.vec(2),), None, "store_float2(data0 + 0, exp2_float2(load_float2(data1 + 0)))"),
]  # fmt: skip

ONLY_CL: list[tuple[str, OpenCLRenderer, Op, tuple[UOp | DType, ...], DType | None, str]] = [
    ("add-int-wraps", CL, ops.ADD, (i32, i32), None, f"(int)((uint){X} + (uint){Y})"),
    ("add-unsigned", CL, ops.ADD, (u32, u32), None, f"{X} + {Y}"),
    ("mul-ushort", CL, ops.MUL, (u16, u16), None, f"(ushort)((uint){X} * (uint){Y})"),
    ("neg-long", CL, ops.NEG, (i64,), None, f"(long)-(ulong){X}"),
    ("shl-signed", CL, ops.SHL, (i32, const(i32, 3)), None, f"(int)((uint){X} << (uint)3)"),
    ("bool-add", CL, ops.ADD, (b1, b1), None, f"({X} != 0) | ({Y} != 0)"),
    ("where", CL, ops.WHERE, (b1, f32, f32), None, f"{X} != 0 ? {Y} : {Z}"),
    ("exp2", CL, ops.EXP2, (f32,), None, f"exp2({X})"),
    ("min-float", CL, ops.MIN, (f32, f32), None, f"min_float({X}, {Y})"),
    ("max-int", CL, ops.MAX, (i8, const(i8, 1)), None, f"max({X}, (char)1)"),
    ("half-to-float", CL, ops.CAST, (f16,), f32, f"half_to_float({X})"),
    ("native-half-add", CL_HALF, ops.ADD, (f16, const(f16, 1)), None, f"{X} + 1.0h"),
    ("bitcast", CL, ops.BITCAST, (f32,), u32, f"as_uint({X})"),
    ("bitcast-half", CL, ops.BITCAST, (f16,), u16, X),
    ("vector-add", CL, ops.ADD, (f32.vec(4), const(f32.vec(4), 2)), None,
     "vstore4(vload4(0, data1 + 0) + (float4)(2.0f), 0, data0 + 0)"),
    ("vector-add-int", CL, ops.ADD, (i32.vec(2), i32.vec(2)), None,
     "vstore2(as_int2(as_uint2(vload2(0, data1 + 0)) + as_uint2(vload2(0, data2 + 0))), 0, data0 + 0)"),
    ("vector-cast", CL, ops.CAST, (f32.vec(4),), i32.vec(4), "vstore4(convert_int4(vload4(0, data1 + 0)), 0, data0 + 0)"),
    ("vector-exp2", CL, ops.EXP2, (f32.vec(8),), None, "vstore8(exp2(vload8(0, data1 + 0)), 0, data0 + 0)"),
]  # fmt: skip


ONLY_CUDA: list[tuple[str, CudaRenderer, Op, tuple[UOp | DType, ...], DType | None, str]] = [
    ("add-int-wraps", CUDA, ops.ADD, (i32, i32), None, f"(int)((unsigned int){X} + (unsigned int){Y})"),
    ("mul-ushort", CUDA, ops.MUL, (u16, u16), None, f"(unsigned short)((unsigned int){X} * (unsigned int){Y})"),
    ("shr-any-amount", CUDA, ops.SHR, (i64, i64), None, f"{X} >> ({Y} & 63ll)"),
    ("bool-add", CUDA, ops.ADD, (b1, b1), None, f"{X} | {Y}"),
    ("where", CUDA, ops.WHERE, (b1, f32, f32), None, f"{X} ? {Y} : {Z}"),
    ("exp2", CUDA, ops.EXP2, (f32,), None, f"exp2f({X})"),
    ("exp2-double", CUDA, ops.EXP2, (f64,), None, f"exp2({X})"),
    ("mulacc", CUDA, ops.MULACC, (f32, f32, f32), None, f"fmaf({X}, {Y}, {Z})"),
    ("mulacc-double", CUDA, ops.MULACC, (f64, f64, f64), None, f"fma({X}, {Y}, {Z})"),
    ("max-float", CUDA, ops.MAX, (f32, f32), None, f"max_float({X}, {Y})"),
    ("half-to-float", CUDA, ops.CAST, (f16,), f32, f"half_to_float({X})"),
    ("double-to-half", CUDA, ops.CAST, (f64,), f16, f"double_to_half({X})"),
    ("bitcast", CUDA, ops.BITCAST, (f32,), u32, f"bitcast_float_uint({X})"),
    ("bitcast-half", CUDA, ops.BITCAST, (f16,), u16, X),
    ("vector-add", CUDA, ops.ADD, (f32.vec(4), const(f32.vec(4), 2)), None,
     ("float4 val0 = add_float4(*(const float4 *)(data1 + 0), make_float4(2.0f, 2.0f, 2.0f, 2.0f)); "
     "*(float4 *)(data0 + 0) = val0")),
    ("vector-of-doubles", CUDA, ops.NEG, (f64.vec(4),), None,
     "*(vdouble4 *)(data0 + 0) = neg_double4(*(const vdouble4 *)(data1 + 0))"),
]  # fmt: skip


@pytest.mark.parametrize("style", [C, CL], ids=["c", "opencl"])
@pytest.mark.parametrize(("op", "operands", "text"), [case[1:] for case in BOTH], ids=[case[0] for case in BOTH])
def test_operator_in_both_languages(style: CStyle, op: Op, operands: tuple[UOp | DType, ...], text: str) -> None:
    text = text.replace("63ll", "63l") if style is CL else text
    assert text_of(style, op, *operands, dtype=f32 if op is ops.CAST else None) == text


@pytest.mark.parametrize(("style", "op", "operands", "dtype", "text"), [case[1:] for case in (*ONLY_C, *ONLY_CL, *ONLY_CUDA)],
                         ids=[f"{case[1].target.name}-{case[0]}" for case in (*ONLY_C, *ONLY_CL, *ONLY_CUDA)])  # fmt: skip
def test_operator(style: CStyle, op: Op, operands: tuple[UOp | DType, ...], dtype: DType | None, text: str) -> None:
    assert text_of(style, op, *operands, dtype=dtype) == text


def test_parentheses_only_where_they_are_needed() -> None:
    w = Writer()
    out = w.buffer(i32, 1, written=True)
    x, y, z = (w.load(w.buffer(i32, 1), number(0)) for _ in range(3))
    difference = w.put(ops.SUB, x, w.put(ops.SUB, y, z))
    product = w.put(ops.MUL, w.put(ops.NEG, w.put(ops.NEG, difference)), number(-3))
    w.put(ops.STORE, out, number(0), w.put(ops.AND, w.put(ops.ADD, product, number(1)), number(7)))
    text = "data0[0] = (-(-(data1[0] - (data2[0] - data3[0]))) * (-3) + 1) & 7;"
    assert text in C.render(w.kernel("k"))


# --- whole kernels -> golden files -----------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"


def matmul(style: CStyle) -> tuple[LinearKernel, list[Array], Array]:
    """8 x 16 = 8 x 32 times 32 x 16: two rows and four columns in registers; in OpenCL one work-item a block."""
    w = Writer()
    out, a, b = w.buffer(f32, 128, written=True), w.buffer(f32, 256), w.buffer(f32, 512)

    def block(rows: UOp, columns: UOp) -> None:
        k = w.range(32, AxisKind.REDUCE)
        zero = const(f32.vec(4), 0.0)
        w.nodes.setdefault(zero)
        first, row_start, result_start = w.index((columns, 4)), w.index((rows, 64)), w.index((rows, 32))
        sums = [
            w.put(ops.DEFINE_ACC, zero, k, arg=make(ops.REDUCE, const(f32.vec(4), i), k, arg=ops.ADD)) for i in range(2)
        ]
        with w.loop(k):
            column = w.load(b, w.index((k, 16), (first, 1)), 4)
            totals = []
            for row, total in enumerate(sums):
                place = w.index((row_start, 1), (k, 1), *[(number(32), 1)] * row)
                factor = w.put(ops.VECTORIZE, *[w.load(a, place)] * 4)
                totals.append(w.put(ops.PHI, total, w.put(ops.ADD, total, w.put(ops.MUL, factor, column))))
        for row, total in enumerate(totals):
            w.put(ops.STORE, out, w.index((result_start, 1), (first, 1), *[(number(16), 1)] * row), total)

    if style.target.has("threads"):
        block(w.special(ThreadKind.GROUP, 1, 4), w.special(ThreadKind.GROUP, 0, 4))
        kernel = w.kernel("matmul", groups=(4, 4))
    else:
        with w.loop(4) as rows, w.loop(4) as columns:
            block(rows, columns)
        kernel = w.kernel("matmul")
    left, right = np.arange(256, dtype=np.float32) % 7 - 3, np.arange(512, dtype=np.float32) % 5 - 2
    return kernel, [left, right], (left.reshape(8, 32) @ right.reshape(32, 16)).ravel()


def softmax(style: CStyle) -> tuple[LinearKernel, list[Array], Array]:
    """Base 2, over rows of 16: a maximum that keeps NaN, a sum that needs it, then the quotients."""
    w = Writer()
    out, x = w.buffer(f32, 64, written=True), w.buffer(f32, 64)
    with w.loop(4) as row:
        i, j = w.range(16, AxisKind.REDUCE), w.range(16, AxisKind.REDUCE)
        start = w.index((row, 16))
        greatest = w.accumulator(ops.MAX, const(f32, -np.inf), i)
        w.nodes.setdefault(greatest.src[0])
        with w.loop(i):
            value = w.load(x, w.put(ops.ADD, start, i))
            larger = w.put(ops.OR, w.put(ops.GT, value, greatest), w.put(ops.NE, value, value))
            most = w.put(ops.PHI, greatest, w.put(ops.WHERE, larger, value, greatest))
        total = w.accumulator(ops.ADD, const(f32, 0.0), j)
        with w.loop(j):
            power = w.put(ops.EXP2, w.put(ops.SUB, w.load(x, w.put(ops.ADD, start, j)), most))
            whole = w.put(ops.PHI, total, w.put(ops.ADD, total, power))
        with w.loop(16) as k:
            place = w.put(ops.ADD, start, k)
            power = w.put(ops.EXP2, w.put(ops.SUB, w.load(x, place), most))
            w.put(ops.STORE, out, place, w.put(ops.DIV, power, whole))
    source = (np.arange(64, dtype=np.float32) * 7 % 11).reshape(4, 16)
    powers = np.exp2(source - source.max(1, keepdims=True))
    return w.kernel("softmax"), [source.ravel()], (powers / powers.sum(1, keepdims=True)).ravel()


def padded(style: CStyle) -> tuple[LinearKernel, list[Array], Array]:
    """A window of three around each of n values, with zeros beyond the ends; only even places are stored."""
    w = Writer()
    out, x, n = w.buffer(i64, 16, written=True), w.buffer(i16 := d.int16, 16), w.variable("n", 1, 16)
    with w.loop(n) as i:
        j = w.range(3, AxisKind.REDUCE)
        total = w.accumulator(ops.ADD, const(i64, 0), j)
        with w.loop(j):
            place = w.put(ops.ADD, w.put(ops.ADD, i, j), number(-1))
            inside = w.put(ops.AND, w.put(ops.GE, place, number(0)), w.put(ops.LT, place, n))
            value = w.put(ops.LOAD, x, place, inside, const(i16, 0), dtype=i16)
            whole = w.put(ops.PHI, total, w.put(ops.ADD, total, w.put(ops.CAST, value, dtype=i64)))
        even = w.put(ops.EQ, w.put(ops.AND, i, number(1)), number(0))
        opened = w.put(ops.IF, even)
        w.put(ops.STORE, out, i, whole)
        w.put(ops.ENDIF, opened)
    source = np.arange(16, dtype=np.int16) * 100
    sums = np.convolve(source[:11].astype(np.int64), [1, 1, 1], "same")
    return w.kernel("padded"), [source], np.array([sums[i] if i < 11 and i % 2 == 0 else -1 for i in range(16)])


def integers(style: CStyle) -> tuple[LinearKernel, list[Array], Array]:
    """Divisions that could fault, arithmetic that wraps, truth values in memory."""
    w = Writer()
    out, x, y, flag = w.buffer(i32, 8, written=True), w.buffer(i32, 8), w.buffer(i32, 8), w.buffer(b1, 8)
    with w.loop(8) as i:
        a, b = w.load(x, i), w.load(y, i)
        quotient, rest = w.put(ops.TRUNCDIV, a, b), w.put(ops.TRUNCMOD, a, b)
        mixed = w.put(ops.ADD, w.put(ops.MUL, quotient, number(1000)), rest)
        defined = w.put(ops.AND, w.load(flag, i), w.put(ops.NE, b, number(0)))
        w.put(ops.STORE, out, i, w.put(ops.WHERE, defined, mixed, number(-1)))
    least = -(2**31)
    left, right = (
        np.array([7, -7, 7, -7, 5, least, least, 1 << 30], np.int32),
        np.array([2, 2, -2, -2, 0, -1, 1, 1], np.int32),
    )
    truth = np.array([1, 1, 1, 0, 1, 1, 1, 1], np.bool_)
    wrapped = [3001, -3001, -2999, -1, -1, least * 1000, least * 1000, 1000 << 30]
    return w.kernel("integers"), [left, right, truth], np.array([d.int32.canonical(v) for v in wrapped], np.int32)


def group_sum(style: CStyle) -> tuple[LinearKernel, list[Array], Array]:
    """Sums of 64 by groups of 8 threads: each adds up a part, then the first adds up the parts."""
    w = Writer()
    out, x = w.buffer(f32, 4, written=True), w.buffer(f32, 256)
    memory = w.put(ops.LOCAL, dtype=f32.ptr("local"), arg=BufferArg(0, 8))
    group, local = w.special(ThreadKind.GROUP, 0, 4), w.special(ThreadKind.LOCAL, 0, 8)
    i, j = w.range(8, AxisKind.REDUCE), w.range(8, AxisKind.REDUCE)
    part = w.accumulator(ops.ADD, const(f32, 0.0), i)
    with w.loop(i):
        value = w.load(x, w.index((group, 64), (local, 8), (i, 1)))
        parts = w.put(ops.PHI, part, w.put(ops.ADD, part, value))
    stored = w.put(ops.STORE, memory, local, parts)
    ready = w.put(ops.AFTER, memory, w.put(ops.BARRIER, stored))
    total = w.accumulator(ops.ADD, const(f32, 0.0), j)
    with w.loop(j):
        whole = w.put(ops.PHI, total, w.put(ops.ADD, total, w.load(ready, j)))
    opened = w.put(ops.IF, w.put(ops.EQ, local, number(0)))
    w.put(ops.STORE, out, group, whole)
    w.put(ops.ENDIF, opened)
    source = np.arange(256, dtype=np.float32)
    return w.kernel("group_sum", groups=(4,), local=(8,)), [source], source.reshape(4, 64).sum(1)


def threaded(style: CStyle) -> tuple[LinearKernel, list[Array], Array]:
    """Squares, each thread a stretch of four, with float16 in memory."""
    w = Writer()
    out, x = w.buffer(f16, 12, written=True), w.buffer(f16, 12)
    thread = w.special(ThreadKind.THREAD, 0, 3)
    with w.loop(4) as i:
        place = w.index((thread, 4), (i, 1))
        value = w.put(ops.CAST, w.load(x, place), dtype=f32)
        w.put(ops.STORE, out, place, w.put(ops.CAST, w.put(ops.MUL, value, value), dtype=f16))
    source = np.arange(12).astype(np.float16)
    return w.kernel("threaded", threads=3), [source], source * source


def fibonacci(style: CStyle) -> tuple[LinearKernel, list[Array], Array]:
    """Two accumulators, each assigned from the other's old value."""
    w = Writer()
    out, steps = w.buffer(i32, 2, written=True), w.variable("steps", 0, 40)
    r = w.range(steps, AxisKind.REDUCE)
    a, b = w.accumulator(ops.ADD, number(0), r), w.accumulator(ops.ADD, number(1), r)
    w.nodes = {number(0): None, number(1): None, **w.nodes}
    with w.loop(r):
        first, second = w.put(ops.PHI, a, b), w.put(ops.PHI, b, w.put(ops.ADD, a, b))
    w.put(ops.STORE, out, number(0), first)
    w.put(ops.STORE, out, number(1), second)
    return w.kernel("fibonacci"), [], np.array([89, 144], np.int32)


Kernel = Callable[[CStyle], tuple[LinearKernel, list[Array], Array]]
KERNELS: list[tuple[CStyle, Kernel]] = [
    *((C, made) for made in (matmul, softmax, padded, integers, threaded, fibonacci)),
    *((CL, made) for made in (matmul, softmax, padded, integers, group_sum)),
    *((CUDA, made) for made in (matmul, softmax, padded, integers, group_sum)),
]
SUFFIX = {"c": "c", "opencl": "cl", "cuda": "cu"}
NAMES = [f"{made.__name__}.{SUFFIX[style.target.name]}" for style, made in KERNELS]


@pytest.mark.parametrize(("style", "made"), KERNELS, ids=NAMES)
def test_kernel_has_the_golden_text(style: CStyle, made: Kernel) -> None:
    text = style.render(made(style)[0])
    path = GOLDEN / f"{made.__name__}.{SUFFIX[style.target.name]}"
    if os.environ.get("RULEWRIGHT_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize(("style", "made"), KERNELS, ids=NAMES)
def test_golden_kernel_computes_what_it_says(style: CStyle, made: Kernel) -> None:
    if style.target.name not in devices.DEVICES:
        pytest.skip(f"{style.target.name} has no runtime: tests/renderers/test_cuda.py compiles it")
    status = devices.probe(style.target.name)
    if not status.present:
        pytest.skip(f"device {style.target.name} is absent: {status.reason}")
    runtime = devices.get(style.target.name)
    kernel, sources, expected = made(style)
    result = np.full(expected.shape, -1, expected.dtype)
    runtime.build(kernel, runtime.renderer.render(kernel))([result, *sources], {"n": 11, "steps": 11})
    assert [float(v) for v in result] == pytest.approx([float(v) for v in expected], rel=1e-6)


def test_every_golden_file_has_its_kernel() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir() if path.suffix in (".c", ".cl", ".cu")) == sorted(NAMES)


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("style", "given", "made"), [
    (C, "r_64_32", "r_64_32"), (C, "n", "n"), (C, "int", "int_"), (C, "data0", "data0_"), (C, "r12", "r12_"),
    (C, "a-b c", "a_b_c"), (C, "3d", "n3d"), (C, "", "n"), (C, "größe", "gr__e"), (C, "thread", "thread_"),
    (CL, "kernel", "kernel_"), (CL, "lidx0", "lidx0_"), (CL, "size", "size"),
])  # fmt: skip
def test_identifiers(style: CStyle, given: str, made: str) -> None:
    assert style.identifier(given) == made


def test_variables_with_the_same_identifier_stay_apart() -> None:
    w = Writer()
    out = w.buffer(i32, 3, written=True)
    for k, name in enumerate(["a b", "a-b", "a_b"]):
        w.put(ops.STORE, out, number(k), w.variable(name, 0, 9))
    text = C.render(w.kernel("k"))
    assert "int a_b, int a_b_, int a_b__" in text
    assert ["data0[0] = a_b;", "data0[1] = a_b_;", "data0[2] = a_b__;"] == [x.strip() for x in text.splitlines()[-4:-1]]


def test_the_text_is_the_same_every_time() -> None:
    for style, made in KERNELS:
        assert style.render(made(style)[0]) == style.render(made(style)[0])


# --- what moves into its user's expression, and what must not --------------------------------------------------------


def test_a_load_does_not_move_past_a_store() -> None:
    w = Writer()
    out = w.buffer(f32, 2, written=True)
    first = w.load(out, number(0))
    w.put(ops.STORE, out, number(0), const(f32, 5.0))
    w.put(ops.STORE, out, number(1), first)
    lines = [line.strip() for line in C.render(w.kernel("k")).splitlines()]
    assert lines[-4:-1] == ["float val0 = data0[0];", "data0[0] = 5.0f;", "data0[1] = val0;"]


def test_a_value_does_not_move_into_a_loop() -> None:
    w = Writer()
    out, x = w.buffer(f32, 2, written=True), w.buffer(f32, 1)
    root = w.put(ops.SQRT, w.load(x, number(0)))
    with w.loop(2) as i:
        w.put(ops.STORE, out, i, root)
    lines = [line.strip() for line in C.render(w.kernel("k")).splitlines()]
    assert lines[-5:-1] == [
        "float val0 = sqrtf(data1[0]);",
        "for (int r0 = 0; r0 < 2; r0++) {",
        "data0[r0] = val0;",
        "}",
    ]


def test_a_load_that_only_one_side_of_a_where_needs_stays_on_that_side() -> None:
    assert text_of(C, ops.WHERE, b1, f32, const(f32, 0)) == f"{X} ? {Y} : 0.0f"


def test_a_reader_of_an_accumulator_does_not_move_past_its_assignment() -> None:
    w = Writer()
    out, r = w.buffer(i32, 1, written=True), w.range(3, AxisKind.REDUCE)
    total = w.accumulator(ops.ADD, number(1), r)
    w.nodes = {number(1): None, **w.nodes}
    with w.loop(r):
        twice = w.put(ops.MUL, total, number(2))
        w.put(ops.PHI, total, w.put(ops.ADD, total, number(1)))
        w.put(ops.STORE, out, number(0), twice)
    text = C.render(w.kernel("k"))
    assert "int idx0 = acc0 * 2;\n    acc0 += 1;\n    data0[0] = idx0;" in text


def test_long_expressions_are_cut_and_text_stays_linear() -> None:
    w = Writer()
    out, x = w.buffer(f32, 1, written=True), w.buffer(f32, 1)
    value = w.load(x, number(0))
    for _ in range(3000):
        value = w.put(ops.ADD, w.put(ops.MUL, value, const(f32, 0.5)), const(f32, 1.0))
    w.put(ops.STORE, out, number(0), value)
    text = C.render(w.kernel("k"))
    assert max(len(line) for line in text.splitlines()) < 120
    assert len(text) < 3000 * 60


# --- refusals --------------------------------------------------------------------------------------------------------


def refusal(style: CStyle, op: Op, *operands: UOp | DType, dtype: DType | None = None) -> str:
    with pytest.raises(RenderError) as caught:
        text_of(style, op, *operands, dtype=dtype)
    return str(caught.value)


def test_refusals_name_operator_type_and_device() -> None:
    assert refusal(CL, ops.ADD, f16, f16) == (
        "device opencl cannot express add of float16: "
        "it only stores such values; a lowering rule must compute in float32"
    )
    assert refusal(C_HALF, ops.CAST, d.bfloat16, dtype=f32) == (
        "device c cannot express a conversion of bfloat16: "
        "it only moves such values; a lowering rule must convert their bits"
    )
    assert refusal(C, ops.FLOORDIV, i32, i32) == (
        "device c cannot express floordiv of int32: it divides towards zero; a lowering rule must correct that"
    )
    assert refusal(C, ops.LT, f32.vec(4), f32.vec(4)) == (
        "device c cannot express lt of boolx4: it has no vectors of truth values; split the lanes"
    )
    assert refusal(C, ops.ADD, f32.vec(3), f32.vec(3)) == (
        "device c cannot express a vector of float32x3: its vectors have 16, 8, 4, 2 lanes"
    )
    assert refusal(OpenCLRenderer(float64=False), ops.ADD, f64, f64) == (
        "device opencl cannot express a value of float64: it has no such type; a lowering rule must replace it"
    )


def test_what_only_groups_of_threads_have_is_refused_in_c() -> None:
    kernel, _, _ = group_sum(C)
    with pytest.raises(RenderError, match="device c cannot express local memory of float32: it has none"):
        C.render(kernel)


def test_a_gather_and_a_node_of_an_earlier_stage_are_refused() -> None:
    w = Writer()
    out, x = w.buffer(f32, 4, written=True), w.buffer(f32, 4)
    places = w.put(ops.VECTORIZE, *(number(k) for k in (3, 1, 2, 0)))
    with pytest.raises(RenderError, match="cannot express a gather of float32x4: split it into loads of one element"):
        w.put(ops.STORE, out, number(0), w.put(ops.LOAD, x, places))
        C.render(w.kernel("k"))
    w = Writer()
    with pytest.raises(RenderError, match="cannot express fold_lanes of float32: rules must remove it before"):
        w.put(ops.FOLD_LANES, const(f32.vec(4), 1.0), dtype=f32, arg=ops.ADD)
        C.render(w.kernel("k"))
