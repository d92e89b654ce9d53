"""Does every load and store stay inside its buffer: proven by the rules, under the gate of the access.

The question is an expression, `where(gate, 0 <= index & index < size, true)`. Where the rules bring it to `true`, no
access leaves the buffer; where to `~gate`, or to `false`, each one does that happens. Anything else is not decided: the
index may be data, or the rules are too weak, and the question as far as they came says which condition is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial, reduce
from typing import NamedTuple

from . import dtypes, facts, ops
from .dtypes import DType
from .ops import BufferArg
from .printing import expression
from .uop import UOp, const, make, memory_of, walk

Simplify = Callable[[UOp], UOp]
"""Brings an expression to its normal form."""


class Verdict(Enum):
    """What is known of an access."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNDECIDED = "perhaps outside"
    UNSIZED = "of unknown size"


class Access(NamedTuple):
    """A load or store; `left` is what remains to be proven, and is there only where it is undecided."""

    node: UOp
    verdict: Verdict
    left: UOp | None = None

    def __str__(self) -> str:
        memory, index = memory_of(self.node.src[0]), self.node.src[1]
        argument = memory.arg
        assert isinstance(argument, BufferArg)
        kind = "local memory" if memory.op is ops.LOCAL else "buffer"
        size = "" if argument.size is None else f" of {argument.size}"
        low, high = facts.interval(index)
        told = f"{self.node.op.name} {kind} {argument.slot}{size} at {expression(index, 40)} in {low}..{high}"
        condition = gate(self.node)
        given = "" if condition is None else f" where {expression(condition, 40)}"
        left = "" if self.left is None else f"; not proven: {expression(self.left, 40)}"
        return f"{told}{given}: {self.verdict.value}{left}"


def accesses(root: UOp, simplify: Simplify, sizes: Mapping[int, UOp] | None = None) -> Iterator[Access]:
    """Every load and store under `root`, operands first. `sizes`: elements by slot, of buffers that do not know theirs.

    Of images there is no question: what is read outside of one is 0, and what is written there is lost.
    """
    for node in walk(root):
        if node.op not in (ops.LOAD, ops.STORE) or node.src[1].op is ops.TEXEL:
            continue
        size = _size(memory_of(node.src[0]), sizes or {})
        yield Access(node, Verdict.UNSIZED) if size is None else _judged(node, size, simplify)


def gate(node: UOp) -> UOp | None:
    """The condition under which a load or store happens; None if it always does."""
    place = 2 if node.op is ops.LOAD else 3
    return node.src[place] if len(node.src) > place else None


def _size(memory: UOp, sizes: Mapping[int, UOp]) -> UOp | None:
    argument = memory.arg
    assert isinstance(argument, BufferArg)
    if argument.size is None:
        return sizes.get(argument.slot) if memory.op is ops.BUFFER else None
    return const(dtypes.index, argument.size)


def _judged(node: UOp, size: UOp, simplify: Simplify) -> Access:
    condition = gate(node)
    left = simplify(_question(node, size, condition))
    if left.op is ops.CONST and left.arg:
        return Access(node, Verdict.INSIDE)
    never = const(dtypes.bool_, False) if condition is None else simplify(make(ops.NOT, condition))
    return Access(node, Verdict.OUTSIDE) if left is never else Access(node, Verdict.UNDECIDED, left)


def _question(node: UOp, size: UOp, condition: UOp | None) -> UOp:
    """Whether every lane of the access is inside, where its gate holds."""
    indices = node.src[1]
    count = 1 if indices.dtype.lanes > 1 else _accessed(node).lanes  # one after the other from a scalar index
    inside = [
        make(ops.AND, make(ops.LE, const(dtypes.index, 0), index), make(ops.LE, _sum(index, count), size))
        for index in (_wide(_lane(indices, k)) for k in range(indices.dtype.lanes))
    ]
    if condition is None:
        return reduce(partial(make, ops.AND), inside)
    clauses = [_lane(condition, min(k, condition.dtype.lanes - 1)) for k in range(len(inside))]
    always = const(dtypes.bool_, True)
    asked = [make(ops.WHERE, clause, one, always) for clause, one in zip(clauses, inside, strict=True)]
    return reduce(partial(make, ops.AND), asked)


def _accessed(node: UOp) -> DType:
    return node.dtype if node.op is ops.LOAD else node.src[2].dtype


def _sum(index: UOp, count: int) -> UOp:
    return make(ops.ADD, index, const(dtypes.index, count))


def _wide(index: UOp) -> UOp:
    """As an unbounded integer, so that the question itself cannot wrap."""
    return index if index.dtype is dtypes.index else make(ops.CAST, index, dtype=dtypes.index)


def _lane(value: UOp, lane: int) -> UOp:
    return value if value.dtype.lanes == 1 else make(ops.GEP, value, arg=lane)
