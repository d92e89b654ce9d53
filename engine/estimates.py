"""How much work a linear kernel does: arithmetic operations, and bytes that it must move at least.

An operation counts where its value reaches memory; what only feeds indices and gates does not. It counts once for each
lane, each step of the loops around it and each thread; a fused multiply-add counts twice. A buffer counts by the
elements that can differ between its accesses: an access that does not vary in a loop touches no more for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from math import prod

from . import facts, ops
from .dtypes import DType
from .errors import GraphError
from .interpret import evaluate
from .linear import LinearKernel
from .ops import BufferArg, Op, VarArg
from .uop import UOp, walk


@dataclass(frozen=True, slots=True)
class Estimates:
    """What one launch does: operations, and bytes read and written."""

    operations: int
    bytes_read: int
    bytes_written: int

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written


def estimate(kernel: LinearKernel, variables: Mapping[str, int] | None = None) -> Estimates:
    """The work for these values of the variables.

    Both branches of a condition count. Raises GraphError where a loop's length depends on a variable without value.
    """
    found = [_Count(part, variables or {}).estimates() for part in kernel.parts]
    return Estimates(*(sum(numbers) for numbers in zip(*map(astuple, found), strict=True)))


class _Count:
    def __init__(self, kernel: LinearKernel, variables: Mapping[str, int]) -> None:
        self.kernel = kernel
        nodes = [node for node in walk(*kernel.uops, *kernel.groups) if node.op is ops.VAR]
        self.values = {n: variables[n.arg.name] for n in nodes if isinstance(n.arg, VarArg) and n.arg.name in variables}
        self.threads = prod(self._size(size) for size in kernel.groups) * prod(kernel.locals) * max(1, kernel.threads)
        self.counters = [node for node in kernel.uops if node.op in (ops.RANGE, ops.SPECIAL)]

    def estimates(self) -> Estimates:
        values = _values(self.kernel)
        operations = 0
        steps = [self.threads]
        for node in self.kernel.uops:
            if node.op is ops.RANGE:
                steps.append(steps[-1] * self._size(node.src[0]))
            elif node.op is ops.ENDRANGE:
                steps.pop()
            elif node in values:
                operations += steps[-1] * node.dtype.lanes * _WEIGHTS.get(node.op, 1)
        return Estimates(operations, self._bytes(ops.LOAD), self._bytes(ops.STORE))

    def _size(self, node: UOp) -> int:
        size = evaluate(node, self.values)
        if not isinstance(size, int):
            raise GraphError(f"the number of steps {node!r} has no value")
        return max(0, size)

    def _bytes(self, access: Op) -> int:
        """Over all global buffers: the elements touched by loads, or by stores, each once."""
        touched: dict[UOp, dict[tuple[UOp, int], int]] = {}
        for node in self.kernel.uops:
            if node.op is access and node.src[0].op is ops.BUFFER:
                lanes = (node if access is ops.LOAD else node.src[2]).dtype.lanes
                touched.setdefault(node.src[0], {})[node.src[1], lanes] = self._distinct(node.src[1]) * lanes
        total = 0
        for buffer, accesses in touched.items():
            assert isinstance(buffer.arg, BufferArg)
            if buffer.arg.scratch:
                continue
            count = sum(accesses.values())
            size = buffer.arg.size
            total += (count if size is None else min(count, size)) * _itemsize(buffer.dtype)
        return total

    def _distinct(self, index: UOp) -> int:
        """How many values an index can have: the steps of the loops and threads that it varies in, within its bounds."""
        below = set(walk(index))
        steps = prod(self._size(counter.src[0]) for counter in self.counters if counter in below)
        low, high = facts.interval(index)
        modulus, _ = facts.congruence(index)
        if modulus == 0 or low == high:
            return 1
        return min(steps, int(high - low) // max(modulus, 1) + 1) if isinstance(high, int) else steps


def _itemsize(pointer: DType) -> int:
    assert pointer.element is not None
    return max(1, pointer.element.bits // 8)


_WEIGHTS = {ops.MULACC: 2}

_FREE = frozenset({ops.CAST, ops.BITCAST, ops.VECTORIZE, ops.GEP, ops.CONST, ops.WHERE})
"""Operators that move or convert a value rather than compute one."""


def _values(kernel: LinearKernel) -> set[UOp]:
    """The arithmetic whose value reaches memory other than as an index or a gate."""
    pending = [node.src[2] for node in kernel.uops if node.op is ops.STORE]
    seen = set(pending)
    while pending:
        node = pending.pop()
        if node.op is ops.LOAD:
            operands = node.src[3:]
        elif node.op is ops.DEFINE_ACC:
            operands = node.src[:1]
        else:
            operands = tuple(s for s in node.src if s.op is not ops.RANGE)
        fresh = [operand for operand in operands if operand not in seen]
        seen.update(fresh)
        pending += fresh
    return {node for node in seen if node.op.elementwise and node.op not in _FREE and node.dtype.kind != "pointer"}
