"""What a graph reads that is not in it: variables, loop counters, memory, the state of accumulators; and what is left open.

A `World` gives each of these a value when it is first asked for, and the same value ever after, so that both sides of a
rule read the same. Some results are not fixed by the semantics (the order in which floats are added up, which zero a
maximum of zeros is, whether a multiply-add rounds once or twice): an `Oracle` makes these choices one way after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..engine.dtypes import DType, Scalar, float_bits
from ..engine.uop import UOp

Value = Scalar | None
Lanes = tuple[Value, ...]
"""One value a lane, None where it is undefined; a scalar has one lane."""

Place = tuple[object, ...]
"""What is read: ("variable", arg, lane), ("axis", number), ("thread", arg), ("cell", memory, slot, element), …"""

Draw = Callable[[Place, DType, float, float], Scalar]
"""(place, type, bounds, both included) -> the value there."""


class TooLong(Exception):
    """A loop has too many steps to be evaluated, or its steps too many orders."""


@dataclass
class World:
    """Values by place: those in `given`, the others drawn when they are first read."""

    draw: Draw
    given: Mapping[Place, Scalar] = field(default_factory=dict)
    seen: dict[Place, Scalar] = field(default_factory=dict)
    work: int = 0  # nodes evaluated in it

    def read(self, place: Place, dtype: DType, low: float = -math.inf, high: float = math.inf) -> Scalar:
        found = self.seen.get(place)
        if found is None:
            found = self.given.get(place)
            if found is None or not dtype.is_float and not low <= found <= high:
                found = self.draw(place, dtype.scalar, low, high)
            self.seen[place] = found
        return found


@dataclass
class Oracle:
    """Decides what the semantics leaves open: the answers in `path`, beyond them the first alternative."""

    path: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    approximate: bool = False  # an operator is not exact
    unordered: bool = False  # the orders of a reduction were too many to list

    def choose(self, alternatives: Sequence[Scalar]) -> Scalar:
        if len(alternatives) == 1:
            return alternatives[0]
        step = len(self.sizes)
        self.sizes.append(len(alternatives))
        if step == len(self.path):
            self.path.append(0)
        return alternatives[self.path[step]]

    def advance(self) -> bool:
        """Goes on to the next way through the choices; False if there is none."""
        while self.path:
            size = self.sizes[len(self.path) - 1]
            if self.path[-1] + 1 < size:
                self.path[-1] += 1
                self.sizes.clear()
                return True
            self.path.pop()
        return False


def distinct(values: Sequence[Scalar]) -> list[Scalar]:
    """Each value once, told apart by its bits."""
    found: dict[object, Scalar] = {}
    for value in values:
        found.setdefault(float_bits(value) if isinstance(value, float) else value, value)
    return list(found.values())


# --- effects of stores ------------------------------------------------------------------------------------------------

Cell = tuple[str, object, int]
"""An element of a memory: "buffer" or "local", its number, the index."""

Effect = dict[Cell, Value] | None
"""What is written where; None where that is undefined: out of bounds, or two values for one element."""


def merged(effects: Iterator[Effect]) -> Effect:
    """Stores in no order: two different values for one element are undefined."""
    total: dict[Cell, Value] = {}
    for effect in effects:
        if effect is None:
            return None
        for cell, value in effect.items():
            if cell in total and not same(total[cell], value):
                return None
            total[cell] = value
    return total


def same(a: Value, b: Value) -> bool:
    """Whether two values are the same bits; every NaN is one."""
    if isinstance(a, float) and isinstance(b, float):
        return float_bits(a) == float_bits(b)
    return a == b and (a is None) == (b is None)


# --- frames -----------------------------------------------------------------------------------------------------------


@dataclass
class Frame:
    """What is known at one step of the loops that are open: the counters, the accumulators, the values of nodes."""

    axes: dict[int, int]
    states: dict[object, Lanes]
    bound: int = 0  # the bits of the axes that this frame binds
    parent: Frame | None = None
    known: dict[UOp, Lanes] = field(default_factory=dict)
    effects: dict[UOp, Effect] = field(default_factory=dict)

    def inside(self, axes: Mapping[int, int], states: Mapping[object, Lanes] | None = None) -> Frame:
        """A step of further loops."""
        bits = 0
        for axis in axes:
            bits |= 1 << axis
        return Frame({**self.axes, **axes}, {**self.states, **(states or {})}, bits, self)
