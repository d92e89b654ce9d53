"""The canonical order of the terms of a sum, a product, or another chain.

It depends on nothing but the terms: constants last; before them, what varies in no loop, then by the innermost loop, so
that a sum built from the left has partial sums that can stand outside of the inner loops; among these by the first leaf
as a reader would sort them, and by a structural hash.
"""

from __future__ import annotations

from zlib import crc32

from . import facts, ops
from .dtypes import float_bits
from .ops import BufferArg, Op, RangeArg, SpecialArg, VarArg
from .uop import UOp

Key = tuple[str, int]
"""The first leaf of a node, and its structural hash: 64 bits, the same in every process and on every machine."""


def sort_key(node: UOp) -> tuple[bool, int, str, int]:
    """Where a term stands in its chain."""
    return node.op is ops.CONST, facts.ranges(node), *structure(node)


def structure(root: UOp) -> Key:
    """The key of a node; computed for all nodes below it that have none yet, and kept in them."""
    if root._structure is None:
        stack = [root]
        while stack:
            node = stack[-1]
            if node._structure is None:
                missing = [s for s in _below(node) if s._structure is None]
                if missing:
                    stack += missing
                    continue
                node._structure = _structure(node)
            stack.pop()
    found = root._structure
    assert found is not None
    return found


def _below(node: UOp) -> tuple[UOp, ...]:
    return (*node.src, node.arg) if isinstance(node.arg, UOp) else node.src


_MASK = (1 << 64) - 1


def _structure(node: UOp) -> Key:
    """From the keys of what stands below."""
    mixed = crc32(f"{node.op.name} {node.dtype.name} {_written(node.arg)}".encode())
    for part in _below(node):
        assert part._structure is not None
        mixed = (mixed * 0x9E3779B97F4A7C15 + part._structure[1] + 1) & _MASK
        mixed ^= mixed >> 29
    first = node.src[0]._structure if node.src else None
    return first[0] if first is not None and node.op is not ops.RANGE else _leaf(node), mixed


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
