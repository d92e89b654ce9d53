"""Loops that cannot be one get ranges of their own, before the linear form fixes where each loop stands.

A range is the name of a loop variable. Stores and accumulators that name one range share its loop, but not all can:
one may need the other's result, they may stand in different loops, or one may be a store's and the other a
reduction's. Then all but the first are written with fresh ranges. That changes names and nothing else, so it is no
rule's business; where every range is one loop in one place already, the graph comes back as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import facts, ops
from .errors import GraphError
from .nesting import Nest, axis_of, bits
from .ops import RangeArg
from .uop import UOp, intern, walk

LIMIT = 1000
"""How many groups of loops may get new ranges: only a graph whose barriers contradict its loops needs more."""

_Key = tuple[bool, int, int]
"""Claims on a range with different keys cannot share a loop: whether it is a store's loop, with what it opens it, and
what stands around it."""


def separate(sink: UOp) -> UOp:
    """An equal graph in which each range is one loop in one place of the nest. Raises GraphError if there is none."""
    for _ in range(LIMIT):
        nodes = list(walk(sink))
        clash = _first_clash(nodes)
        if clash is None:
            return sink
        first_fresh = 1 + max(axis_of(node) for node in nodes if node.op is ops.RANGE)
        fresh = dict(zip(sorted(clash.axes), range(first_fresh, first_fresh + len(clash.axes)), strict=True))
        sink = _replaced(sink, _renamed(clash.members, fresh))
    raise GraphError(f"the loops cannot be separated: {LIMIT} renamings of ranges were not enough")


@dataclass(slots=True)
class _Group:
    """Stores or phis that share a loop, and the axes that they open there and further inside."""

    key: _Key
    members: list[UOp]
    axes: set[int]


def _first_clash(nodes: Sequence[UOp]) -> _Group | None:
    """The first group that claims a range which another group has claimed already."""
    nest = Nest(nodes)
    claims: dict[int, list[_Group]] = {}
    for node in (*nest.stores, *nest.phis):
        opened = nest.opened_by(node)
        for place, axis in enumerate(opened):
            axes = set(opened if node.op is ops.PHI else opened[place:])
            claims.setdefault(axis, []).append(_Group(_key(nest, node, opened[:place]), [node], axes))
    needs = _Needs(nodes, nest)
    for axis, claimed in claims.items():
        groups = _grouped(axis, claimed, needs) if len(claimed) > 1 else ()
        if len(groups) > 1:
            return groups[1]
    return None


def _key(nest: Nest, node: UOp, outer: Sequence[int]) -> _Key:
    if node.op is ops.STORE:
        return True, 0, _mask(outer)
    return False, _mask(nest.opened_by(node)), nest.closed(facts.ranges(node))


def _grouped(axis: int, claims: Sequence[_Group], needs: _Needs) -> list[_Group]:
    """The claims on one range, those together that can share a loop."""
    groups: list[_Group] = []
    for claim in claims:
        for group in groups:
            if group.key == claim.key and needs.may_share(axis, [*group.members, *claim.members]):
                group.members += claim.members
                group.axes |= claim.axes
                break
        else:
            groups.append(claim)
    for group in groups:
        needs.share(group.members)
    return groups


class _Needs:
    """Which stores and phis must be done before others, given which share a loop; sets of them are masks."""

    def __init__(self, nodes: Sequence[UOp], nest: Nest) -> None:
        self.nodes = nodes
        self.openers = (*nest.stores, *nest.phis)
        self.number = {node: number for number, node in enumerate(self.openers)}
        self.shared = [1 << number for number in range(len(self.openers))]  # all that are in a loop with this one
        self.below: dict[UOp, int] = {}
        self.before: dict[int, dict[UOp, int]] = {}  # axis -> what nodes need from before its loop

    def share(self, members: Sequence[UOp]) -> None:
        together = 0
        for member in members:
            together |= self.shared[self.number[member]]
        for number in bits(together):
            self.shared[number] |= together

    def may_share(self, axis: int, members: Sequence[UOp]) -> bool:
        """Whether none of the members needs, from before the loop of `axis`, what has to wait for another member."""
        if axis not in self.before:
            self.before[axis] = self._from_before(axis)
        inside = left = needed = 0
        for member in members:
            inside |= 1 << self.number[member]
            left |= self.before[axis][member]
        while left and not left & inside:
            needed |= left
            further = 0
            for number in bits(left):
                further |= self.shared[number] | self.below[self.openers[number]]
            left = further & ~needed
        return not left

    def _from_before(self, axis: int) -> dict[UOp, int]:
        """What is reached from a node through one that does not vary in the axis."""
        below = self.below = self.below or self._all_below()
        found: dict[UOp, int] = {}
        for node in self.nodes:
            if facts.ranges(node) >> axis & 1 or node in self.number:
                found[node] = 0
                for s in node.src:
                    found[node] |= found[s] if facts.ranges(s) >> axis & 1 else below[s]
        return found

    def _all_below(self) -> dict[UOp, int]:
        found: dict[UOp, int] = {}
        for node in self.nodes:
            mask = 1 << self.number[node] if node in self.number else 0
            for s in node.src:
                mask |= found[s]
            found[node] = mask
        return found


def _mask(axes: Sequence[int]) -> int:
    return sum(1 << axis for axis in axes)


# --- writing with other ranges ----------------------------------------------------------------------------------------


def _renamed(members: Sequence[UOp], fresh: dict[int, int]) -> dict[UOp, UOp]:
    """The members, which bind or vary in the axes of `fresh`, with the fresh axes instead."""
    mask = _mask(list(fresh))
    new: dict[tuple[UOp, int], UOp] = {}
    for node, free in _varying(members, mask):
        arg = node.arg
        if isinstance(arg, RangeArg) and free >> arg.axis & 1:
            arg = RangeArg(fresh[arg.axis], arg.kind)
        src = tuple(new.get((s, free & facts.ranges(s)), s) for s in node.src)
        new[node, free] = intern(node.op, node.dtype, src, arg) if arg is not node.arg or src != node.src else node
    return {member: new[member, mask] for member in members}


def _varying(members: Sequence[UOp], mask: int) -> Iterator[tuple[UOp, int]]:
    """The members and what is below them, operands first, each with the axes to rename in it.

    A reduction inside that has one of these axes itself does not vary in it, so that below it the axis stays.
    """
    stack = [(member, mask, False) for member in reversed(members)]
    seen: set[tuple[UOp, int]] = set()
    while stack:
        node, free, expanded = stack.pop()
        if expanded:
            yield node, free
        elif (node, free) not in seen:
            seen.add((node, free))
            stack.append((node, free, True))
            below = [(s, free & facts.ranges(s), False) for s in reversed(node.src)]
            stack.extend(task for task in below if task[1])


def _replaced(sink: UOp, new: dict[UOp, UOp]) -> UOp:
    """The graph with some nodes replaced, wherever they are used."""
    for node in walk(sink):
        if node not in new and any(s in new for s in node.src):
            new[node] = intern(node.op, node.dtype, tuple(new.get(s, s) for s in node.src), node.arg)
    return new[sink]
