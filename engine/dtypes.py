"""Element types: scalars, vectors of them, pointers to memory.

Types are interned, so `is` compares them. `float32.vec(4)` is the vector `float32x4`,
`float32.ptr("global")` a pointer. A pointer is never equal to its element type.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Literal, final

Kind = Literal["void", "bool", "sint", "uint", "float", "index", "pointer"]
Space = Literal["global", "local"]
Scalar = bool | int | float


@final
class DType:
    """One type. `bits` counts one lane; `lanes` is 1 for a scalar; `element` is what a pointer points to."""

    __slots__ = ("bits", "element", "kind", "lanes", "name", "scalar", "space")

    name: str
    kind: Kind
    bits: int
    lanes: int
    scalar: DType
    element: DType | None
    space: Space | None

    def __init__(self, name: str, kind: Kind, bits: int) -> None:
        self.name, self.kind, self.bits = name, kind, bits
        self.lanes, self.scalar, self.element, self.space = 1, self, None, None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], DType], tuple[str]]:
        return by_name, (self.name,)

    def vec(self, lanes: int) -> DType:
        """The vector of `lanes` of this type's scalar; the scalar itself for one lane."""
        return self.scalar if lanes == 1 else _vector(self.scalar, lanes)

    def ptr(self, space: Space) -> DType:
        """A pointer to elements of this type in `space`."""
        return _pointer(self, space)

    @property
    def is_int(self) -> bool:
        """Whether values wrap modulo 2^bits (bool and index do not)."""
        return self.kind in ("sint", "uint")

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def lowest(self) -> int | float:
        """The least value: the start of a maximum (an index has none: minus infinity)."""
        if self.kind == "sint":
            return -(1 << (self.bits - 1))
        return 0 if self.kind in ("uint", "bool") else -math.inf

    @property
    def highest(self) -> int | float:
        """The greatest value: the start of a minimum."""
        if self.kind == "sint":
            return (1 << (self.bits - 1)) - 1
        if self.kind == "uint":
            return (1 << self.bits) - 1
        return 1 if self.kind == "bool" else math.inf

    def canonical(self, value: Scalar) -> Scalar:
        """`value` as a constant of this type: wrapped, rounded to nearest even, or made bool.

        Raises ValueError for a float that an integer type cannot hold (NaN, infinities).
        """
        if self.kind == "float":
            return round_float(value, self.scalar) if isinstance(value, float) else round_int(value, self.scalar)
        if self.kind == "bool":
            return bool(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value} is not a value of {self}")
        value = int(value)
        if self.kind == "sint":
            half = 1 << (self.bits - 1)
            return ((value + half) & ((1 << self.bits) - 1)) - half
        return value & ((1 << self.bits) - 1) if self.kind == "uint" else value


_registry: dict[str, DType] = {}


def _scalar(name: str, kind: Kind, bits: int) -> DType:
    return _registry.setdefault(name, DType(name, kind, bits))


def _vector(scalar: DType, lanes: int) -> DType:
    name = f"{scalar.name}x{lanes}"
    found = _registry.get(name)
    if found is None:
        if scalar.kind in ("void", "pointer") or lanes < 1:
            raise ValueError(f"there is no vector of {lanes} x {scalar}")
        made = DType(name, scalar.kind, scalar.bits)
        made.lanes, made.scalar = lanes, scalar
        found = _registry.setdefault(name, made)
    return found


def _pointer(element: DType, space: Space) -> DType:
    name = f"{space} {element.name}*"
    found = _registry.get(name)
    if found is None:
        made = DType(name, "pointer", 64)
        made.element, made.space = element, space
        found = _registry.setdefault(name, made)
    return found


void = _scalar("void", "void", 0)
bool_ = _scalar("bool", "bool", 8)
int8 = _scalar("int8", "sint", 8)
int16 = _scalar("int16", "sint", 16)
int32 = _scalar("int32", "sint", 32)
int64 = _scalar("int64", "sint", 64)
uint8 = _scalar("uint8", "uint", 8)
uint16 = _scalar("uint16", "uint", 16)
uint32 = _scalar("uint32", "uint", 32)
uint64 = _scalar("uint64", "uint", 64)
float16 = _scalar("float16", "float", 16)
bfloat16 = _scalar("bfloat16", "float", 16)
float32 = _scalar("float32", "float", 32)
float64 = _scalar("float64", "float", 64)
index = _scalar("index", "index", 0)

DATA_TYPES: tuple[DType, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
)  # fmt: skip
"""The types that a buffer can hold, narrowest first within a kind."""


def by_name(name: str) -> DType:
    """The type with this name, `float32x4` and `global float32*` included. Raises KeyError if there is none."""
    if found := _registry.get(name):
        return found
    if name.endswith("*"):
        space, _, element = name[:-1].partition(" ")
        if space in ("global", "local"):
            return by_name(element).ptr("global" if space == "global" else "local")
    scalar, _, lanes = name.rpartition("x")
    base = _registry.get(scalar)
    is_width = lanes.isdecimal() and lanes[0] != "0" and lanes != "1"
    if base is not None and base.lanes == 1 and base.kind not in ("void", "pointer") and is_width:
        return base.vec(int(lanes))
    raise KeyError(name)


def round_float(value: float, dtype: DType) -> float:
    """`value` rounded to the nearest value of a float type, ties to even; overflow gives an infinity."""
    if dtype is float64 or not math.isfinite(value):
        return value
    if dtype is bfloat16:
        return _round_bfloat16(value)
    code = "f" if dtype is float32 else "e"
    try:
        rounded: float = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def round_int(value: int, dtype: DType) -> float:
    """`value` rounded once to the nearest value of a float type, ties to even; overflow gives an infinity.

    On the way to a type narrower than a double it is cut to 50 bits and a sticky bit, which a double holds exactly:
    rounding to a double first could make a tie of what is none.
    """
    magnitude = abs(value)
    extra = magnitude.bit_length() - 50
    if extra > 0 and dtype is not float64:
        sticky = bool(magnitude & ((1 << extra) - 1))
        magnitude = ((magnitude >> extra) | sticky) << extra
    try:
        rounded = round_float(float(magnitude), dtype)
    except OverflowError:
        rounded = math.inf
    return -rounded if value < 0 else rounded


def _round_bfloat16(value: float) -> float:
    """Rounds once, from float64: 8 significant bits, least exponent of a subnormal -133."""
    if value == 0.0:
        return value
    ulp = math.ldexp(1.0, max(math.frexp(value)[1] - 8, -133))
    rounded = round(value / ulp) * ulp  # Python's round is half to even; the scale is a power of two: exact
    return math.copysign(math.inf if abs(rounded) >= 2.0**128 else rounded, value)


def float_bits(value: float) -> int:
    """The IEEE double pattern: the key that tells 0.0 from -0.0. Every NaN is one."""
    if value != value:
        return 0x7FF8000000000000
    pattern: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return pattern
