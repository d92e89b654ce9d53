"""The default schedule: which options a kernel gets when nobody says any.

CPUs, OpenCL's among them, work in wide vectors: lanes along an axis that memory is contiguous in, a register block of
accumulators over the axes that use the loaded values again, and the outermost axis shared out over the cores. Devices
with groups of threads get short vectors and groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from ..engine import ops
from ..engine.target import Target
from .kernel import Elementwise, Kernel, Load, Reduce
from .plan import is_legal
from .schedule import Option, OptionKind, Schedule, reduced_and_mixed
from .sizes import Dim

SMALL = 1 << 15
"""Below this number of steps a kernel is not shared out over threads: starting them would cost more."""

LATENCY = 8
"""How many sums must be under way at once to keep the adders busy: two units, four steps each."""

STREAMS = 4
"""How many are enough where each number added is loaded too."""

BUSY = 2
"""How many vectors are enough where each needs many operations, as functions do."""

FUNCTIONS = frozenset({ops.EXP2, ops.LOG2, ops.SIN})

WIDEST = 16
"""The most lanes that one option asks for."""


def default_schedule(kernel: Kernel, target: Target, threads: int) -> Schedule:
    """A good schedule without measuring any."""
    draft = _Draft(kernel, target)
    if target.has("threads") and not target.has("cpu"):
        _in_groups(draft)
    else:
        _on_cpu(draft)
        if threads > 1 and draft.steps >= SMALL:
            draft.share_out(threads)
        if target.has("threads"):
            draft.options.append(Option(OptionKind.NOLOCALS))
    return tuple(draft.options)


@dataclass
class _Draft:
    """A schedule in the making: the options so far, and the steps that they leave of each axis in either role."""

    kernel: Kernel
    target: Target
    options: list[Option] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reduced, self.mixed = reduced_and_mixed(self.kernel)
        self.loads = [node for node in self.kernel.nodes if isinstance(node, Load)]
        numbers = [(axis, size) for axis, size in enumerate(self.kernel.axis_sizes) if isinstance(size, int)]
        self.stored = {axis: size for axis, size in numbers if axis not in self.reduced and size > 1}
        self.summed = {axis: size for axis, size in numbers if axis in self.reduced | self.mixed and size > 1}
        self.order = [axis for axis in self.stored if axis not in self.mixed]

    @property
    def steps(self) -> int:
        return math.prod(size for size in self.kernel.axis_sizes if isinstance(size, int))

    @property
    def reduces(self) -> bool:
        return any(isinstance(node, Reduce) for node in self.kernel.nodes)

    @property
    def calls(self) -> bool:
        return any(isinstance(node, Elementwise) and node.op in FUNCTIONS for node in self.kernel.nodes)

    def strides(self, axis: int) -> list[Dim]:
        """How far apart in memory the neighbours along an axis are, for each load that varies along it."""
        found = [(node.views[-1].strides[axis], node.views[-1].shape[axis], len(node.views)) for node in self.loads]
        return [stride if views == 1 else 0 for stride, size, views in found if size != 1 and stride != 0]

    def contiguous(self, axis: int) -> bool:
        """Whether all loads that vary along the axis, and there is one, read neighbours there."""
        strides = self.strides(axis)
        return bool(strides) and all(stride == 1 for stride in strides)

    def vector_axis(self) -> int | None:
        """The last axis along which every store is contiguous."""
        for axis in reversed(self.stored):
            if {store.views[-1].strides[axis] for store in self.kernel.stores} == {1}:
                return axis
        return None

    def summed_axis(self) -> int | None:
        """The last reduced axis along which every load is contiguous."""
        return next((axis for axis in reversed(self.summed) if self.contiguous(axis)), None)

    def take(self, kind: OptionKind, axis: int, amount: int) -> None:
        """Adds the option, in several steps where one may not ask for so much.

        The amount must divide what is left.
        """
        left = self.summed if kind in (OptionKind.PARTIAL, OptionKind.UNROLL) else self.stored
        left[axis] //= amount
        while kind is OptionKind.UPCAST and amount > WIDEST:
            part = dividing(amount, range(WIDEST, 1, -1))
            self.options.append(Option(kind, axis, part))
            amount //= part
        if amount > 1:
            self.options.append(Option(kind, axis, amount))

    def share_out(self, threads: int) -> None:
        """The outermost axis that so many threads can share, or as many as divide it; a reduced one if need be.

        Where the device shares out groups, there may be enough of them.
        """
        groups = self.target.has("threads")
        for axis in () if groups else self.order:
            amount = dividing(self.stored[axis], range(threads, 1, -1))
            if amount > 1:
                self.take(OptionKind.THREAD, axis, amount)
                return
        if groups and math.prod(self.stored[axis] for axis in self.order) >= threads:
            return
        for axis in self.summed:
            amount = dividing(self.summed[axis], range(threads, 1, -1))
            share = Option(OptionKind.SHARE, axis, amount)
            if amount > 1 and is_legal(self.kernel, [*self.options, share], self.target):
                self.options.append(share)
                return


# --- CPUs ------------------------------------------------------------------------------------------------------------


def _on_cpu(draft: _Draft) -> None:
    if not draft.target.widths:
        return
    vector, summed = draft.vector_axis(), draft.summed_axis()
    lanes = draft.target.lanes
    if not draft.reduces:
        if vector is not None:
            _move(draft, vector, lanes)
    elif vector is not None and (vector in draft.mixed or summed is None or draft.contiguous(vector)):
        if vector in draft.mixed:
            wide = lanes if draft.calls else 2 * lanes
            draft.take(OptionKind.UPCAST, vector, dividing(draft.stored[vector], powers(wide)))
            if draft.contiguous(vector):
                _accumulate(draft, vector)
        else:
            _tile(draft, vector, OptionKind.UPCAST, dividing(draft.stored[vector], powers(lanes)))
    elif summed is not None:
        _tile(draft, summed, OptionKind.PARTIAL, dividing(draft.summed[summed], powers(lanes)))


def _move(draft: _Draft, vector: int, lanes: int) -> None:
    """Elementwise: vectors along the stores; where loads are contiguous along another axis, a square of both."""
    across = [axis for axis in draft.stored if axis != vector and 1 in draft.strides(axis)]
    strided = any(stride != 1 for stride in draft.strides(vector))
    amount = dividing(draft.stored[vector], powers(lanes if strided else 2 * lanes))
    if strided and across:
        other = across[-1]
        draft.take(OptionKind.UPCAST, other, dividing(draft.stored[other], powers(lanes)))
    draft.take(OptionKind.UPCAST, vector, amount)


def _accumulate(draft: _Draft, axis: int) -> None:
    """A reduction along contiguous memory: enough vectors of partial results to keep the adders busy."""
    vectors = BUSY if draft.calls else STREAMS
    amount = dividing(draft.summed[axis], powers(vectors * draft.target.lanes))
    draft.take(OptionKind.PARTIAL, axis, amount)


def _tile(draft: _Draft, axis: int, kind: OptionKind, lanes: int) -> None:
    """A register block: so many vectors along the axis of the lanes, and rows along others that use loads again."""
    if lanes == 1:
        return
    left = draft.stored if kind is OptionKind.UPCAST else draft.summed
    rows = [other for other in draft.order if other != axis and _used_again(draft, other)]
    width, sizes = _best_block(draft, axis, left[axis] // lanes, rows, lanes)
    for row, amount in sizes.items():
        draft.take(OptionKind.UPCAST, row, amount)
    vectors = width * math.prod(sizes.values())
    if kind is OptionKind.PARTIAL and vectors < STREAMS:
        width *= dividing(left[axis] // (lanes * width), powers(STREAMS // vectors))
    draft.options = [option for option in draft.options if option.amount > 1]
    before = draft.options
    draft.options = []
    draft.take(kind, axis, lanes * width)
    draft.options += before  # the lanes vary fastest
    if kind is OptionKind.UPCAST:
        _keep_panel(draft, axis, [row for row, amount in sizes.items() if amount > 1])


def _used_again(draft: _Draft, axis: int) -> bool:
    """Whether some load is the same all along the axis, so that a block of rows reads it once."""
    return len(draft.strides(axis)) < len(draft.loads)


def _best_block(draft: _Draft, axis: int, steps: int, rows: list[int], lanes: int) -> tuple[int, dict[int, int]]:
    """The block with the fewest loads for each multiply-add that fits into registers: accumulators, vectors, a broadcast.

    Of equal ones that with more rows along the outer axis, which read the same vectors again.
    """
    room = max(LATENCY, draft.target.registers * 3 // 4)
    rows = rows[-2:]
    choices = [[n for n in (1, 2, 3, 4, 5, 6, 8) if draft.stored[row] % n == 0] for row in rows]
    best: tuple[float, int, int, tuple[int, ...]] = (math.inf, 0, 1, ())
    for width, *amounts in product([n for n in (1, 2, 4) if steps % n == 0], *choices):
        vectors = width * math.prod(amounts)
        if vectors <= room and (vectors == width or vectors + width + 1 < draft.target.registers):
            sizes = {axis: width, **dict(zip(rows, amounts, strict=True))}
            best = min(best, (_loads(draft, sizes) / vectors, -vectors, width, tuple(-n for n in amounts)))
    _, _, width, negated = best
    return width, {row: -n for row, n in zip(rows, negated, strict=True)}


def _loads(draft: _Draft, sizes: dict[int, int]) -> int:
    """How many loads a step of the block needs."""
    total = 0
    for node in draft.loads:
        view = node.views[-1]
        total += math.prod(n for axis, n in sizes.items() if view.shape[axis] != 1 and view.strides[axis] != 0)
    return total


def _keep_panel(draft: _Draft, vector: int, rows: list[int]) -> None:
    """What is loaded along the lanes but is the same for the rows stays in the cache if the rows are the inner loop."""
    for row in rows:
        if draft.order.index(vector) != draft.order.index(row) + 1:
            continue
        if any(_varies(node, vector) and not _varies(node, row) for node in draft.loads):
            draft.options.append(Option(OptionKind.SWAP, row, vector))
            draft.order = [{row: vector, vector: row}.get(axis, axis) for axis in draft.order]
            return


def _varies(node: Load, axis: int) -> bool:
    return node.views[-1].shape[axis] != 1 and node.views[-1].strides[axis] != 0


# --- groups of threads -----------------------------------------------------------------------------------------------


def _in_groups(draft: _Draft) -> None:
    """Vectors of four, and groups of 64 threads along the last axes."""
    vector = draft.vector_axis()
    if draft.target.widths:
        if vector is not None:
            draft.take(OptionKind.UPCAST, vector, dividing(draft.stored[vector], (4, 2)))
        elif draft.summed:
            last = max(draft.summed)
            draft.take(OptionKind.UNROLL, last, dividing(draft.summed[last], (8, 4, 2)))
    left = 64
    for axis in reversed(draft.order):
        amount = dividing(draft.stored[axis], powers(left))
        draft.take(OptionKind.LOCAL, axis, amount)
        left //= amount


def dividing(size: int, amounts: Iterable[int]) -> int:
    """The first amount that divides the size, or 1."""
    return next((n for n in amounts if n > 1 and size % n == 0), 1)


def powers(most: int) -> list[int]:
    """The powers of two up to `most`, the largest first."""
    return [1 << bit for bit in reversed(range(most.bit_length())) if 1 << bit <= most]
