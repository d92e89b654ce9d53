"""From a graph to the linear form: an order with loops, in which everything stands as far out as it can.

Each node belongs to the innermost of the loops that it varies in, so what does not vary in a loop stands outside.
Loops form a tree (`engine.nesting`): those of a store nest by axis number, an accumulator's own loops stand inside
those that its result varies in, and accumulators over the same ranges share a loop. Inside a loop, the order is
topological, stores as late as possible, ties by the graph's own post-order; an inner loop is one item there, so it
closes before whatever uses its results.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from . import facts, ops
from .dtypes import void
from .errors import GraphError
from .linear import BufferParam, LinearKernel
from .nesting import Nest, Path, axis_of
from .ops import BufferArg, SpecialArg, ThreadKind, VarArg
from .parts import split
from .separate import separate
from .uop import UOp, const, intern, memory_of, walk


def linearize(sink: UOp, name: str) -> LinearKernel:
    """The linear form of a lowered graph, in several parts where threads wait for all others.

    Raises GraphError if its loops cannot be nested.
    """
    sinks = split(sink)
    if len(sinks) == 1:
        return _linear(sink, name)
    return _joined([_linear(part, name if not n else f"{name}_part{n + 1}") for n, part in enumerate(sinks)])


def _joined(parts: list[LinearKernel]) -> LinearKernel:
    """Parts one after the other, all with the arguments of all."""
    buffers: dict[int, BufferParam] = {}
    for param in (param for part in parts for param in part.buffers):
        known = buffers.get(param.slot, param)
        buffers[param.slot] = replace(param, written=param.written or known.written)
    variables = tuple(sorted({variable for part in parts for variable in part.variables}))
    joined: LinearKernel | None = None
    for part in reversed(parts):
        listed = tuple(buffers[slot] for slot in sorted(buffers))
        joined = replace(part, buffers=listed, variables=variables, then=joined)
    assert joined is not None
    return joined


def _linear(sink: UOp, name: str) -> LinearKernel:
    nodes = [node for node in walk(separate(sink)) if node.op is not ops.SINK]
    order = list(_Scheduler(nodes).ordered())
    return LinearKernel(name, tuple(_with_ifs(order)), *_signature(nodes))


class _Scheduler:
    """The tree of loops of one graph, and what stands in each."""

    def __init__(self, nodes: list[UOp]) -> None:
        self.nodes = nodes
        self.nest = Nest(nodes)
        self.nest.surround_accumulators()
        self.paths: dict[int, Path] = {}
        self.place = {node: self._path(_stands_in(node)) for node in nodes}
        self.starts: dict[Path, list[UOp]] = {}  # accumulators by the outermost of their loops

    def _path(self, mask: int) -> Path:
        path = self.paths.get(mask)
        if path is None:
            path = self.paths[mask] = self.nest.path(self.nest.closed(mask))
        return path

    def ordered(self) -> Iterator[UOp]:
        bodies = self._bodies()
        stack: list[Iterator[UOp | int]] = [bodies[()].items()]
        path: Path = ()
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
                if path:
                    yield intern(ops.ENDRANGE, void, (self.nest.loops[path[-1]],))
                    path = path[:-1]
            elif isinstance(item, int):
                path = (*path, item)
                yield from self.starts.get(path, ())
                yield self.nest.loops[item]
                stack.append(bodies[path].items())
            else:
                yield item

    def _bodies(self) -> dict[Path, _Body]:
        bodies: dict[Path, _Body] = {(): _Body()}
        for number, node in enumerate(self.nodes):
            path = self.place[node]
            stores = node.op is ops.STORE
            if path not in bodies or stores:
                for depth in range(len(path)):
                    bodies.setdefault(path[:depth], _Body()).add(path[depth], number, stores)
                bodies.setdefault(path, _Body())
            if node.op is ops.DEFINE_ACC:
                self._start(bodies, node)
                continue
            if node.op is not ops.RANGE:
                bodies[path].add(node, number, stores)
            for s in node.src:
                if s.op is not ops.DEFINE_ACC:
                    self._depend(bodies, s, node)
        return bodies

    def _start(self, bodies: dict[Path, _Body], accumulator: UOp) -> None:
        """An accumulator starts just before the outermost of its loops."""
        path = self.place[accumulator]
        own = {axis_of(loop) for loop in accumulator.src[1:]}
        outermost = next(depth for depth, axis in enumerate(path) if axis in own)
        self.starts.setdefault(path[: outermost + 1], []).append(accumulator)
        self._order(bodies, accumulator.src[0], path[:outermost], path[outermost])

    def _depend(self, bodies: dict[Path, _Body], before: UOp, after: UOp) -> None:
        path = self.place[after]
        item: UOp | int = after
        if after.op is ops.RANGE:  # what a loop's end needs stands outside of the loop
            path, item = path[:-1], path[-1]
        if before.op is not ops.RANGE or path[: len(self.place[before])] != self.place[before]:
            self._order(bodies, before, path, item)

    def _order(self, bodies: dict[Path, _Body], before: UOp, path: Path, item: UOp | int) -> None:
        """The item in the loops of `path` comes after a node: so does, where their ways part, one loop after another."""
        way = self.place[before]
        shared = 0
        while shared < len(way) and shared < len(path) and way[shared] == path[shared]:
            shared += 1
        first = way[shared] if shared < len(way) else before
        second = path[shared] if shared < len(path) else item
        bodies[way[:shared]].order(first, second)


def _stands_in(node: UOp) -> int:
    """The loops that a node stands in: those that it varies in, and a phi also in those that it ends."""
    return facts.ranges(node) | facts.ranges(node.src[0]) if node.op is ops.PHI else facts.ranges(node)


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


def _with_ifs(order: list[UOp]) -> Iterator[UOp]:
    """Gated stores stand in an `if`; neighbours with one gate share it."""
    opened: UOp | None = None
    counts: dict[UOp, int] = {}  # how many ifs each gate has: the second is another node
    for node in order:
        gate = node.src[3] if node.op is ops.STORE and len(node.src) > 3 else None
        if opened is not None and (gate is None or gate is not opened.src[0]):
            yield intern(ops.ENDIF, void, (opened,))
            opened = None
        if gate is not None and opened is None:
            opened = intern(ops.IF, void, (gate,), counts.get(gate))
            counts[gate] = counts.get(gate, 0) + 1
            yield opened
        yield node if gate is None else intern(ops.STORE, void, node.src[:3])
    if opened is not None:
        yield intern(ops.ENDIF, void, (opened,))


def _signature(
    nodes: list[UOp],
) -> tuple[tuple[BufferParam, ...], tuple[VarArg, ...], tuple[UOp, ...], tuple[int, ...], int]:
    """Buffers, variables, group sizes, local sizes and CPU threads, as the leaves say them."""
    written = {memory_of(node.src[0]) for node in nodes if node.op is ops.STORE}
    buffers, variables, special = [], [], {}
    for node in nodes:
        if node.op is ops.BUFFER:
            assert isinstance(node.arg, BufferArg) and node.dtype.element is not None
            buffers.append(
                BufferParam(
                    node.arg.slot, node.dtype.element, node.arg.size, node in written, node.arg.image, node.arg.scratch
                )
            )
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
