"""The canonical order of the terms of a sum, a product, or another chain.

It depends on nothing but the terms: constants last; before them, what varies in no loop, then by the innermost loop, so
that a sum built from the left has partial sums that can stand outside of the inner loops; among these by the first leaf
as a reader would sort them, and by a structural hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from . import facts, ops
from .dtypes import float_bits
from .ops import BufferArg, Op, RangeArg, SpecialArg, VarArg
from .uop import UOp

Key = tuple[bool, int, str]
"""Whether it is a constant; the loops it varies in, as a bit mask; its first leaf."""


def sort_key(node: UOp) -> Key:
    """Where a term stands in its chain, kept in the node; terms with equal keys are told apart by `structural_hash`."""
    path = []
    while node._order is None:
        path.append(node)
        if not node.src or node.op is ops.RANGE:
            break
        node = node.src[0]
    leaf = node._order[2] if node._order is not None else _leaf(node)
    for part in reversed(path):
        part._order = part.op is ops.CONST, facts.ranges(part), leaf
    found = path[0]._order if path else node._order
    assert found is not None
    return found


def in_order(terms: Sequence[UOp]) -> list[UOp]:
    """The terms in the canonical order."""
    constants = [term for term in terms if term.op is ops.CONST]
    variable = [term for term in terms if term.op is not ops.CONST] if constants else terms
    keys = {term._order or sort_key(term) for term in variable}
    if len(keys) < len(variable):
        variable = sorted(variable, key=structural_hash)
    if len(constants) > 1:
        constants.sort(key=structural_hash)
    return [*sorted(variable, key=sort_key), *constants]


def structural_hash(root: UOp) -> int:
    """64 bits that depend on the structure alone: the same in every process and on every machine."""
    if root._hash is None:
        stack = [root]
        while stack:
            node = stack[-1]
            if node._hash is None:
                missing = [s for s in _below(node) if s._hash is None]
                if missing:
                    stack += missing
                    continue
                node._hash = _mixed(node)
            stack.pop()
    found = root._hash
    assert found is not None
    return found


def _below(node: UOp) -> tuple[UOp, ...]:
    return (*node.src, node.arg) if isinstance(node.arg, UOp) else node.src


_MASK = (1 << 64) - 1


def _mixed(node: UOp) -> int:
    """From the operator, the type, what stands in `arg`, and the hashes of what stands below."""
    mixed = crc32(f"{node.op.name} {node.dtype.name} {_written(node.arg)}".encode())
    for part in _below(node):
        assert part._hash is not None
        mixed = (mixed * 0x9E3779B97F4A7C15 + part._hash + 1) & _MASK
        mixed ^= mixed >> 29
    return mixed


def _leaf(node: UOp) -> str:
    arg = node.arg
    if isinstance(arg, VarArg | str):
        return arg if isinstance(arg, str) else arg.name
    if isinstance(arg, BufferArg):
        return f"buffer {arg.slot:06}"
    if isinstance(arg, RangeArg):
        return f"range {arg.axis:06}"
    return node.op.name


def _written(arg: object) -> str:
    """What a node holds beside its operands, as text that no process and no machine changes."""
    if isinstance(arg, float):
        return f"float {float_bits(arg)}"
    if isinstance(arg, UOp):
        return "node"
    if isinstance(arg, Op):
        return arg.name
    if isinstance(arg, RangeArg):
        return f"{arg.axis} {arg.kind.value}"
    if isinstance(arg, SpecialArg):
        return f"{arg.kind.value} {arg.dim}"
    return repr(arg)
