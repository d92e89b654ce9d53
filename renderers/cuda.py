"""CUDA C++ for NVIDIA's compilers: blocks of threads, shared memory, the built-in vector types.

The text includes no header, so that NVRTC takes it as it is: floats of 16 bits are held as their bits and converted by
instructions, and vectors are only moved; the compiler keeps them in registers. Compile with `--fmad=false`: products
and sums are fused only where the text says `fma`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

from ..engine import dtypes as d
from ..engine import ops
from ..engine.dtypes import DType
from ..engine.linear import BufferParam
from ..engine.ops import SpecialArg, ThreadKind
from ..engine.target import Target
from ..engine.uop import UOp
from .cstyle import CStyle
from .dialect import FUNCTIONS, Operation, Source, signed, word
from .text import ATOM, COMPARISON, SUM, UNARY, Text, call, convert

FEATURES = frozenset({
    "threads", "local-memory", "max", "int-max", "half-storage", "float64", "mulacc", "recip", "round", "exp2",
})  # fmt: skip
"""What every GPU has that CUDA knows."""

FLAGS = ("--fmad=false",)
"""Without this flag the compiler fuses products and sums, which rounds once instead of twice."""

_SCALARS = {
    d.bool_: "bool", d.int8: "signed char", d.int16: "short", d.int32: "int", d.int64: "long long",
    d.uint8: "unsigned char", d.uint16: "unsigned short", d.uint32: "unsigned int", d.uint64: "unsigned long long",
    d.float16: "unsigned short", d.bfloat16: "unsigned short", d.float32: "float", d.float64: "double",
}  # fmt: skip

_VECTORS = {
    d.bool_: "uchar", d.int8: "char", d.int16: "short", d.int32: "int", d.int64: "longlong",
    d.uint8: "uchar", d.uint16: "ushort", d.uint32: "uint", d.uint64: "ulonglong",
    d.float16: "ushort", d.bfloat16: "ushort", d.float32: "float", d.float64: "double",
}  # fmt: skip
"""What the names of the language's own vector types begin with."""

_RESERVED = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast
    continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto
    if inline int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq threadIdx blockIdx blockDim gridDim warpSize INFINITY NAN exp2 log2 sin sqrt floor ceil trunc rint exp2f log2f
    sinf sqrtf floorf ceilf truncf rintf fma fmaf memcpy min max abs
"""


class CudaRenderer(CStyle):
    """Prints CUDA C++ for GPUs of compute capability `arch`, 80 for 8.0."""

    suffixes = MappingProxyType({d.int64: "ll", d.uint32: "u", d.uint64: "ull", d.float32: "f"})
    keywords = frozenset(_RESERVED.split())
    qualifier = "static __device__ inline"
    scalars = _SCALARS
    bits16 = frozenset({d.float16, d.bfloat16})

    def __init__(self, *, arch: int = 80, group_threads: int = 1024, local_memory: int = 49152) -> None:
        self.arch = arch
        self.target = Target("cuda", FEATURES, (4, 2), group_threads, local_memory)

    # --- the frame ---

    def signature(self, source: Source) -> tuple[str, list[str]]:
        kernel = source.kernel
        if kernel.threads > 1:
            raise self.lacks("a thread number", d.int32, "its threads are groups")
        bounds = f"__launch_bounds__({math.prod(kernel.locals)}) " if kernel.locals else ""
        return f'extern "C" __global__ void {bounds}{self.function_name(kernel)}', self.parameters(source)

    def preamble(self, source: Source) -> list[str]:
        lines = [
            f"// Compile with {' '.join(FLAGS)}.",
            "#ifndef INFINITY",
            "#define INFINITY __int_as_float(0x7f800000)",
            "#endif",
            "#ifndef NAN",
            "#define NAN __int_as_float(0x7fffffff)",
            "#endif",
        ]
        made = {self._name(dtype): dtype for dtype in source.vectors.values() if not _built_in(dtype)}
        return lines + [self._declared(name, made[name]) for name in sorted(made)]

    def _declared(self, name: str, dtype: DType) -> str:
        size = min(16, dtype.lanes * dtype.bits // 8)
        return f"struct __align__({size}) {name} {{ {self._element(dtype)} x[{dtype.lanes}]; }};"

    def _element(self, dtype: DType) -> str:
        return "unsigned char" if dtype.kind == "bool" else self.scalars[dtype.scalar]

    def buffer(self, source: Source, parameter: BufferParam, name: str) -> str:
        constant = "" if parameter.written else "const "
        return f"{constant}{self.type_name(source, parameter.dtype)} *__restrict__ {name}"

    def local(self, source: Source, element: DType, name: str, size: int) -> str:
        return f"__shared__ __align__(16) {self.type_name(source, element)} {name}[{size}];"

    def special(self, source: Source, node: UOp) -> tuple[str, Text]:
        """Without local sizes the launch chooses blocks that divide the first dimension, so an index counts all threads."""
        arg = node.arg
        assert isinstance(arg, SpecialArg)
        axis = "xyz"[arg.dim]
        if arg.kind is ThreadKind.THREAD:
            raise self.lacks("a thread number", node.dtype, "its threads are groups")
        if arg.kind is ThreadKind.LOCAL:
            return f"lidx{arg.dim}", Text(f"threadIdx.{axis}")
        group = f"blockIdx.{axis}"
        whole = source.kernel.locals or arg.dim > 0
        return f"gidx{arg.dim}", Text(group) if whole else Text(f"{group} * blockDim.{axis} + threadIdx.{axis}", SUM)

    def barrier(self, node: UOp) -> str:
        return "__syncthreads();"

    # --- memory and vectors ---

    def type_name(self, source: Source, dtype: DType) -> str:
        """The vectors have the language's own names, which do not tell the bits of an element."""
        name = super().type_name(source, dtype)
        return name if dtype.lanes == 1 else self._name(dtype)

    def _name(self, dtype: DType) -> str:
        return f"{'' if _built_in(dtype) else 'v'}{_VECTORS[dtype.scalar]}{dtype.lanes}"

    def load(self, source: Source, dtype: DType, buffer: str, at: Text) -> Text:
        """A vector stands at a multiple of its width: the target does not say `unaligned`."""
        if dtype.lanes == 1:
            return Text(f"{buffer}[{at.text}]")
        return Text(f"*(const {self.type_name(source, dtype)} *)({buffer} + {at.at(SUM)})", UNARY)

    def store(self, source: Source, dtype: DType, buffer: str, at: Text, value: Text) -> str:
        if dtype.lanes == 1:
            return f"{buffer}[{at.text}] = {value.text};"
        return f"*({self.type_name(source, dtype)} *)({buffer} + {at.at(SUM)}) = {value.text};"

    def vector(self, source: Source, dtype: DType, lanes: Sequence[Text]) -> Text:
        every = ", ".join(lane.text for lane in list(lanes) * (dtype.lanes // len(lanes)))
        name = self.type_name(source, dtype)
        return Text(f"make_{name}({every})" if _built_in(dtype) else f"{name}{{{{{every}}}}}")

    def lane(self, dtype: DType, vector: Text, lane: int) -> Text:
        part = f".{'xyzw'[lane]}" if _built_in(dtype) else f".x[{lane}]"
        text = f"{vector.at(ATOM)}{part}"
        return Text(f"{text} != 0", COMPARISON) if dtype.kind == "bool" else Text(text)

    # --- operators ---

    def operation(self, source: Source, what: Operation) -> Text:
        """The language has no operators on vectors: a helper applies them to each lane."""
        if what.dtype.lanes > 1:
            self._check(what)
            if what.op is ops.CAST and what.dtype is what.operand:
                return what.operands[0]
            return self.by_lane(source, what)
        return super().operation(source, what)

    def arithmetic(self, source: Source, what: Operation) -> Text:
        if what.op is ops.MULACC and what.dtype.is_float:
            return call("fma" if what.dtype is d.float64 else "fmaf", *what.operands)
        if what.op in (ops.SHL, ops.SHR):
            what = self.bounded_shift(source, what)
        return super().arithmetic(source, what)

    def wrapping(self, source: Source, what: Operation) -> Text:
        """Signed overflow is undefined in C++: computes in the unsigned type of at least 32 bits."""
        dtype = what.dtype
        if dtype.kind == "uint" and dtype.bits >= 32:
            return signed(what.op, what.operands)
        name = self.type_name(source, d.by_name(f"uint{max(32, dtype.bits)}"))
        text = signed(what.op, tuple(convert(name, operand) for operand in what.operands))
        return convert(self.type_name(source, dtype), text)

    def function(self, source: Source, what: Operation) -> Text:
        name = FUNCTIONS[what.op]
        return call(name if what.dtype is d.float64 else name + "f", *what.operands)

    def extremum(self, source: Source, what: Operation) -> Text:
        """Of floats, with a NaN where one operand is one, which the language's own functions drop."""
        first = f"a {'>' if what.op is ops.MAX else '<'} b"
        if what.dtype.is_float:
            first += " || a != a"
        return self.helper(source, f"{what.op.name}_{word(what.dtype)}", what, f"return {first} ? a : b;")

    def convert_vector(self, source: Source, what: Operation) -> Text:
        return self.by_lane(source, what)

    def bitcast(self, source: Source, what: Operation) -> Text:
        lines = (f"{self.type_name(source, what.dtype)} r;", "memcpy(&r, &a, sizeof r);", "return r;")
        return self.helper(source, f"bitcast_{word(what.operand)}_{word(what.dtype)}", what, *lines)

    def half_to_float(self, source: Source) -> str:
        lines = ("float r;", 'asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(bits));', "return r;")
        source.add("half_to_float", "float half_to_float(unsigned short bits)", *lines)
        return "half_to_float"

    def float_to_half(self, source: Source, wide: DType) -> str:
        name, kind, register = f"{word(wide)}_to_half", "f64" if wide is d.float64 else "f32", "fd"[wide is d.float64]
        move = f'asm("cvt.rn.f16.{kind} %0, %1;" : "=h"(bits) : "{register}"(a));'
        lines = ("unsigned short bits;", move, "return bits;")
        source.add(name, f"unsigned short {name}({self.type_name(source, wide)} a)", *lines)
        return name


def _built_in(dtype: DType) -> bool:
    """Whether the language has the type; those of four elements of 64 bits it has in versions that it gave up."""
    return dtype.lanes == 2 or dtype.lanes == 4 and dtype.bits < 64
