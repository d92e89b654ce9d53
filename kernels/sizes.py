"""Symbolic sizes: an int, or an expression over named variables with bounds.

A size is a plain `int` wherever it is concrete. Otherwise it is a `Size`: the JSON form of `["var", name, min, max]`,
`["add", a, b]`, `["mul", a, b]`, `["floordiv", a, b]`, `["floormod", a, b]`, with the same operators in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ..engine import dtypes, ops
from ..engine.errors import KernelError
from ..engine.uop import UOp, const, make, variable

SizeOp = Literal["var", "add", "mul", "floordiv", "floormod"]


@dataclass(frozen=True, slots=True)
class Size:
    """A symbolic integer. `args` are (name, low, high) of a variable, bounds included, or two operands."""

    op: SizeOp
    args: tuple[str | int | Size, ...]

    def __add__(self, other: Dim) -> Dim:
        return combine("add", self, other)

    def __radd__(self, other: int) -> Dim:
        return combine("add", self, other)

    def __mul__(self, other: Dim) -> Dim:
        return combine("mul", self, other)

    def __rmul__(self, other: int) -> Dim:
        return combine("mul", self, other)

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: int) -> Dim:
        return self * -1 + other

    def __neg__(self) -> Dim:
        return self * -1

    def __floordiv__(self, other: Dim) -> Dim:
        return combine("floordiv", self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return combine("floordiv", other, self)

    def __mod__(self, other: Dim) -> Dim:
        return combine("floormod", self, other)

    def __rmod__(self, other: int) -> Dim:
        return combine("floormod", other, self)

    def __str__(self) -> str:
        if self.op == "var":
            return str(self.args[0])
        symbol = {"add": "+", "mul": "*", "floordiv": "//", "floormod": "%"}[self.op]
        return f"({self.args[0]}{symbol}{self.args[1]})"


Dim = int | Size
"""A size, stride, offset or bound."""

_OPS = {"add": ops.ADD, "mul": ops.MUL, "floordiv": ops.FLOORDIV, "floormod": ops.FLOORMOD}


def var(name: str, low: int, high: int) -> Size:
    """A symbolic size, both bounds included. Raises KernelError if it has no proper name or the bounds are empty."""
    if not isinstance(name, str) or not name.isidentifier():
        raise KernelError(f"{name!r} cannot name a variable; use letters, digits and _")
    if low > high:
        raise KernelError(f"variable {name}: the lower bound {low} is above the upper bound {high}")
    return Size("var", (name, low, high))


def _fold(op: SizeOp, a: int, b: int) -> int:
    match op:
        case "add":
            return a + b
        case "mul":
            return a * b
        case "floordiv":
            return a // b
        case _:
            return a % b


def combine(op: SizeOp, a: Dim, b: Dim) -> Dim:
    """One operator on two sizes, computed where both are numbers."""
    if op in ("floordiv", "floormod") and b == 0:
        raise KernelError(f"division of the size {a} by zero")
    if isinstance(a, int) and isinstance(b, int):
        return _fold(op, a, b)
    if isinstance(b, int):
        if (op == "add" and b == 0) or (op in ("mul", "floordiv") and b == 1):
            return a
        if op == "mul" and b == 0:
            return 0
    return Size(op, (a, b))


def bounds(size: Dim) -> tuple[int, int]:
    """The least and the greatest value that a size can have."""
    if isinstance(size, int):
        return size, size
    if size.op == "var":
        low, high = size.args[1:]
        assert isinstance(low, int) and isinstance(high, int)
        return low, high
    from ..engine.facts import interval

    low_bound, high_bound = interval(to_uop(size))
    return int(low_bound), int(high_bound)


def evaluate(size: Dim, values: Mapping[str, int]) -> int:
    """The value with the variables bound. Raises KernelError for a variable that is missing or out of its bounds."""
    if isinstance(size, int):
        return size
    if size.op == "var":
        name, low, high = size.args
        assert isinstance(name, str) and isinstance(low, int) and isinstance(high, int)
        if name not in values:
            raise KernelError(f"variable {name} has no value; bind it within {low}..{high}")
        if not low <= values[name] <= high:
            raise KernelError(f"variable {name} = {values[name]} is outside its bounds {low}..{high}")
        return values[name]
    a, b = size.args
    assert not isinstance(a, str) and not isinstance(b, str)
    left, right = evaluate(a, values), evaluate(b, values)
    if size.op in ("floordiv", "floormod") and right == 0:
        raise KernelError(f"division by zero in the size {size}: {b} is 0")
    return _fold(size.op, left, right)


def to_uop(size: Dim) -> UOp:
    """The size as a node of type index."""
    if isinstance(size, int):
        return const(dtypes.index, size)
    if size.op == "var":
        name, low, high = size.args
        assert isinstance(name, str) and isinstance(low, int) and isinstance(high, int)
        return variable(name, low, high)
    a, b = size.args
    assert not isinstance(a, str) and not isinstance(b, str)
    return make(_OPS[size.op], to_uop(a), to_uop(b))


def variables(size: Dim) -> Iterator[Size]:
    """The variables in a size."""
    if isinstance(size, Size):
        if size.op == "var":
            yield size
        else:
            for arg in size.args:
                assert not isinstance(arg, str)
                yield from variables(arg)


def product(sizes: tuple[Dim, ...]) -> Dim:
    total: Dim = 1
    for size in sizes:
        total = total * size
    return total
