"""The canonical order of the terms of a sum, a product, or another chain.

It depends on nothing but the terms: constants last; before them, what varies in no loop, then by the innermost loop, so
that a sum built from the left has partial sums that can stand outside of the inner loops; among these by the first leaf
as a reader would sort them, and by a structural hash.
"""

from __future__ import annotations

from zlib import crc32

from . import facts, ops
from .dtypes import DType, float_bits
from .ops import BufferArg, Op, RangeArg, SpecialArg, VarArg
from .uop import UOp

Key = tuple[bool, int, str, int]
"""Whether it is a constant; the loops it varies in, as a bit mask; its first leaf; its structural hash: 64 bits, the same
in every process and on every machine."""


def sort_key(root: UOp) -> Key:
    """Where a term stands in its chain; computed for all nodes below it that have none yet, and kept in them."""
    if root._order is None:
        stack = [root]
        while stack:
            node = stack[-1]
            if node._order is None:
                missing = [s for s in _below(node) if s._order is None]
                if missing:
                    stack += missing
                    continue
                node._order = node.op is ops.CONST, facts.ranges(node), _first_leaf(node), _hash(node)
            stack.pop()
    found = root._order
    assert found is not None
    return found


def _below(node: UOp) -> tuple[UOp, ...]:
    return (*node.src, node.arg) if isinstance(node.arg, UOp) else node.src


_MASK = (1 << 64) - 1


def _hash(node: UOp) -> int:
    """From the operator, the type, what stands in `arg`, and the hashes of what stands below."""
    if node.arg is None:
        mixed = _operators.get((node.op, node.dtype))
        if mixed is None:
            mixed = _operators[node.op, node.dtype] = crc32(f"{node.op.name} {node.dtype.name}".encode())
    else:
        mixed = crc32(f"{node.op.name} {node.dtype.name} {_written(node.arg)}".encode())
    for part in _below(node):
        assert part._order is not None
        mixed = (mixed * 0x9E3779B97F4A7C15 + part._order[3] + 1) & _MASK
        mixed ^= mixed >> 29
    return mixed


_operators: dict[tuple[Op, DType], int] = {}


def _first_leaf(node: UOp) -> str:
    if node.src and node.op is not ops.RANGE:
        first = node.src[0]._order
        assert first is not None
        return first[2]
    return _leaf(node)


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
