"""Worlds to compare two graphs in: edge values first, values near the constants of the graphs, equal values, any values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from random import Random

from ..engine import ops
from ..engine.dtypes import DType, Scalar
from ..engine.uop import UOp, walk
from .values import anything, between, edges, near
from .world import Place, World

_MILD = (1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 0.0, 1.5, -0.5, 4.0, 7.0, -3.0)
"""Floats that are added and multiplied without rounding."""


def constants(*graphs: UOp) -> list[int]:
    """The whole numbers in the graphs, in the order in which they stand."""
    found: dict[int, None] = {}
    for node in walk(*graphs):
        if node.op is ops.CONST and isinstance(node.arg, int) and not isinstance(node.arg, bool):
            found[int(node.arg)] = None
    return list(found)


class Worlds:
    """Makes worlds, the first of the simplest values."""

    def __init__(self, seed: int, numbers: Sequence[int], *, mild: bool = False, total: int = 20) -> None:
        self.seed, self.numbers, self.mild, self.total = seed, numbers, mild, total

    def __iter__(self) -> Iterator[World]:
        return map(self.world, range(self.total))

    def world(self, number: int) -> World:
        random = Random(self.seed << 10 | number)
        world = World(lambda place, dtype, low, high: 0)
        world.draw = lambda place, dtype, low, high: self._draw(world, random, number, place, dtype, low, high)
        return world

    def _draw(
        self, world: World, random: Random, number: int, place: Place, dtype: DType, low: float, high: float
    ) -> Scalar:
        if dtype.kind in ("index", "sint", "uint"):
            if dtype.is_int:
                low, high = max(low, dtype.lowest), min(high, dtype.highest)
            return self._whole(world, random, number, dtype, low, high)
        if number == 0:
            return edges(dtype)[0]
        if dtype.is_float and self.mild and random.random() < 0.7:
            return dtype.canonical(random.choice(_MILD))
        kind = random.random()
        if kind < 0.15:
            twins = [v for v in world.seen.values() if isinstance(v, float if dtype.is_float else bool)]
            if twins:
                return dtype.canonical(random.choice(twins))
        if dtype.kind == "bool":
            return random.random() < 0.5
        return random.choice(edges(dtype)) if kind < 0.75 else anything(random, dtype)

    def _whole(self, world: World, random: Random, number: int, dtype: DType, low: float, high: float) -> Scalar:
        if number == 0:
            return _simplest(low, high)
        kind = random.random()
        options: Sequence[Scalar] = ()
        if kind < 0.4:
            options = [*(int(b) for b in (low, high) if math.isfinite(b)), *edges(dtype)]
        elif kind < 0.7:
            options = near(dtype, self.numbers)
        elif kind < 0.85:
            twins = [v for v in world.seen.values() if isinstance(v, int) and not isinstance(v, bool)]
            options = [t + random.choice((0, 0, 1, -1)) for t in twins] + [-t for t in twins]
        inside = [v for v in options if low <= v <= high]
        if inside:
            return dtype.canonical(random.choice(inside))
        return dtype.canonical(between(random, dtype, low, high))


def _simplest(low: float, high: float) -> int:
    if low <= 0 <= high:
        return 0
    return int(low) if low > 0 else int(high)
