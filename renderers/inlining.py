"""Which nodes of a linear kernel may be printed inside their user's expression instead of in a variable of their own.

A node may move down to its only user as long as nothing happens on the way that could change its value or how often
it is computed: no loop or `if` begins or ends; for a load, nothing is stored; for a reader of an accumulator, none is
assigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..engine import ops
from ..engine.uop import UOp

_SCOPES = frozenset({ops.RANGE, ops.ENDRANGE, ops.IF, ops.ENDIF})
_EFFECTS = frozenset({ops.STORE, ops.BARRIER})
MOVABLE = frozenset({*ops.ELEMENTWISE, ops.TEXEL, ops.LOAD, ops.VECTORIZE, ops.GEP})
"""Operators whose nodes are expressions; the others are statements or mere names."""


class _Clock(NamedTuple):
    """How many events there have been."""

    scopes: int = 0
    effects: int = 0
    assignments: int = 0


def movable(uops: Sequence[UOp]) -> set[UOp]:
    """The nodes that may be printed where their only user is printed."""
    place = {node: i for i, node in enumerate(uops)}
    before = _clocks(uops)
    users = _only_users(uops)
    found: set[UOp] = set()
    printed: dict[UOp, int] = {}  # where a node's text ends up, if everything that may move does
    for node in reversed(uops):
        printed[node] = place[node]
        user = users.get(node)
        if user is None or node.op not in MOVABLE or user.op is ops.GEP or user.op is ops.RANGE:
            continue  # a lane is picked from a name; a loop's end would be computed in each step
        if _may_move(node, before[place[node] + 1], before[printed[user]]):
            found.add(node)
            printed[node] = printed[user]
    return found


def _may_move(node: UOp, since: _Clock, until: _Clock) -> bool:
    if since.scopes != until.scopes:
        return False
    if node.op is ops.LOAD and since.effects != until.effects:
        return False
    return since.assignments == until.assignments or all(s.op is not ops.DEFINE_ACC for s in node.src)


def _clocks(uops: Sequence[UOp]) -> list[_Clock]:
    """The clock before each node, and after the last."""
    scopes = effects = assignments = 0
    clocks = [_Clock()]
    for node in uops:
        scopes += node.op in _SCOPES
        effects += node.op in _EFFECTS
        assignments += node.op is ops.PHI
        clocks.append(_Clock(scopes, effects, assignments))
    return clocks


def _only_users(uops: Sequence[UOp]) -> dict[UOp, UOp]:
    """The user of each node that is used exactly once."""
    once: dict[UOp, UOp] = {}
    often: set[UOp] = set()
    for node in uops:
        for operand in node.src:
            if operand in once or operand in often:
                once.pop(operand, None)
                often.add(operand)
            else:
                once[operand] = node
    return once


def read_after_assignment(uops: Sequence[UOp]) -> set[UOp]:
    """The accumulators whose old value is still read after its PHI has assigned the new one."""
    assigned: set[UOp] = set()
    found: set[UOp] = set()
    for node in uops:
        if node.op is ops.PHI:
            assigned.add(node.src[0])
        else:
            found.update(operand for operand in node.src if operand in assigned)
    return found
