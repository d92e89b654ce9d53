"""OpenCL C 1.2: work-groups, local memory, native vectors."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ..engine import dtypes as d
from ..engine import ops
from ..engine.dtypes import DType, Scalar
from ..engine.linear import BufferParam
from ..engine.ops import SpecialArg, ThreadKind
from ..engine.target import Target
from ..engine.uop import UOp
from .cstyle import CStyle
from .dialect import FUNCTIONS, WORDS, Operation, Source, signed, word
from .text import ATOM, COMPARISON, SUM, UNARY, Text, call, convert

FEATURES = frozenset(
    {
        "threads",
        "local-memory",
        "max",
        "int-max",
        "half-storage",
        "cast-vector",
        "math-vector",
        "mulacc",
        "recip",
        "round",
    }
)
"""What every OpenCL device has."""

SAMPLER = "__constant sampler_t texels = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;"
"""Reads the texel at whole coordinates, and 0 outside of the image."""

_SCALARS = {d.by_name(name): text for name, text in WORDS.items() if name != "bfloat16"} | {d.bfloat16: "ushort"}

_RESERVED = """
    auto break case const continue default do else enum extern for goto if inline register restrict return signed sizeof
    static struct switch typedef union unsigned void volatile while true false
    bool char short int long uchar ushort uint ulong half float double quad size_t kernel global local constant private
    read_only write_only read_write image2d_t sampler_t texels read_imagef event_t pipe uniform vec_step main INFINITY NAN
    exp2 log2 sin sqrt floor ceil trunc rint max min barrier get_group_id get_local_id get_global_id vload_half
    """


class OpenCLRenderer(CStyle):
    """Prints OpenCL C. `half`, `float64`: the device computes in these types (extensions cl_khr_fp16, cl_khr_fp64)."""

    suffixes = MappingProxyType({
        d.int64: "l", d.uint32: "u", d.uint64: "ul", d.float16: "h", d.float32: "f",
    })  # fmt: skip
    keywords = frozenset(_RESERVED.split())

    def __init__(
        self,
        *,
        half: bool = False,
        float64: bool = True,
        group_threads: int = 1024,
        local_memory: int = 32768,
        cpu_lanes: int = 0,
        images: bool = False,
    ) -> None:
        """`cpu_lanes`: on a processor's cores, the float32 lanes of its vector registers; `images`: it has 2-D images."""
        features = FEATURES | ({"half"} if half else set()) | ({"float64"} if float64 else set())
        if images:
            features |= {"images"}
        if cpu_lanes:
            features |= {"cpu", "unaligned"}
        else:
            features |= {"exp2"}
        registers = 32 if cpu_lanes == 16 else 16
        self.target = Target("opencl", features, (16, 8, 4, 2), group_threads, local_memory, cpu_lanes or 4, registers)
        self.scalars = dict(_SCALARS)
        self.bits16 = frozenset({d.bfloat16})
        if not half:
            self.scalars[d.float16] = "ushort"
            self.bits16 |= {d.float16}
        if not float64:
            del self.scalars[d.float64]

    # --- the frame ---

    def signature(self, source: Source) -> tuple[str, list[str]]:
        kernel = source.kernel
        if kernel.threads > 1:
            raise self.lacks("a thread number", d.int32, "its threads are groups")
        sizes = (*kernel.locals, 1, 1, 1)[:3]
        group = f"__attribute__((reqd_work_group_size({', '.join(map(str, sizes))}))) " if kernel.locals else ""
        return f"__kernel {group}void {self.function_name(kernel)}", self.parameters(source)

    def preamble(self, source: Source) -> list[str]:
        lines = [f"#pragma OPENCL FP_CONTRACT {'ON' if source.contracts else 'OFF'}"]
        if d.float64 in source.used:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
        if d.float16 in source.used and d.float16 not in self.bits16:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp16 : enable")
        if any(parameter.image for parameter in source.kernel.buffers):
            lines += ["", SAMPLER]
        return lines

    def buffer(self, source: Source, parameter: BufferParam, name: str) -> str:
        if parameter.image:
            return f"__read_only image2d_t {name}"
        constant = "" if parameter.written else "const "
        return f"__global {constant}{self._element(source, parameter.dtype)} *restrict {name}"

    def _element(self, source: Source, dtype: DType) -> str:
        """The type of a buffer's elements: `bool` cannot stand in memory that the host shares."""
        return "uchar" if dtype.kind == "bool" else self.type_name(source, dtype)

    def type_name(self, source: Source, dtype: DType) -> str:
        """A vector of truth values, which can only be moved, is one of bytes; of 16-bit floats, one of their bits."""
        name = super().type_name(source, dtype)
        if dtype.lanes == 1:
            return name
        return f"uchar{dtype.lanes}" if dtype.kind == "bool" else f"{self.scalars[dtype.scalar]}{dtype.lanes}"

    def local(self, source: Source, element: DType, name: str, size: int) -> str:
        return f"__local {self._element(source, element)} {name}[{size}];"

    def special(self, source: Source, node: UOp) -> tuple[str, Text]:
        """Without local sizes the runtime chooses the groups, so a group's index counts all work-items."""
        arg = node.arg
        assert isinstance(arg, SpecialArg)
        if arg.kind is ThreadKind.LOCAL:
            return f"lidx{arg.dim}", Text(f"get_local_id({arg.dim})")
        if arg.kind is ThreadKind.THREAD:
            raise self.lacks("a thread number", node.dtype, "its threads are groups")
        return f"gidx{arg.dim}", Text(f"get_{'group' if source.kernel.locals else 'global'}_id({arg.dim})")

    def barrier(self, node: UOp) -> str:
        """Fences global memory too where a store before it goes there."""
        shared = any(store.op is ops.STORE and store.src[0].dtype.space == "global" for store in node.src)
        return f"barrier(CLK_LOCAL_MEM_FENCE{' | CLK_GLOBAL_MEM_FENCE' if shared else ''});"

    # --- memory and vectors ---

    def texel(self, source: Source, operands: Sequence[Text]) -> Text:
        column, row, _ = operands
        return Text(f"(int2)({column.text}, {row.text})", UNARY)

    def read_texel(self, buffer: str, at: Text) -> Text:
        return Text(f"read_imagef({buffer}, texels, {at.text})")

    def load(self, source: Source, dtype: DType, buffer: str, at: Text) -> Text:
        if dtype.lanes > 1:
            self.type_name(source, dtype)
            return Text(f"vload{dtype.lanes}(0, {buffer} + {at.at(SUM)})")
        element = f"{buffer}[{at.text}]"
        return Text(f"{element} != 0", COMPARISON) if dtype.kind == "bool" else Text(element)

    def store(self, source: Source, dtype: DType, buffer: str, at: Text, value: Text) -> str:
        if dtype.lanes > 1:
            return f"vstore{dtype.lanes}({value.text}, 0, {buffer} + {at.at(SUM)});"
        return f"{buffer}[{at.text}] = {value.text};"

    def vector(self, source: Source, dtype: DType, lanes: Sequence[Text]) -> Text:
        return Text(f"({self.type_name(source, dtype)})({', '.join(lane.text for lane in lanes)})", UNARY)

    def lane(self, dtype: DType, vector: Text, lane: int) -> Text:
        text = f"{vector.at(ATOM)}.s{lane:x}"
        return Text(f"{text} != 0", COMPARISON) if dtype.kind == "bool" else Text(text)

    # --- operators ---

    def literal(self, source: Source, dtype: DType, value: Scalar) -> Text:
        """Overloaded functions need every literal in its exact type, and only int and wider types have suffixes."""
        text = super().literal(source, dtype, value)
        if (dtype.is_int and dtype.bits < 32) or dtype in self.bits16:
            return convert(self.scalars[dtype], text)
        if dtype.is_float and dtype is not d.float32 and text.text.strip("(-)") in ("INFINITY", "NAN"):
            return convert(self.type_name(source, dtype), text)
        return text

    def wrapping(self, source: Source, what: Operation) -> Text:
        """Signed overflow is undefined in OpenCL C: computes in the unsigned type of at least 32 bits."""
        dtype = what.dtype
        narrow = dtype.bits < 32 and dtype.lanes == 1
        if dtype.kind == "uint" and not narrow:
            return signed(what.op, what.operands)
        wide = d.by_name(f"uint{32 if narrow else dtype.bits}").vec(dtype.lanes)
        name = self.type_name(source, wide)
        if dtype.lanes > 1:
            text = signed(what.op, tuple(call(f"as_{name}", operand) for operand in what.operands))
            return call(f"as_{self.type_name(source, dtype)}", text)
        text = signed(what.op, tuple(convert(name, operand) for operand in what.operands))
        return convert(self.type_name(source, dtype), text)

    def function(self, source: Source, what: Operation) -> Text:
        name = FUNCTIONS[what.op]
        if what.op is ops.SIN and what.dtype.lanes > 1 and what.dtype.scalar is d.float32:
            return self._sine(source, what)
        return call(name, *what.operands)

    def _sine(self, source: Source, what: Operation) -> Text:
        """PoCL's sine of a float vector is wrong in the lanes beside a huge one; lane by lane it is right."""
        vector = self.type_name(source, what.dtype)
        lanes = ", ".join(f"sin(a.s{k:x})" for k in range(what.dtype.lanes))
        line = f"return all(fabs(a) < 30000.0f) ? sin(a) : ({vector})({lanes});"
        return self.helper(source, f"sin_{word(what.dtype)}", what, line)

    def extremum(self, source: Source, what: Operation) -> Text:
        """Of floats, with a NaN where one operand is one, which the language's own functions do not promise."""
        if what.dtype.is_int:
            held = self.type_name(source, what.dtype)
            return call(what.op.name, *(self._exactly(held, operand) for operand in what.operands))
        name, sign = f"{what.op.name}_{word(what.dtype)}", ">" if what.op is ops.MAX else "<"
        vectors = what.dtype.lanes > 1
        line = f"select(b, a, (a {sign} b) | (a != a))" if vectors else f"a {sign} b || a != a ? a : b"
        return self.helper(source, name, what, f"return {line};")

    def _exactly(self, held: str, operand: Text) -> Text:
        """An integer operand of an overloaded function: C promotes what is narrower than int, and then no overload fits."""
        exact = operand.level == ATOM or operand.text.startswith(f"({held})")
        return operand if exact else convert(held, operand)

    def convert_vector(self, source: Source, what: Operation) -> Text:
        return call(f"convert_{self.type_name(source, what.dtype)}", *what.operands)

    def bitcast(self, source: Source, what: Operation) -> Text:
        return call(f"as_{self.type_name(source, what.dtype)}", *what.operands)

    def reinterpret(self, source: Source, what: Operation) -> Text:
        return super().reinterpret(source, what) if what.dtype.lanes == 1 else self.bitcast(source, what)

    def half_to_float(self, source: Source) -> str:
        """`half` may only be pointed to, so the bits go by way of memory; `may_alias` makes that defined."""
        lines = ("bits16 bits = a;", "return vload_half(0, (const half *)&bits);")
        self._half_helper(source, "float half_to_float(ushort a)", lines)
        return "half_to_float"

    def float_to_half(self, source: Source, wide: DType) -> str:
        name = f"{word(wide)}_to_half"
        lines = ("bits16 bits;", "vstore_half_rte(a, 0, (half *)&bits);", "return bits;")
        self._half_helper(source, f"ushort {name}({self.type_name(source, wide)} a)", lines)
        return name

    def _half_helper(self, source: Source, head: str, lines: tuple[str, ...]) -> None:
        source.helpers.setdefault("bits16", ["typedef ushort bits16 __attribute__((may_alias));"])
        source.add(head.split("(")[0].split()[1], head, *lines)
