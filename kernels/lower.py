"""From a kernel and its plan to the graph that the rules rewrite: every axis a range, every view index arithmetic.

Top-down from each store: a node is lowered for one index expression an axis. A reduce replaces the indices of its axes
by ranges of its own; they are numbered by axis and by how many reductions lie below, so that reductions that do not
depend on each other share loops, and one that does has other ranges.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..engine import dtypes, ops
from ..engine.dtypes import DType
from ..engine.ops import AxisKind, ThreadKind
from ..engine.target import Target
from ..engine.uop import UOp, buffer, const, make, range_, special
from .kernel import Const, Elementwise, Kernel, Load, Reduce, Store
from .launch import group_dims
from .schedule import Axis, Option, Plan, plan
from .sizes import Size, to_uop
from .view import address

GROUP_LIMITS = (2**31 - 1, 65535, 65535)
LOCAL_LIMITS = (1024, 1024, 64)

Indices = tuple[UOp, ...]
ZERO = const(dtypes.index, 0)
WIDER = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}
"""What a sum accumulates in, where that is not the type itself; it is rounded once, at the end."""


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
        self.lanes: dict[int, UOp] = {}
        self.indices = self._store_indices()
        self.reduced = {n: self._reduce_ranges(n, r) for n, r in enumerate(kernel.nodes) if isinstance(r, Reduce)}
        self.done: dict[tuple[int, Indices], UOp] = {}

    def sink(self) -> UOp:
        return make(ops.SINK, *(self._store(node) for node in self.kernel.nodes if isinstance(node, Store)))

    # --- axes --------------------------------------------------------------------------------------------------------

    def _store_indices(self) -> Indices:
        """The index of each axis where the stores stand: threads, groups or loops outside, lanes inside."""
        axes = self.plan.axes
        outer = self._outer(axes)
        local = self._local(axes)
        found = []
        for number, axis in enumerate(axes):
            if axis.reduce:
                found.append(ZERO)
                continue
            index = outer[number]
            if axis.thread > 1:
                index = _join(special(ThreadKind.THREAD, 0, axis.thread), axis.size, index)
            index = _join(index, axis.local, local[number])
            if axis.upcast > 1:
                self.lanes[number] = range_(self.rank + number, axis.upcast, AxisKind.UPCAST)
                index = _join(index, axis.upcast, self.lanes[number])
            found.append(index)
        return tuple(found)

    def _outer(self, axes: tuple[Axis, ...]) -> dict[int, UOp]:
        free = [number for number, axis in enumerate(axes) if not axis.reduce]
        result = dict.fromkeys(free, ZERO)
        wide = [number for number in free if axes[number].size != 1]
        grouped = [number for number in wide if self.target.has("threads") and not axes[number].mixed]
        groups = group_dims(ThreadKind.GROUP, [axes[number].size for number in grouped], GROUP_LIMITS, reverse=True)
        loops = {number: range_(number, to_uop(axes[number].size)) for number in wide if number not in grouped}
        return result | dict(zip(grouped, groups, strict=True)) | loops

    def _local(self, axes: tuple[Axis, ...]) -> dict[int, UOp]:
        wide = [number for number, axis in enumerate(axes) if axis.local > 1]
        found = group_dims(ThreadKind.LOCAL, [axes[number].local for number in wide], LOCAL_LIMITS, reverse=True)
        return dict.fromkeys(range(len(axes)), ZERO) | dict(zip(wide, found, strict=True))

    def _reduce_ranges(self, number: int, node: Reduce) -> tuple[dict[int, UOp], list[UOp]]:
        """The index of each reduced axis, and the ranges that it is made of, unrolled ones first."""
        indices: dict[int, UOp] = {}
        unrolled, loops = [], []
        first = 2 * self.rank * (1 + self.levels[number])
        for axis in node.axes:
            planned = self.plan.axes[axis]
            size = self.kernel.shapes[node.src][axis]
            indices[axis] = ZERO
            if size == 1:
                continue
            if planned.reduce and planned.unroll > 1:
                step = range_(first + self.rank + axis, planned.unroll, AxisKind.UNROLL)
                unrolled.append(step)
                indices[axis] = step
                size = planned.size
            if size != 1:
                loop = range_(first + axis, to_uop(size), AxisKind.REDUCE)
                loops.append(loop)
                indices[axis] = _join(loop, planned.unroll, indices[axis])
        return indices, unrolled + loops

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _store(self, node: Store) -> UOp:
        at = _inside(node.views[-1].shape, self.indices)
        position, gate = address(node.views, at)
        value = self._value(node.src, self.indices)
        if node.image:
            value = _cast(value, node.dtype)
        target = buffer(node.buffer, node.dtype, self.sizes[node.buffer])
        store = make(ops.STORE, target, position, value, *([] if gate is None else [gate]))
        for axis in self.plan.upcast_order:
            if axis in self.lanes and node.views[-1].shape[axis] != 1:
                store = make(ops.WIDEN, store, self.lanes[axis])
        return store

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
        position, gate = address(node.views, _inside(node.views[-1].shape, indices))
        source = buffer(node.buffer, node.dtype, self.sizes[node.buffer])
        gated = [] if gate is None else [gate, const(node.dtype, 0)]
        value = make(ops.LOAD, source, position, *gated)
        return _cast(value, dtypes.float32) if node.image else value

    def _reduce(self, number: int, node: Reduce, indices: Indices) -> UOp:
        value = self.done[node.src, self._reduced_indices(number, indices)]
        _, ranges = self.reduced[number]
        if not ranges:
            return value
        dtype = value.dtype
        wider = WIDER.get(dtype, dtype) if node.op in (ops.ADD, ops.MUL) else dtype
        return _cast(make(ops.REDUCE, _cast(value, wider), *ranges, arg=node.op), dtype)


def _constant(node: Const, indices: Indices) -> UOp:
    if isinstance(node.value, Size):
        value = make(ops.CAST, to_uop(node.value), dtype=node.dtype)
    else:
        value = const(node.dtype, node.value)
    _, gate = address(node.views, _inside(node.views[-1].shape, indices))
    return value if gate is None else make(ops.WHERE, gate, value, const(node.dtype, 0))


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
