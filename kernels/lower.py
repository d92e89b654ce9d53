"""From a kernel and its plan to the graph that the rules rewrite: every axis a range, every view index arithmetic.

Top-down from each store: a node is lowered for one index expression an axis. A reduce replaces the indices of its axes
by ranges of its own; they are numbered by axis and by how many reductions lie below, so that reductions that do not
depend on each other share loops, and one that does has other ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..engine import dtypes, ops
from ..engine.dtypes import DType
from ..engine.ops import AxisKind, BufferArg, ThreadKind
from ..engine.target import LARGEST_IMAGE, Target
from ..engine.uop import UOp, buffer, const, make, range_, special
from .kernel import Const, Elementwise, Kernel, Load, Reduce, Store
from .launch import group_dims
from .plan import Axis, Plan, accumulated, lanes, plan, shared_reduces
from .schedule import Option
from .sizes import Dim, Size, bounds, to_uop
from .view import address

GROUP_LIMITS = (2**31 - 1, 65535, 65535)
LOCAL_LIMITS = (1024, 1024, 64)

Indices = tuple[UOp, ...]
ZERO = const(dtypes.index, 0)


def lower(kernel: Kernel, schedule: Iterable[Option], target: Target) -> UOp:
    """The kernel's graph: a SINK of its stores. Raises KernelError for an illegal schedule."""
    return _Lowering(kernel, plan(kernel, schedule, target), target).sink()


class _Lowering:
    """One kernel being lowered."""

    def __init__(self, kernel: Kernel, planned: Plan, target: Target) -> None:
        self.kernel, self.plan, self.target = kernel, planned, target
        self.rank = len(planned.axes)
        self.levels = _reduce_levels(kernel)
        self.sizes = {argument.slot: _elements(argument.shape) for argument in kernel.arguments}
        self.written = {store.buffer for store in kernel.stores}
        self.lanes: dict[int, UOp] = {}
        self.shares = frozenset(shared_reduces(kernel, planned))
        self.share = self._share()
        self.threads = _Threads(planned)
        self.indices = self._store_indices()
        self.reduced = {n: self._reduce_ranges(n, r) for n, r in enumerate(kernel.nodes) if isinstance(r, Reduce)}
        self.combining: dict[tuple[int, ...], UOp] = {}
        self.done: dict[tuple[int, Indices], UOp] = {}
        self.memories = 0
        self.scratch: list[UOp] = []

    def sink(self) -> UOp:
        return make(ops.SINK, *(self._store(node) for node in self.kernel.nodes if isinstance(node, Store)))

    # --- axes --------------------------------------------------------------------------------------------------------

    def _share(self) -> UOp:
        """The number of the share: a CPU's thread, or a group in a dimension of its own."""
        amount = max((axis.share for axis in self.plan.axes), default=1)
        if amount == 1:
            return ZERO
        groups = self.target.has("threads")
        return special(ThreadKind.GROUP, 2, amount) if groups else special(ThreadKind.THREAD, 0, amount)

    def _store_indices(self) -> Indices:
        """The index of each axis where the stores stand: threads, groups or loops outside, lanes inside."""
        outer = self._outer(self.plan.axes)
        found = []
        for number, axis in enumerate(self.plan.axes):
            if not axis.is_stored:
                found.append(ZERO)
                continue
            index = outer[number]
            if axis.thread > 1:
                index = _join(special(ThreadKind.THREAD, 0, axis.thread), axis.stored, index)
            if axis.share > 1:
                index = _join(self.share, axis.stored, index)
            if axis.shared:
                index = _join(index, axis.group, self.threads.group[number])
            if axis.local > 1:
                index = _join(index, axis.local, self.threads.local[number])
            if axis.upcast > 1:
                self.lanes[number] = range_(self.rank + number, axis.upcast, AxisKind.UPCAST)
                index = _join(index, axis.upcast, self.lanes[number])
            found.append(index)
        return tuple(found)

    def _outer(self, axes: tuple[Axis, ...]) -> dict[int, UOp]:
        """Groups where the device has them, else loops; an axis that is reduced too is a loop, inside all others."""
        result = dict.fromkeys(self.plan.order, ZERO)
        wide = [number for number in self.plan.order if axes[number].stored_loop != 1]
        loops_only = {number for number in wide if axes[number].mixed or self._starves(number)}
        grouped = [number for number in wide if self.target.has("threads") and number not in loops_only]
        sizes = [axes[number].stored_loop for number in grouped]
        limits = GROUP_LIMITS if self.share is ZERO else GROUP_LIMITS[:2]
        groups = group_dims(ThreadKind.GROUP, sizes, limits, reverse=True)
        loops = {
            number: range_(place, to_uop(axes[number].stored_loop))
            for place, number in enumerate(self.plan.order)
            if number in wide and number not in grouped
        }
        return result | dict(zip(grouped, groups, strict=True)) | loops

    def _starves(self, number: int) -> bool:
        """Whether no group at all, where the axis is empty, would leave out a store that does not vary in it."""
        may_be_empty = bounds(self.plan.axes[number].size)[0] < 1
        return may_be_empty and any(store.views[-1].shape[number] == 1 for store in self.kernel.stores)

    @property
    def _spare(self) -> int:
        """The first number that no axis's own range has."""
        return 2 * self.rank * (2 + max(self.levels))

    def _reduce_ranges(self, number: int, node: Reduce) -> tuple[dict[int, UOp], list[UOp]]:
        """The index of each reduced axis, and the ranges that it is made of, unrolled ones first."""
        indices: dict[int, UOp] = {}
        unrolled, loops = [], []
        first = 2 * self.rank * (1 + self.levels[number])
        for axis in node.axes:
            planned = self.plan.axes[axis]
            index = ZERO
            if self.kernel.shapes[node.src][axis] != 1:
                if planned.reduced != 1:
                    index = range_(first + axis, to_uop(planned.reduced), AxisKind.REDUCE)
                    loops.append(index)
                if planned.share > 1:
                    index = _join(self.share, planned.reduced, index)
                if planned.group > 1:
                    thread = self.threads.group[axis]
                    outer = planned.group_outer
                    index = _join(thread, planned.reduced, index) if outer else _join(index, planned.group, thread)
                if planned.unroll > 1:
                    step = range_(first + self.rank + axis, planned.unroll, AxisKind.UNROLL)
                    unrolled.append(step)
                    index = _join(index, planned.unroll, step)
                if planned.partial > 1:
                    lane = range_(
                        self._spare + self.rank * self.levels[number] + axis, planned.partial, AxisKind.PARTIAL
                    )
                    unrolled.append(lane)
                    index = _join(index, planned.partial, lane)
            indices[axis] = index
        return indices, unrolled + loops

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _store(self, node: Store) -> UOp:
        shape = node.views[-1].shape
        position, valid = address(node.views, _inside(shape, self.indices))
        gate = _all(valid, *self._padding(shape, self.indices), *self._first_thread(shape))
        value = self._value(node.src, self.indices)
        if node.image:
            value = _cast(value, node.dtype)
        target = buffer(node.buffer, node.dtype, self.sizes[node.buffer])
        return self._widened(make(ops.STORE, target, position, value, *([] if gate is None else [gate])), shape)

    def _padding(self, shape: Iterable[object], indices: Indices) -> list[UOp]:
        """What must hold for an index to be inside of the padded axes."""
        return [
            make(ops.LT, index, to_uop(axis.size))
            for axis, size, index in zip(self.plan.axes, shape, indices, strict=True)
            if axis.padded and size != 1 and index is not ZERO
        ]

    def _first_thread(self, shape: Iterable[object]) -> list[UOp]:
        """Of the threads that share out reductions, those that do not share out this store too: the first stores."""
        return [
            make(ops.EQ, self.threads.group[number], ZERO)
            for number, (axis, size) in enumerate(zip(self.plan.axes, shape, strict=True))
            if axis.group > 1 and not (axis.shared and size != 1)
        ]

    def _value(self, root: int, indices: Indices) -> UOp:
        """A node for these indices, and before it, without recursion, what it needs."""
        stack = [(root, indices)]
        while stack:
            task = stack[-1]
            if task in self.done:
                stack.pop()
                continue
            needed = [need for need in self._needs(*task) if need not in self.done]
            if needed:
                stack += reversed(needed)
                continue
            self.done[task] = self._lowered(*task)
            stack.pop()
        return self.done[root, indices]

    def _needs(self, number: int, indices: Indices) -> list[tuple[int, Indices]]:
        node = self.kernel.nodes[number]
        if isinstance(node, Elementwise):
            return [(source, self._broadcast(source, indices)) for source in node.src]
        if isinstance(node, Reduce):
            return [(node.src, self._reduced_indices(number, indices))]
        return []

    def _broadcast(self, source: int, indices: Indices) -> Indices:
        """A source whose axis has size 1 is looked at in its only place."""
        return _inside(self.kernel.shapes[source], indices)

    def _reduced_indices(self, number: int, indices: Indices) -> Indices:
        inner, _ = self.reduced[number]
        return tuple(inner.get(axis, index) for axis, index in enumerate(indices))

    def _lowered(self, number: int, indices: Indices) -> UOp:
        node = self.kernel.nodes[number]
        match node:
            case Load():
                return self._load(node, indices)
            case Const():
                return _constant(node, indices)
            case Elementwise():
                sources = [self.done[source, self._broadcast(source, indices)] for source in node.src]
                return make(node.op, *sources, dtype=node.dtype)
            case Reduce():
                return self._reduce(number, node, indices)
            case Store():
                raise AssertionError("a store is no value")

    def _load(self, node: Load, indices: Indices) -> UOp:
        shape = node.views[-1].shape
        position, valid = address(node.views, _inside(shape, indices))
        gate = _all(valid, *self._padding(shape, indices))
        source = self._source(node)
        element = source.dtype.element
        assert element is not None
        gated = [] if gate is None else [gate, const(element, 0)]
        value = make(ops.LOAD, source, position, *gated)
        return _cast(value, dtypes.float32) if node.image else value

    def _source(self, node: Load) -> UOp:
        """The buffer: an image, whose texels read as float32, where the device has such and the kernel only reads it."""
        image = node.image
        if image and self.target.has("images") and max(image) <= LARGEST_IMAGE and node.buffer not in self.written:
            return buffer(node.buffer, dtypes.float32, self.sizes[node.buffer], image)
        return buffer(node.buffer, node.dtype, self.sizes[node.buffer])

    def _reduce(self, number: int, node: Reduce, indices: Indices) -> UOp:
        """The reduction of the values; those of places beyond a padded axis are the identity, which changes nothing."""
        inner = self._reduced_indices(number, indices)
        value = self.done[node.src, inner]
        dtype = value.dtype
        value = _cast(value, accumulated(node.op, dtype))
        shape = self.kernel.shapes[node.src]
        inside = _all(*self._padding([size if n in node.axes else 1 for n, size in enumerate(shape)], inner))
        if inside is not None:
            value = make(ops.WHERE, inside, value, const(value.dtype, ops.identity_of(node.op, value.dtype)))
        grouped = tuple(axis for axis in node.axes if self.plan.axes[axis].group > 1 and shape[axis] != 1)
        _, ranges = self.reduced[number]
        if grouped:
            return _cast(self._group_reduce(node, number, grouped, value), dtype)
        if ranges:
            value = make(ops.REDUCE, value, *ranges, arg=node.op)
        return _cast(self._combined(node, number, value, indices) if number in self.shares else value, dtype)

    def _combined(self, node: Reduce, number: int, own: UOp, indices: Indices) -> UOp:
        """The shares of a reduction brought together: each is stored in a place of its own, and behind a barrier read."""
        place, total = ZERO, 1
        shape = self.kernel.shapes[number]
        for axis, size, index in zip(self.plan.axes, shape, indices, strict=True):
            if size != 1:
                assert isinstance(axis.places, int)
                place, total = _join(place, axis.places, index), total * axis.places
        shares = max(axis.share for axis in self.plan.axes)
        slot = max(self.sizes, default=-1) + 1 + len(self.scratch)
        memory = make(ops.BUFFER, dtype=own.dtype.ptr("global"), arg=BufferArg(slot, shares * total, None, True))
        self.scratch.append(memory)
        store = self._widened(make(ops.STORE, memory, _join(self.share, total, place), own), shape)
        share = range_(self._spare + self.rank * (1 + max(self.levels)) + self.levels[number], shares, AxisKind.REDUCE)
        found = make(ops.LOAD, make(ops.AFTER, memory, make(ops.BARRIER, store)), _join(share, total, place))
        return make(ops.REDUCE, found, share, arg=node.op)

    def _widened(self, store: UOp, shape: tuple[Dim, ...]) -> UOp:
        """A store for every lane of the axes that it varies in."""
        for axis in self.plan.upcast_order:
            if axis in self.lanes and shape[axis] != 1:
                store = make(ops.WIDEN, store, self.lanes[axis])
        return store

    def _group_reduce(self, node: Reduce, number: int, grouped: tuple[int, ...], value: UOp) -> UOp:
        """A reduction whose shares the threads of a group put into memory of their own, one place for each thread."""
        size = self.plan.group_size * lanes(self.plan, self.kernel.shapes[number])
        memory = make(ops.LOCAL, dtype=value.dtype.ptr("local"), arg=BufferArg(self.memories, size))
        self.memories += 1
        if grouped not in self.combining:
            steps = math.prod(self.plan.axes[axis].group for axis in grouped)
            first = self._spare + self.rank * (1 + max(self.levels))
            self.combining[grouped] = range_(first + len(self.combining), steps, AxisKind.REDUCE)
        share = self.combining[grouped]
        _, ranges = self.reduced[number]
        places = self.threads.place(()), self.threads.place(grouped, share)
        return make(ops.GROUP_REDUCE, value, memory, *places, share, *ranges, arg=node.op)


class _Threads:
    """The threads of a group: those of LOCAL axes, and those that share out a reduction, by axis."""

    def __init__(self, planned: Plan) -> None:
        locals_ = [(axis.local, number, False) for number, axis in enumerate(planned.axes) if axis.local > 1]
        groups = [(axis.group, number, True) for number, axis in enumerate(planned.axes) if axis.group > 1]
        self.parts = locals_ + groups
        sizes = [size for size, _, _ in self.parts]
        self.indices = group_dims(ThreadKind.LOCAL, sizes, LOCAL_LIMITS, reverse=True)
        named = list(zip(self.parts, self.indices, strict=True))
        self.local = {number: index for (_, number, group), index in named if not group}
        self.group = {number: index for (_, number, group), index in named if group}

    def place(self, grouped: tuple[int, ...], share: UOp = ZERO) -> UOp:
        """This thread's number in its group; with its indices of the grouped axes replaced by those of a share."""
        shares = dict(zip(grouped, self._split(share, grouped), strict=True))
        flat = ZERO
        for (size, number, group), index in zip(self.parts, self.indices, strict=True):
            flat = _join(flat, size, shares.get(number, index) if group else index)
        return flat

    def _split(self, share: UOp, grouped: tuple[int, ...]) -> list[UOp]:
        """The indices of the grouped axes in the number of a share, row-major."""
        sizes = {number: size for size, number, group in self.parts if group}
        found: list[UOp] = []
        stride = 1
        for number in reversed(grouped):
            at = share if stride == 1 else make(ops.FLOORDIV, share, const(dtypes.index, stride))
            found.append(make(ops.FLOORMOD, at, const(dtypes.index, sizes[number])))
            stride *= sizes[number]
        return found[::-1]


def _constant(node: Const, indices: Indices) -> UOp:
    if isinstance(node.value, Size):
        value = make(ops.CAST, to_uop(node.value), dtype=node.dtype)
    else:
        value = const(node.dtype, node.value)
    _, gate = address(node.views, _inside(node.views[-1].shape, indices))
    return value if gate is None else make(ops.WHERE, gate, value, const(node.dtype, 0))


def _all(*clauses: UOp | None) -> UOp | None:
    """The conjunction of the clauses that there are; None if there is none."""
    gate: UOp | None = None
    for clause in clauses:
        if clause is not None:
            gate = clause if gate is None else make(ops.AND, gate, clause)
    return gate


def _inside(shape: Iterable[object], indices: Indices) -> Indices:
    return tuple(ZERO if size == 1 else index for size, index in zip(shape, indices, strict=True))


def _join(outer: UOp, size: object, inner: UOp) -> UOp:
    """outer * size + inner, where inner runs below size."""
    if size == 1:
        return outer
    assert isinstance(size, int)
    if outer is ZERO:
        return inner
    scaled = make(ops.MUL, outer, const(dtypes.index, size))
    return scaled if inner is ZERO else make(ops.ADD, scaled, inner)


def _cast(value: UOp, dtype: DType) -> UOp:
    return value if value.dtype is dtype else make(ops.CAST, value, dtype=dtype)


def _elements(shape: tuple[int | Size, ...] | None) -> int | None:
    total = 1
    for size in shape or ():
        if not isinstance(size, int):
            return None
        total *= size
    return None if shape is None else total


def _reduce_levels(kernel: Kernel) -> list[int]:
    """For each node how many reductions, one depending on the other, lie below it."""
    levels: list[int] = []
    for node in kernel.nodes:
        match node:
            case Elementwise():
                levels.append(max((levels[s] + isinstance(kernel.nodes[s], Reduce) for s in node.src), default=0))
            case Reduce() | Store():
                levels.append(levels[node.src] + isinstance(kernel.nodes[node.src], Reduce))
            case _:
                levels.append(0)
    return levels
