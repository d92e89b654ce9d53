"""The parts of a kernel: what must be done by all threads before any of them goes on is a part of its own.

Threads of different groups, and those of a CPU, cannot wait for each other inside of a kernel. Where a graph has a barrier
behind a store to a scratch buffer, the store is the work of an earlier part, and what is loaded behind the barrier that
of a later one. Each part is written as a graph of its own, so that what both need (indices, loads) is computed in both.
"""

from __future__ import annotations

from . import ops
from .ops import BufferArg
from .uop import UOp, intern, make, walk


def split(sink: UOp) -> list[UOp]:
    """The sinks of the parts, in the order in which they run: the scratch stores of each, in the last the kernel's own."""
    part: dict[UOp, int] = {}
    stores: list[list[UOp]] = []
    for node in walk(sink):
        part[node] = max((part[s] for s in node.src), default=0)
        if _ends_part(node):
            while len(stores) <= part[node]:
                stores.append([])
            stores[part[node]] += [s for s in node.src if s not in stores[part[node]]]
            part[node] += 1
    if not stores:
        return [sink]
    return [_without_barriers(root) for root in (*(make(ops.SINK, *found) for found in stores), sink)]


def _ends_part(node: UOp) -> bool:
    return node.op is ops.BARRIER and any(_is_scratch(store) for s in node.src for store in _stores(s))


def _stores(effect: UOp) -> list[UOp]:
    """The stores that a barrier's operand stands for."""
    found, stack = [], [effect]
    while stack:
        node = stack.pop()
        if node.op is ops.STORE:
            found.append(node)
        elif node.op in (ops.SINK, ops.WIDEN):
            stack += node.src
    return found


def _is_scratch(store: UOp) -> bool:
    arg = store.src[0].arg
    return isinstance(arg, BufferArg) and arg.scratch


def _without_barriers(sink: UOp) -> UOp:
    """The part in which everything behind its barriers has happened."""
    new: dict[UOp, UOp] = {}
    for node in walk(sink):
        if node.op is ops.AFTER:
            kept = tuple(new.get(s, s) for s in node.src[1:] if not _ends_part(s))
            pointer = new.get(node.src[0], node.src[0])
            new[node] = intern(node.op, node.dtype, (pointer, *kept)) if kept else pointer
        elif any(s in new for s in node.src):
            new[node] = intern(node.op, node.dtype, tuple(new.get(s, s) for s in node.src), node.arg)
    return new.get(sink, sink)
