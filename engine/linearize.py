"""From a graph to the linear form: an order with loops, in which everything stands as far out as it can.

Each node belongs to the innermost of the loops that it varies in, so what does not vary in a loop stands outside.
Loops form a tree: those of a store nest by axis number, an accumulator's own loops stand inside those that its result
varies in, and accumulators over the same ranges share a loop. Inside a loop, the order is topological, operands
first, ties by the graph's own post-order; a loop is one item there, so it closes before whatever uses its results.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import facts, ops
from .dtypes import void
from .errors import GraphError
from .linear import BufferParam, LinearKernel
from .ops import BufferArg, RangeArg, SpecialArg, ThreadKind, VarArg
from .uop import UOp, const, intern, walk

Path = tuple[int, ...]
"""A place in the tree of loops: the axes of the loops around it, outermost first."""


def linearize(sink: UOp, name: str) -> LinearKernel:
    """The linear form of a lowered graph. Raises GraphError if its loops cannot be nested."""
    nodes = [node for node in walk(sink) if node.op is not ops.SINK]
    order = list(_Scheduler(nodes).ordered())
    return LinearKernel(name, tuple(_with_ifs(order)), *_signature(nodes))


class _Scheduler:
    """The tree of loops of one graph."""

    def __init__(self, nodes: list[UOp]) -> None:
        self.nodes = nodes
        self.loops = {_axis(node): node for node in nodes if node.op is ops.RANGE}
        self.phis = [node for node in nodes if node.op is ops.PHI]
        self.around: dict[int, int] = {}  # axis -> mask of the loops that must stand around it
        self.masks: dict[UOp, int] = {}
        self._nest()
        self.paths = {mask: self._path(mask) for mask in set(self.masks.values())}
        self.place = {node: self.paths[self.masks[node]] for node in nodes}

    # --- which loops a node stands in ----------------------------------------------------------------------------------

    def _nest(self) -> None:
        """Grows the loops around each range until every node's loops include those around its loops."""
        self.around = dict.fromkeys(self.loops, 0)
        while True:
            self._compute_masks()
            grown = {axis: mask | self._wanted(axis) for axis, mask in self.around.items()}
            if grown == self.around:
                return
            self.around = grown

    def _compute_masks(self) -> None:
        masks = self.masks
        close = _Closure(self.around)
        for node in self.nodes:
            mask = facts.ranges(node)
            for s in node.src:
                mask |= masks[s] & ~self._ends(s)
            if node.op is ops.PHI or node.op is ops.DEFINE_ACC:
                own = _own_loops(node)
                mask = (mask & ~own) if node.op is ops.DEFINE_ACC else mask | own
            masks[node] = close(mask)

    def _ends(self, node: UOp) -> int:
        """The loops that are closed before a user of the node."""
        return _own_loops(node) if node.op is ops.PHI else 0

    def _wanted(self, axis: int) -> int:
        """What must stand around a loop, by what is in it."""
        wanted, bit = 0, 1 << axis
        for phi in self.phis:
            own = _own_loops(phi)
            if own & bit:
                wanted |= (self.masks[phi] & ~own) | (own & (bit - 1))
        for node in self.nodes:
            if node.op is ops.STORE and self.masks[node] & bit:
                wanted |= self.masks[node] & (bit - 1)
        return wanted

    def _path(self, mask: int) -> Path:
        axes = [axis for axis in self.loops if mask >> axis & 1]
        axes.sort(key=lambda axis: (self.around[axis].bit_count(), axis))
        for position, axis in enumerate(axes[1:]):
            outer = axes[position]
            if not self.around[axis] >> outer & 1 or self.around[outer] >> axis & 1:
                raise GraphError(
                    f"ranges r{outer} and r{axis} are used together but cannot stand one inside the other; "
                    "give the reductions ranges of their own"
                )
        return tuple(axes)

    # --- the order inside a loop ---------------------------------------------------------------------------------------

    def ordered(self) -> Iterator[UOp]:
        bodies = self._bodies()
        stack: list[Iterator[UOp | int]] = [bodies[()].items()]
        path: Path = ()
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
                if path:
                    yield intern(ops.ENDRANGE, void, (self.loops[path[-1]],))
                    path = path[:-1]
            elif isinstance(item, int):
                path = (*path, item)
                yield self.loops[item]
                stack.append(bodies[path].items())
            else:
                yield item

    def _bodies(self) -> dict[Path, _Body]:
        bodies: dict[Path, _Body] = {(): _Body()}
        for number, node in enumerate(self.nodes):
            path = self.place[node]
            for depth in range(len(path)):
                parent = bodies.setdefault(path[:depth], _Body())
                parent.add(path[depth], number, node.op is ops.STORE)
                bodies.setdefault(path[: depth + 1], _Body())
            if node.op is not ops.RANGE:
                bodies[path].add(node, number, node.op is ops.STORE)
            operands = node.src[:1] if node.op is ops.DEFINE_ACC else node.src  # it starts before its ranges do
            for s in operands:
                self._depend(bodies, s, node)
        return bodies

    def _depend(self, bodies: dict[Path, _Body], before: UOp, after: UOp) -> None:
        """Orders the two, or the loops that they stand in, where their ways part."""
        a, b = self.place[before], self.place[after]
        if after.op is ops.RANGE:
            b = b[:-1]  # what a loop's end needs stands outside of the loop
        shared = 0
        while shared < len(a) and shared < len(b) and a[shared] == b[shared]:
            shared += 1
        first = a[shared] if shared < len(a) else before
        if after.op is ops.RANGE and shared == len(b):
            second: UOp | int = _axis(after)
        else:
            second = b[shared] if shared < len(b) else after
        if before.op is ops.RANGE and shared == len(a):
            return  # inside its own loop a range is known from the start
        bodies[a[:shared]].order(first, second)


class _Closure:
    """Masks closed under: a loop brings along those around it."""

    def __init__(self, around: dict[int, int]) -> None:
        self.around = around
        self.known: dict[int, int] = {}

    def __call__(self, mask: int) -> int:
        found = self.known.get(mask)
        if found is None:
            found, before = mask, -1
            while found != before:
                before = found
                for axis, outer in self.around.items():
                    if found >> axis & 1:
                        found |= outer
            self.known[mask] = found
        return found


@dataclass(slots=True)
class _Body:
    """What stands directly in one loop: nodes, and inner loops by their axis."""

    keys: dict[UOp | int, tuple[bool, int]] = field(default_factory=dict)
    after: dict[UOp | int, list[UOp | int]] = field(default_factory=dict)
    waits: dict[UOp | int, int] = field(default_factory=dict)

    def add(self, item: UOp | int, number: int, stores: bool) -> None:
        late, first = self.keys.get(item, (False, number))
        self.keys[item] = (late or stores, first)

    def order(self, first: UOp | int, second: UOp | int) -> None:
        if first is not second and first != second:
            self.after.setdefault(first, []).append(second)
            self.waits[second] = self.waits.get(second, 0) + 1

    def items(self) -> Iterator[UOp | int]:
        """Topological; among what is ready, stores last, then by post-order number."""
        waits = dict(self.waits)
        ready = [(*key, item) for item, key in self.keys.items() if not waits.get(item)]
        heap = [(late, number, place) for place, (late, number, _) in enumerate(ready)]
        known = [item for _, _, item in ready]
        heapq.heapify(heap)
        count = 0
        while heap:
            _, _, place = heapq.heappop(heap)
            item = known[place]
            count += 1
            yield item
            for user in self.after.get(item, ()):
                waits[user] -= 1
                if not waits[user]:
                    heapq.heappush(heap, (*self.keys[user], len(known)))
                    known.append(user)
        if count < len(self.keys):
            raise GraphError("two loops need each other's results; give the reductions ranges of their own")


def _axis(node: UOp) -> int:
    assert isinstance(node.arg, RangeArg)
    return node.arg.axis


def _own_loops(node: UOp) -> int:
    """The loops that an accumulator (or the phi on it) runs over."""
    accumulator = node.src[0] if node.op is ops.PHI else node
    mask = 0
    for over in accumulator.src[1:]:
        mask |= 1 << _axis(over)
    return mask


def _with_ifs(order: list[UOp]) -> Iterator[UOp]:
    """Gated stores stand in an `if`; neighbours with one gate share it."""
    opened: UOp | None = None
    for node in order:
        gate = node.src[3] if node.op is ops.STORE and len(node.src) > 3 else None
        if opened is not None and (gate is None or gate is not opened.src[0]):
            yield intern(ops.ENDIF, void, (opened,))
            opened = None
        if gate is not None and opened is None:
            opened = intern(ops.IF, void, (gate,))
            yield opened
        yield node if gate is None else intern(ops.STORE, void, node.src[:3])
    if opened is not None:
        yield intern(ops.ENDIF, void, (opened,))


def _signature(
    nodes: list[UOp],
) -> tuple[tuple[BufferParam, ...], tuple[VarArg, ...], tuple[UOp, ...], tuple[int, ...], int]:
    """Buffers, variables, group sizes, local sizes and CPU threads, as the leaves say them."""
    written = {_buffer_of(node) for node in nodes if node.op is ops.STORE}
    buffers, variables, special = [], [], {}
    for node in nodes:
        if node.op is ops.BUFFER:
            assert isinstance(node.arg, BufferArg) and node.dtype.element is not None
            buffers.append(BufferParam(node.arg.slot, node.dtype.element, node.arg.size, node in written))
        elif node.op is ops.VAR and isinstance(node.arg, VarArg):
            variables.append(node.arg)
        elif node.op is ops.SPECIAL:
            assert isinstance(node.arg, SpecialArg)
            special[node.arg] = node.src[0]
    threads = special.get(SpecialArg(ThreadKind.THREAD, 0))
    return (
        tuple(sorted(buffers, key=lambda buffer: buffer.slot)),
        tuple(sorted(variables)),
        _sizes(special, ThreadKind.GROUP),
        tuple(_number(size) for size in _sizes(special, ThreadKind.LOCAL)),
        1 if threads is None else _number(threads),
    )


def _buffer_of(store: UOp) -> UOp:
    pointer = store.src[0]
    while pointer.op is ops.AFTER:
        pointer = pointer.src[0]
    return pointer


def _sizes(special: dict[SpecialArg, UOp], kind: ThreadKind) -> tuple[UOp, ...]:
    """The sizes of the dimensions 0, 1, …; 1 for a dimension that nothing looks at."""
    dims = [arg.dim for arg in special if arg.kind is kind]
    one = const(next(iter(special.values())).dtype, 1) if dims else None
    return tuple(special.get(SpecialArg(kind, dim), one) or _missing() for dim in range(max(dims, default=-1) + 1))


def _missing() -> UOp:
    raise AssertionError("a hardware dimension without a size")


def _number(size: UOp) -> int:
    if not isinstance(size.arg, int):
        raise GraphError(f"a group's or thread's size must be a number, got {size!r}")
    return size.arg
