"""Whether an expression evaluates something that may have no value, where another did not.

A division behind a condition has a value wherever the condition holds; without it, not everywhere.
"""

from __future__ import annotations

from .. import facts, intervals, ops
from ..uop import UOp

_DIVISIONS = frozenset({ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD})
_SHIFTS = frozenset({ops.SHL, ops.SHR})
_LAZY_FROM = {ops.WHERE: 1, ops.ASSUME: 1, ops.LOAD: 1}
"""The first operand that is needed under a condition only; of a load that has a gate."""


def evaluates_more(before: UOp, after: UOp) -> bool:
    """Whether `after` evaluates an operator that may have no value, and that `before` does not always evaluate."""
    done = always_evaluated(before)
    stack = [after]
    while stack:
        node = stack.pop()
        if node in done:
            continue
        if may_lack_value(node):
            return True
        done.add(node)
        stack += node.src
    return False


def always_evaluated(value: UOp) -> set[UOp]:
    """The nodes without whose value `value` has none."""
    found: set[UOp] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found.add(node)
        is_gated = node.op is not ops.LOAD or len(node.src) > 2
        stack += node.src[: _LAZY_FROM[node.op]] if node.op in _LAZY_FROM and is_gated else node.src
    return found


def may_lack_value(node: UOp) -> bool:
    """Whether there may be operands for which the operator has no value, as far as is known of them."""
    if node.op in _DIVISIONS:
        return facts.may_be_zero(node.src[1])
    if node.op in _SHIFTS:
        low, high = facts.interval(node.src[1])
        return not 0 <= low <= high < intervals.shift_limit(node.dtype)
    if node.op is ops.CAST:
        return node.src[0].dtype.is_float and not node.dtype.is_float and node.dtype.kind != "bool"
    return node.op is ops.LOAD
