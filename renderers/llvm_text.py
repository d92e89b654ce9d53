"""The parts of LLVM's textual form: type names, literals, and a builder of one function's instructions.

Types are those of values in registers: bool is `i1` there and `i8` in memory; bfloat16, which LLVM supports unevenly,
is the integer `i16` that holds its bits.
"""

from __future__ import annotations

import re
import struct

from ..engine.dtypes import DType, Scalar, float_bits
from ..engine.errors import RenderError

_FLOATS = {"float16": "half", "bfloat16": "i16", "float32": "float", "float64": "double"}


def scalar_type(dtype: DType) -> str:
    """One lane of `dtype` in a register."""
    if dtype.kind == "bool":
        return "i1"
    if dtype.is_int:
        return f"i{dtype.bits}"
    if dtype.is_float:
        return _FLOATS[dtype.scalar.name]
    raise RenderError(f"llvm: a value of type {dtype} has no form in LLVM IR; lower the kernel for this target first")


def register_type(dtype: DType) -> str:
    """`dtype` in a register, `<4 x float>` for float32x4."""
    return widened(scalar_type(dtype), dtype.lanes)


def memory_type(dtype: DType) -> str:
    """`dtype` as it lies in memory."""
    return widened("i8" if dtype.kind == "bool" else scalar_type(dtype), dtype.lanes)


def widened(scalar: str, lanes: int) -> str:
    """The vector of `lanes` of a scalar type; the scalar type itself for one."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def literal(dtype: DType, value: Scalar) -> str:
    """A constant, in every lane of `dtype`."""
    return splat(scalar_type(dtype), _scalar_literal(dtype, value), dtype.lanes)


def splat(scalar: str, text: str, lanes: int) -> str:
    """The scalar constant `text` of type `scalar` in each of `lanes` lanes."""
    if lanes == 1:
        return text
    return "<" + ", ".join([f"{scalar} {text}"] * lanes) + ">"


def _scalar_literal(dtype: DType, value: Scalar) -> str:
    if dtype.kind == "bool":
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    if dtype.scalar.name == "bfloat16":
        return str(int.from_bytes(struct.pack(">f", value)[:2], "big"))
    if dtype.scalar.name == "float16":
        return "0xH" + struct.pack(">e", value).hex().upper()
    return float_literal(float(value))


def float_literal(value: float) -> str:
    """A float or double constant: LLVM writes both with the bits of the double."""
    return f"0x{float_bits(value) & 0xFFFFFFFFFFFFFFFF:016X}"


def overload(scalar: str, lanes: int) -> str:
    """The suffix by which an intrinsic names its type: `f32`, `v8f32`, `i32`."""
    base = {"half": "f16", "float": "f32", "double": "f64"}.get(scalar, scalar)
    return base if lanes == 1 else f"v{lanes}{base}"


def symbol(name: str) -> str:
    """A name after `@` or `%`, quoted where LLVM would not read it as one."""
    if re.fullmatch(r"[A-Za-z_.][A-Za-z0-9_.]*", name):
        return name
    return '"' + "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else _escaped(c) for c in name) + '"'


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


class Builder:
    """The instructions of one function as they are written, and what the function needs around it.

    `block` is the label of the basic block that is being filled: a phi in a later block names it.
    """

    def __init__(self) -> None:
        self.block = "entry"
        self.stack: list[str] = []  # the accumulators' memory, which must be allotted in the entry block
        self.declarations: set[str] = set()
        self.definitions: dict[str, str] = {}  # helper functions by name
        self._lines: list[str] = []
        self._count = 0

    def emit(self, instruction: str) -> str:
        """Appends an instruction that gives a value; returns the value's name."""
        name = f"%v{self._count}"
        self._count += 1
        self.run(f"{name} = {instruction}")
        return name

    def run(self, instruction: str) -> None:
        """Appends an instruction that gives no value, or whose value is named by the caller."""
        self._lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        """Begins a basic block. The block before it has been ended by a branch."""
        self._lines.append(f"{name}:")
        self.block = name

    def unique(self, stem: str) -> str:
        """A label that no other block has."""
        self._count += 1
        return f"{stem}{self._count - 1}"

    def allocate(self, name: str, kind: str) -> None:
        """Memory on the stack for one value of type `kind`; `name` is its address."""
        self.stack.append(f"  {name} = alloca {kind}")

    def call(self, function: str, result: str, *operands: tuple[str, str], flags: str = "") -> str:
        """Calls an external function or an intrinsic, and declares it. Operands are (type, value)."""
        types = ", ".join(kind for kind, _ in operands)
        self.declarations.add(f"declare {result} @{function}({types})")
        return self.call_defined(function, result, *operands, flags=flags)

    def call_defined(self, function: str, result: str, *operands: tuple[str, str], flags: str = "") -> str:
        """Calls a function of this module."""
        listed = ", ".join(f"{kind} {value}" for kind, value in operands)
        return self.emit(f"call {flags}{result} @{function}({listed})")

    def body(self) -> str:
        """The function's text between its braces."""
        return "\n".join(["entry:", *self.stack, *self._lines])
