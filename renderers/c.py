"""C for GCC and Clang: one function a kernel, loops, vectors by the compilers' vector extensions."""

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
from .dialect import FUNCTIONS, Operation, Source, signed, word
from .text import SUM, UNARY, Text, call, convert

FEATURES = frozenset({"max", "int-max", "float64", "cast-vector", "mulacc", "recip", "round", "unaligned"})
"""What every C compiler that we can use has."""

FLAGS = ("-fwrapv", "-ffp-contract=off")
"""Without these flags a compiler may give the source another meaning."""

CONTRACT_FLAGS = ("-fwrapv", "-ffp-contract=fast")
"""The flags for a kernel in which products and sums may be fused."""

_SCALARS = {
    d.bool_: "_Bool", d.int8: "int8_t", d.int16: "int16_t", d.int32: "int", d.int64: "int64_t",
    d.uint8: "uint8_t", d.uint16: "uint16_t", d.uint32: "uint32_t", d.uint64: "uint64_t",
    d.bfloat16: "uint16_t", d.float32: "float", d.float64: "double",
}  # fmt: skip

_RESERVED = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    bool true false asm typeof nullptr constexpr alignas alignof thread_local static_assert thread main
    INFINITY NAN exp2 log2 sin sqrt floor ceil trunc rint exp2f log2f sinf sqrtf floorf ceilf truncf rintf
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t unix linux
"""


class CRenderer(CStyle):
    """Prints C. `half`: the compiler has `_Float16`; `half_storage`: it has `__fp16`, to convert but not to compute."""

    suffixes = MappingProxyType({d.int64: "ll", d.uint32: "u", d.uint64: "ull", d.float32: "f", d.float16: "f"})
    keywords = frozenset(_RESERVED.split())

    def __init__(
        self,
        *,
        half: bool = False,
        half_storage: bool = False,
        widths: tuple[int, ...] = (16, 8, 4, 2),
        registers: tuple[int, int] = (4, 16),
    ) -> None:
        features = FEATURES | ({"half", "half-storage"} if half else {"half-storage"} if half_storage else set())
        lanes, count = registers
        self.target = Target("c", features, widths, lanes=lanes, registers=count)
        self.scalars = _SCALARS | {d.float16: "_Float16" if half else "uint16_t"}
        self.bits16 = frozenset({d.bfloat16} if half else {d.bfloat16, d.float16})

    # --- the frame ---

    def signature(self, source: Source) -> tuple[str, list[str]]:
        thread = ["int thread"] if source.kernel.threads > 1 else []
        return f"void {self.function_name(source.kernel)}", [*self.parameters(source), *thread] or ["void"]

    def preamble(self, source: Source) -> list[str]:
        flags = " ".join(CONTRACT_FLAGS if source.contracts else FLAGS)
        lines = [f"// Compile with {flags}.", "#include <math.h>", "#include <stdint.h>"]
        vectors = sorted(source.vectors.items(), key=lambda item: (item[1].scalar.name, item[1].lanes))
        return lines + [self._vector_type(name, dtype) for name, dtype in vectors]

    def _vector_type(self, name: str, dtype: DType) -> str:
        element = "uint8_t" if dtype.kind == "bool" else self.scalars[dtype.scalar]
        return f"typedef {element} {name} __attribute__((vector_size({dtype.bits // 8 * dtype.lanes})));"

    def buffer(self, source: Source, parameter: BufferParam, name: str) -> str:
        constant = "" if parameter.written else "const "
        return f"{constant}{self.type_name(source, parameter.dtype)} *restrict {name}"

    def special(self, source: Source, node: UOp) -> tuple[str, Text]:
        assert isinstance(node.arg, SpecialArg)
        if node.arg.kind is not ThreadKind.THREAD:
            raise self.lacks(f"a {node.arg.kind.value} index", node.dtype, "make a loop of the axis")
        return "thread", Text("thread") if node.dtype is d.int32 else Text("(int64_t)thread", UNARY)

    # --- memory and vectors ---

    def load(self, source: Source, dtype: DType, buffer: str, at: Text) -> Text:
        if dtype.lanes == 1:
            return Text(f"{buffer}[{at.text}]")
        name, vector, element = (
            f"load_{word(dtype)}",
            self.type_name(source, dtype),
            self.type_name(source, dtype.scalar),
        )
        lines = (f"{vector} v;", "__builtin_memcpy(&v, p, sizeof v);", "return v;")
        source.add(name, f"{vector} {name}(const {element} *p)", *lines)
        return Text(f"{name}({buffer} + {at.at(SUM)})")

    def store(self, source: Source, dtype: DType, buffer: str, at: Text, value: Text) -> str:
        if dtype.lanes == 1:
            return f"{buffer}[{at.text}] = {value.text};"
        name, vector, element = (
            f"store_{word(dtype)}",
            self.type_name(source, dtype),
            self.type_name(source, dtype.scalar),
        )
        source.add(name, f"void {name}({element} *p, {vector} v)", "__builtin_memcpy(p, &v, sizeof v);")
        return f"{name}({buffer} + {at.at(SUM)}, {value.text});"

    def vector(self, source: Source, dtype: DType, lanes: Sequence[Text]) -> Text:
        every = list(lanes) * (dtype.lanes // len(lanes))
        return Text(f"({self.type_name(source, dtype)}){{{', '.join(lane.text for lane in every)}}}")

    def lane(self, dtype: DType, vector: Text, lane: int) -> Text:
        return Text(f"{vector.text}[{lane}]")

    # --- operators ---

    def literal(self, source: Source, dtype: DType, value: Scalar) -> Text:
        text = super().literal(source, dtype, value)
        return convert("_Float16", text) if dtype is d.float16 and dtype not in self.bits16 else text

    def wrapping(self, source: Source, what: Operation) -> Text:
        """With `-fwrapv` signed integers wrap as they stand; only a shift's amount must be made defined."""
        if what.op is ops.SHL:
            what = self.bounded_shift(source, what)
        return self.narrow(source, what.dtype, signed(what.op, what.operands))

    def arithmetic(self, source: Source, what: Operation) -> Text:
        if what.op in (ops.SHL, ops.SHR):
            what = self.bounded_shift(source, what)
        return super().arithmetic(source, what._replace(wraps=False))

    def function(self, source: Source, what: Operation) -> Text:
        name = FUNCTIONS[what.op]
        if what.dtype.lanes > 1:
            return self.by_lane(source, what)
        if what.dtype is d.float16:
            return convert("_Float16", call(name + "f", *what.operands))
        return call(name if what.dtype is d.float64 else name + "f", *what.operands)

    def extremum(self, source: Source, what: Operation) -> Text:
        """Of floats, with a NaN where one operand is one. Comparing vectors gives all ones in the lanes where it holds."""
        name, dtype = f"{what.op.name}_{word(what.dtype)}", what.dtype
        first = f"a {'>' if what.op is ops.MAX else '<'} b"
        if dtype.is_float:
            first += " | a != a" if dtype.lanes > 1 else " || a != a"
        if dtype.lanes == 1:
            return self.helper(source, name, what, f"return {first} ? a : b;")
        bits = self.type_name(source, d.by_name(f"int{dtype.bits}").vec(dtype.lanes) if dtype.is_float else dtype)
        made = f"(({bits})a & first) | (({bits})b & ~first)"
        lines = (f"{bits} first = ({bits})({first});", f"return ({self.type_name(source, dtype)})({made});")
        return self.helper(source, name, what, *lines)

    def convert_vector(self, source: Source, what: Operation) -> Text:
        if d.float16 in (what.dtype.scalar, what.operand.scalar):
            return self.by_lane(source, what)
        return Text(f"__builtin_convertvector({what.operands[0].text}, {self.type_name(source, what.dtype)})")

    def bitcast(self, source: Source, what: Operation) -> Text:
        result = self.type_name(source, what.dtype)
        if what.dtype.lanes > 1:
            return convert(result, what.operands[0])
        lines = (f"{result} r;", "__builtin_memcpy(&r, &a, sizeof r);", "return r;")
        return self.helper(source, f"bitcast_{word(what.operand)}_{word(what.dtype)}", what, *lines)

    def half_to_float(self, source: Source) -> str:
        lines = ("__fp16 h;", "__builtin_memcpy(&h, &bits, sizeof h);", "return h;")
        source.add("half_to_float", "float half_to_float(uint16_t bits)", *lines)
        return "half_to_float"

    def float_to_half(self, source: Source, wide: DType) -> str:
        if wide is d.float64:
            return self._double_to_half(source)
        lines = ("__fp16 h = a;", "uint16_t bits;", "__builtin_memcpy(&bits, &h, sizeof bits);", "return bits;")
        source.add("float_to_half", "uint16_t float_to_half(float a)", *lines)
        return "float_to_half"

    def _double_to_half(self, source: Source) -> str:
        """By way of a float whose last bit says that something was cut off, so that only the second step rounds.

        Compilers disagree with their libraries about the function that would do it at once.
        """
        narrow = self.float_to_half(source, d.float32)
        lines = (
            "float f = (float)a;",
            "uint32_t bits;",
            "__builtin_memcpy(&bits, &f, sizeof bits);",
            "if (f != a) bits = (bits - (fabs(f) > fabs(a))) | 1;",
            "__builtin_memcpy(&f, &bits, sizeof f);",
            f"return {narrow}(f);",
        )
        source.add("double_to_half", "uint16_t double_to_half(double a)", *lines)
        return "double_to_half"
