"""The loops of a graph: which stores and accumulators open them, and which stand around which.

A store opens the loops that it varies in, the one with the lowest axis outermost. An accumulator opens its own ranges
inside the loops that its result varies in. A loop brings along those around it, so what varies in one axis only may
still stand inside others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from . import facts, ops
from .errors import GraphError
from .ops import AxisKind, RangeArg
from .uop import UOp

Path = tuple[int, ...]
"""A place in the tree of loops: the axes of the loops around it, outermost first."""


class Nest:
    """The loops of the nodes of one graph, given operands first."""

    def __init__(self, nodes: Sequence[UOp]) -> None:
        self.loops: dict[int, UOp] = {}
        self.stores: list[UOp] = []
        self.phis: list[UOp] = []
        self.waiting: dict[UOp, int] = {}  # store -> loops that the barrier after it stands in
        self.reduced = 0  # the axes of reductions
        for node in nodes:
            if node.op is ops.RANGE:
                self.loops[axis_of(node)] = node
                self.reduced |= facts.axis_bit(node) if _is_reduced(node) else 0
            elif node.op is ops.STORE:
                self.stores.append(node)
            elif node.op is ops.PHI:
                self.phis.append(node)
            elif node.op is ops.BARRIER:
                for store in node.src:
                    self.waiting[store] = self.waiting.get(store, 0) | facts.ranges(node)
        self.around: dict[int, int] = {}  # axis -> mask of the loops around that loop; first those of stores
        for store in self.stores:
            self._surround(self.opened_by(store), 0)

    def surround_accumulators(self) -> None:
        """Adds the loops of accumulators to `around`, outer ones first."""
        for phi in reversed(self.phis):
            self._surround(self.opened_by(phi), self.closed(facts.ranges(phi)))

    def _surround(self, axes: Path, outer: int) -> None:
        for axis in axes:
            self.around.setdefault(axis, outer)
            outer |= 1 << axis

    def opened_by(self, node: UOp) -> Path:
        """The loops that a store or a phi opens, outermost first.

        A store that a reduction waits for in each of its steps stands in the loop of that reduction, which opens it.
        """
        if node.op is ops.PHI:
            return self._in_order((axis_of(loop) for loop in node.src[0].src[1:]), 0)
        first = self.waiting.get(node, 0)
        return self._in_order(bits(facts.ranges(node) & ~(first & self.reduced)), first)

    def _in_order(self, axes: Iterator[int], first: int) -> Path:
        """Those of `first` first, then as far as their ends allow, then by axis."""
        return tuple(sorted(axes, key=lambda axis: (not first >> axis & 1, self._dependence(axis), axis)))

    def _dependence(self, axis: int) -> int:
        return facts.ranges(self.loops[axis]).bit_count() if axis in self.loops else 0

    def closed(self, mask: int) -> int:
        """The mask with all loops that stand around its loops."""
        found, left = mask, mask
        while left:
            outer = 0
            for axis in bits(left):
                outer |= self.around.get(axis, 0)
            left = outer & ~found
            found |= left
        return found

    def path(self, mask: int) -> Path:
        """The place of what varies in a closed mask. Raises GraphError if its loops do not stand inside each other."""
        axes = sorted(bits(mask), key=lambda axis: (self.around.get(axis, 0).bit_count(), axis))
        for outer, inner in pairwise(axes):
            if not self.around.get(inner, 0) >> outer & 1 or self.around.get(outer, 0) >> inner & 1:
                raise GraphError(
                    f"ranges r{outer} and r{inner} are used together but cannot stand one inside the other; "
                    "give the reductions ranges of their own"
                )
        return tuple(axes)


def _is_reduced(node: UOp) -> bool:
    return isinstance(node.arg, RangeArg) and node.arg.kind is AxisKind.REDUCE


def bits(mask: int) -> Iterator[int]:
    """The axes of a mask, the lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def axis_of(node: UOp) -> int:
    """The number of a RANGE."""
    assert isinstance(node.arg, RangeArg)
    return node.arg.axis
