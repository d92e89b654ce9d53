"""What the languages of the C family share in expressions, and what each of them must say about itself.

A `Dialect` is tables (types, literals, keywords) and methods that print one operator; it keeps no state. What a
printing gathers beside its lines (helper functions, vector types) is in a `Source`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..engine import intervals, ops
from ..engine.dtypes import DType, Scalar, float32
from ..engine.errors import RenderError
from ..engine.facts import interval
from ..engine.linear import LinearKernel
from ..engine.ops import Op
from ..engine.target import Target
from ..engine.uop import UOp
from . import literals
from .text import SUM, SYMBOLS, Text, call, choose, convert, infix, prefix

WORDS: dict[str, str] = {
    "bool": "bool", "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double",
}  # fmt: skip
"""What names of helpers and vector types call a scalar type: the words of OpenCL."""


FUNCTIONS = {
    ops.EXP2: "exp2", ops.LOG2: "log2", ops.SIN: "sin", ops.SQRT: "sqrt",
    ops.FLOOR: "floor", ops.CEIL: "ceil", ops.TRUNC: "trunc", ops.ROUND: "rint",
}  # fmt: skip
"""What every dialect of C calls a function, in double precision where its name tells the precision."""


def word(dtype: DType) -> str:
    """`float`, `float4`: a type in the name of a helper or of a vector type."""
    return WORDS[dtype.scalar.name] + (str(dtype.lanes) if dtype.lanes > 1 else "")


class Operation(NamedTuple):
    """An elementwise operator on printed operands.

    `wraps`: the exact result may leave the type, or a negative number is shifted left. `faults`: a divisor may be 0, a
    quotient too large, or a shift's amount out of range. Both are false only where that is proven.
    """

    op: Op
    dtype: DType
    types: tuple[DType, ...]
    operands: tuple[Text, ...]
    wraps: bool = True
    faults: bool = True

    def on(self, *operands: Text) -> Operation:
        return self._replace(operands=operands)

    @property
    def operand(self) -> DType:
        """The type that the operator works on: of a comparison its operands', of `where` its branches'."""
        return self.types[-1]

    @property
    def lane(self) -> Operation:
        """The same on scalars: what it does in each lane of a vector."""
        return self._replace(dtype=self.dtype.scalar, types=tuple(t.scalar for t in self.types))


class Source:
    """What a printing gathers beside the kernel's lines."""

    def __init__(self, kernel: LinearKernel, qualifier: str, before: Source | None = None) -> None:
        """`qualifier`: what a helper begins with; `before`: the printing of the part before, whose helpers are there too."""
        self.kernel = kernel
        self._qualifier = qualifier
        self.helpers: dict[str, list[str]] = {} if before is None else before.helpers
        self.vectors: dict[str, DType] = {} if before is None else before.vectors  # in use, to be declared
        self.used: set[DType] = set() if before is None else before.used  # scalar types in use, to be enabled

    def add(self, name: str, head: str, *lines: str) -> None:
        """A function `head { lines }`, once for each name, before the kernel."""
        self.helpers.setdefault(name, [f"{self._qualifier} {head} {{", *(f"  {line}" for line in lines), "}"])

    @property
    def contracts(self) -> bool:
        """Whether products and sums of floats may be fused: only a kernel that grants it has such a node."""
        return may_contract(self.kernel)


def may_contract(kernel: LinearKernel) -> bool:
    """Whether the kernel says, by a `mulacc` of floats, that fusing a product and a sum is granted."""
    return any(node.op is ops.MULACC and node.dtype.is_float for part in kernel.parts for node in part.uops)


class Dialect(ABC):
    """A language of the C family."""

    target: Target
    scalars: Mapping[DType, str]
    """The names of the scalar types that the language has."""
    bits16: frozenset[DType] = frozenset()
    """The 16-bit floats that it holds as unsigned integers, having no such type: they can be moved, not computed."""
    qualifier = "static inline"
    """What the definition of a helper function begins with."""
    suffixes: Mapping[DType, str]
    """What follows a literal of a type; nothing for a type that is not named."""

    # --- what a language must say ---

    @abstractmethod
    def vector(self, source: Source, dtype: DType, lanes: Sequence[Text]) -> Text:
        """A vector made of scalars; a single one stands for all lanes."""

    @abstractmethod
    def lane(self, dtype: DType, vector: Text, lane: int) -> Text:
        """One lane of a vector whose text is a name."""

    @abstractmethod
    def wrapping(self, source: Source, what: Operation) -> Text:
        """An arithmetic operator on integers whose result may leave the type: it wraps."""

    @abstractmethod
    def function(self, source: Source, what: Operation) -> Text:
        """A mathematical function of floats, on scalars or vectors."""

    @abstractmethod
    def extremum(self, source: Source, what: Operation) -> Text:
        """`max` or `min`, on scalars or vectors; of floats a NaN where one operand is one."""

    @abstractmethod
    def convert_vector(self, source: Source, what: Operation) -> Text:
        """A cast of a vector of numbers to another."""

    @abstractmethod
    def bitcast(self, source: Source, what: Operation) -> Text:
        """The same bits as another type; not between two types held as integers."""

    @abstractmethod
    def half_to_float(self, source: Source) -> str:
        """The function that widens the bits of a float16. Raises RenderError without `half-storage`."""

    @abstractmethod
    def float_to_half(self, source: Source, wide: DType) -> str:
        """The function that rounds a float32 or float64 to the bits of a float16."""

    # --- types and constants ---

    def lacks(self, what: str, dtype: DType, reason: str) -> RenderError:
        """The error for what the language cannot express."""
        return RenderError(f"device {self.target.name} cannot express {what} of {dtype}: {reason}")

    def type_name(self, source: Source, dtype: DType) -> str:
        """The name of a scalar or vector type. Raises RenderError."""
        name = self.scalars.get(dtype.scalar)
        if name is None:
            raise self.lacks("a value", dtype, "it has no such type; a lowering rule must replace it")
        source.used.add(dtype.scalar)
        if dtype.lanes == 1:
            return name
        if dtype.lanes not in self.target.widths:
            widths = ", ".join(str(n) for n in self.target.widths)
            raise self.lacks("a vector", dtype, f"its vectors have {widths} lanes")
        source.vectors[word(dtype)] = dtype
        return word(dtype)

    def constant(self, source: Source, dtype: DType, value: Scalar) -> Text:
        """A literal, exact and in its type; in a vector type the value of every lane."""
        text = self.literal(source, dtype.scalar, value)
        return text if dtype.lanes == 1 else self.vector(source, dtype, [text])

    def literal(self, source: Source, dtype: DType, value: Scalar) -> Text:
        """A scalar constant."""
        suffix = self.suffixes.get(dtype, "")
        if dtype in self.bits16:
            return Text(literals.pattern(value, dtype))
        if dtype.is_float:
            return Text(literals.floating(float(value), dtype, suffix))
        return Text(literals.integer(int(value), dtype, suffix))

    # --- operators ---

    def operation(self, source: Source, what: Operation) -> Text:
        """An elementwise operator as an expression of its type. Raises RenderError."""
        self._check(what)
        op = what.op
        match op:
            case ops.CAST:
                return self.cast(source, what)
            case ops.BITCAST:
                held = all(t.is_int or t.scalar in self.bits16 for t in (what.dtype, *what.types))
                return self.reinterpret(source, what) if held else self.bitcast(source, what)
            case ops.WHERE:
                return self.narrow(source, what.dtype, choose(*what.operands))
            case _ if what.operand.kind == "bool":
                return on_bool(op, what.operands)
            case ops.TRUNCDIV | ops.TRUNCMOD:
                return self.division(source, what)
            case ops.MAX | ops.MIN:
                return self.extremum(source, what)
            case ops.RECIP:
                one = self.literal(source, what.dtype.scalar, 1.0)
                return infix(ops.DIV, one, what.operands[0])
        if op in SYMBOLS or op in (ops.NEG, ops.NOT, ops.MULACC):
            return self.arithmetic(source, what)
        return self.function(source, what)

    def _check(self, what: Operation) -> None:
        """Raises RenderError for an operator on a type that can only be moved."""
        types = (what.dtype, *what.types)
        bits = next((t for t in types if t.scalar in self.bits16), None)
        if bits is not None and what.op not in (ops.WHERE, ops.BITCAST, ops.CAST):
            raise self.lacks(what.op.name, bits, "it only stores such values; a lowering rule must compute in float32")
        truths = next((t for t in types if t.kind == "bool" and t.lanes > 1), None)
        if truths is not None and what.op is not ops.CAST:
            raise self.lacks(what.op.name, truths, "it has no vectors of truth values; split the lanes")
        if what.op in (ops.FLOORDIV, ops.FLOORMOD):
            raise self.lacks(what.op.name, what.dtype, "it divides towards zero; a lowering rule must correct that")

    def arithmetic(self, source: Source, what: Operation) -> Text:
        """An operator that has a sign in C, its result in its own type."""
        if what.dtype.is_int and what.wraps and what.op in WRAPPING:
            return self.wrapping(source, what)
        return self.narrow(source, what.dtype, signed(what.op, what.operands))

    def narrow(self, source: Source, dtype: DType, text: Text) -> Text:
        """C computes in int what is narrower: the result brought back into its own type."""
        if dtype.is_int and dtype.bits < 32 and dtype.lanes == 1:
            return convert(self.type_name(source, dtype), text)
        return text

    def bounded_shift(self, source: Source, what: Operation) -> Operation:
        """The shift with its amount brought into range: compilers may take it that it never is outside."""
        if not what.faults:
            return what
        value, amount = what.operands
        return what.on(value, infix(ops.AND, amount, self.constant(source, what.dtype, what.dtype.bits - 1)))

    def division(self, source: Source, what: Operation) -> Text:
        """`/` or `%` where that cannot fault, else a helper that no operand can make fault.

        The processor may trap on a division by zero, even on one whose result an untaken branch ignores.
        """
        if what.dtype.lanes > 1:
            return self.by_lane(source, what)
        if not what.faults:
            return self.arithmetic(source, what)
        plain = self.arithmetic(source, what.on(Text("a"), Text("(b ? b : 1)"))).text
        if what.dtype.kind == "sint" and what.dtype.bits >= 32:  # the least value divided by -1 traps as well
            negated = self.operation(source, Operation(ops.NEG, what.dtype, what.types[:1], (Text("a"),)))
            plain = f"b == -1 ? {negated.text if what.op is ops.TRUNCDIV else 0} : {plain}"
        return self.helper(source, f"{what.op.name}_{word(what.dtype)}", what, f"return {plain};")

    def helper(self, source: Source, name: str, what: Operation, *lines: str) -> Text:
        """A call of a helper function with the parameters `a`, `b`, … that the lines compute with."""
        listed = ", ".join(f"{self.type_name(source, t)} {p}" for t, p in zip(what.types, "abc", strict=False))
        source.add(name, f"{self.type_name(source, what.dtype)} {name}({listed})", *lines)
        return call(name, *what.operands)

    def by_lane(self, source: Source, what: Operation) -> Text:
        """A call of a helper that applies the operator to each lane."""
        converts = what.op in (ops.CAST, ops.BITCAST)
        name = f"{what.op.name}_{word(what.operand)}" + (f"_{word(what.dtype)}" if converts else "")
        lanes = []
        for k in range(what.dtype.lanes):
            picked = [self.lane(t, Text(p), k) for t, p in zip(what.types, "abc", strict=False)]
            lanes.append(self.operation(source, what.lane.on(*picked)))
        return self.helper(source, name, what, f"return {self.vector(source, what.dtype, lanes).text};")

    # --- conversions ---

    def cast(self, source: Source, what: Operation) -> Text:
        """A conversion between two types, scalars or vectors."""
        (operand,), (value,) = what.types, what.operands
        if what.dtype is operand:
            return value
        if what.dtype.lanes > 1:
            bitwise = {what.dtype.scalar, operand.scalar} & self.bits16
            by_lane = bitwise or what.dtype.kind == "bool"
            return self.by_lane(source, what) if by_lane else self.convert_vector(source, what)
        if what.dtype in self.bits16:
            return self._to_bits(source, what)
        if operand in self.bits16:
            self._check_half(what, operand)
            value = call(self.half_to_float(source), value)
            return value if what.dtype is float32 else convert(self.type_name(source, what.dtype), value)
        return convert(self.type_name(source, what.dtype), value)

    def _to_bits(self, source: Source, what: Operation) -> Text:
        """Rounds once: an integer that float32 would round is beyond the largest float16."""
        (operand,), (value,) = what.types, what.operands
        self._check_half(what, what.dtype)
        wide = operand if operand.is_float and operand.bits == 64 else float32
        if operand is not wide:
            value = self.operation(source, Operation(ops.CAST, wide, what.types, what.operands))
        return call(self.float_to_half(source, wide), value)

    def _check_half(self, what: Operation, held: DType) -> None:
        if held.name != "float16" or not self.target.has("half-storage"):
            raise self.lacks("a conversion", held, "it only moves such values; a lowering rule must convert their bits")

    def reinterpret(self, source: Source, what: Operation) -> Text:
        """A bitcast between two types that are integers of one width to the language."""
        name = self.type_name(source, what.dtype)
        return what.operands[0] if name == self.type_name(source, what.operand) else convert(name, what.operands[0])


WRAPPING = frozenset({ops.ADD, ops.SUB, ops.MUL, ops.NEG, ops.SHL, ops.MULACC})
"""Operators of integers whose exact result may be outside of the type."""


def signed(op: Op, operands: tuple[Text, ...]) -> Text:
    """An operator as C writes it, by its sign alone."""
    if op is ops.NEG or op is ops.NOT:
        return prefix("-" if op is ops.NEG else "~", operands[0])
    if op is ops.MULACC:
        return Text(f"{infix(ops.MUL, *operands[:2]).text} + {operands[2].at(SUM + 1)}", SUM)
    return infix(op, *operands)


def on_bool(op: Op, operands: tuple[Text, ...]) -> Text:
    """An operator of truth values, which C computes as the integers 0 and 1."""
    if op is ops.NEG or op is ops.NOT:
        return prefix("!", operands[0])
    same = {ops.ADD: ops.OR, ops.MUL: ops.AND, ops.MAX: ops.OR, ops.MIN: ops.AND, ops.XOR: ops.NE}
    return infix(same.get(op, op), *operands)


def may_wrap(node: UOp) -> bool:
    """Whether the exact result may be outside of the integer type, or a negative number is shifted left."""
    dtype = node.dtype
    if not dtype.is_int or node.op not in WRAPPING:
        return False
    if node.op is ops.SHL and interval(node.src[0])[0] < 0:
        return True
    low, high = intervals.NUMBER[node.op](dtype, *[interval(s) for s in node.src])
    return not (dtype.lowest <= low and high <= dtype.highest)


def may_fault(node: UOp) -> bool:
    """Whether a division may have no quotient in its type, or a shift an amount outside of the type's bits."""
    if node.op is ops.SHL or node.op is ops.SHR:
        low, high = interval(node.src[1])
        return not (low >= 0 and high < node.dtype.bits)
    if node.op is not ops.TRUNCDIV and node.op is not ops.TRUNCMOD:
        return False
    least, (low, high) = interval(node.src[0])[0], interval(node.src[1])
    return low <= 0 <= high or (low <= -1 <= high and node.dtype.kind == "sint" and least <= node.dtype.lowest)
