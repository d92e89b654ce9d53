"""The interpreter: executes the linear form with NumPy, in lock step over all threads. The reference for all devices.

Each value is an array (threads, lanes); what is the same in every thread has one row. Loops run in Python, ifs are
masks, every access is checked against its buffer's bounds. Threads are taken in blocks of whole groups, so that
memory stays bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine import dtypes, ops
from ..engine.arrays import Array, apply, from_storage, held_dtype, to_storage
from ..engine.errors import DeviceError
from ..engine.interpret import evaluate
from ..engine.linear import LinearKernel
from ..engine.ops import BufferArg, SpecialArg, ThreadKind, VarArg
from ..engine.uop import UOp
from ..renderers.listing import ListingRenderer

Values = npt.NDArray[Any]
BLOCK = 1 << 16
"""Threads that are executed together."""


class Interpreter:
    """The device `interpreter`."""

    name = "interpreter"

    def __init__(self) -> None:
        self.renderer = ListingRenderer()

    @property
    def description(self) -> str:
        return f"NumPy {np.__version__}, all threads in lock step"

    def build(self, kernel: LinearKernel, source: str) -> InterpretedKernel:
        return InterpretedKernel(kernel)


@dataclass(frozen=True)
class InterpretedKernel:
    """A kernel ready to be interpreted."""

    kernel: LinearKernel

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        """Raises DeviceError for an access outside of its buffer, or a barrier that not all threads reach."""
        groups = [_size(size, self.kernel, variables) for size in self.kernel.groups]
        local = math.prod(self.kernel.locals)
        total = math.prod(groups)
        step = max(1, BLOCK // max(1, local * self.kernel.threads))
        with np.errstate(all="ignore"):
            for first in range(0, total, step):
                numbers = np.arange(first, min(first + step, total))
                _Block(self.kernel, buffers, variables, groups, numbers).run()


def _size(size: UOp, kernel: LinearKernel, variables: Mapping[str, int]) -> int:
    known = {
        node: variables[node.arg.name] for node in kernel.uops if node.op is ops.VAR and isinstance(node.arg, VarArg)
    }
    value = evaluate(size, known)
    assert isinstance(value, int)
    return value


@dataclass
class _Block:
    """Some groups of a launch, executed together."""

    kernel: LinearKernel
    buffers: Sequence[Array]
    variables: Mapping[str, int]
    groups: list[int]
    numbers: npt.NDArray[np.int64]  # of the groups
    values: dict[UOp, Values] = field(default_factory=dict)
    masks: list[Values] = field(default_factory=list)
    local: dict[UOp, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.phis: dict[UOp, list[UOp]] = {}
        for node in self.kernel.uops:
            if node.op is ops.PHI:
                self.phis.setdefault(node.src[0], []).append(node)
        self.per_group = math.prod(self.kernel.locals) * self.kernel.threads
        self.threads = len(self.numbers) * self.per_group
        self.group_of = np.repeat(np.arange(len(self.numbers)), self.per_group)
        self.inside = np.tile(np.arange(self.per_group), len(self.numbers))

    def run(self) -> None:
        uops = self.kernel.uops
        opened: list[tuple[int, int, int]] = []  # of each loop: where it starts, the step, the end
        ends = _matching(uops)
        at = 0
        while at < len(uops):
            node = uops[at]
            if node.op is ops.RANGE:
                end = int(self.values[node.src[0]].reshape(-1)[0])
                if end <= 0:
                    at = ends[at] + 1
                    continue
                opened.append((at, 0, end))
                self._count(node, 0)
            elif node.op is ops.ENDRANGE:
                self._assign(node.src[0])
                start, step, end = opened.pop()
                if step + 1 < end:
                    opened.append((start, step + 1, end))
                    self._count(uops[start], step + 1)
                    at = start
            else:
                self._execute(node)
            at += 1

    def _assign(self, loop: UOp) -> None:
        """At the end of a step the accumulators take their new values, all at once."""
        for accumulator, phis in self.phis.items():
            if loop in accumulator.src[1:]:
                self.values[accumulator] = self.values[phis[-1]]

    def _count(self, loop: UOp, step: int) -> None:
        self.values[loop] = np.full((1, 1), step, held_dtype(loop.dtype))

    def _execute(self, node: UOp) -> None:
        op = node.op
        if op.elementwise:
            operands = [self.values[s] for s in node.src]
            source = node.src[-1].dtype if op is ops.WHERE else node.src[0].dtype
            self.values[node] = apply(op, source, node.dtype, operands)
        elif op is ops.LOAD:
            self.values[node] = self._load(node)
        elif op is ops.STORE:
            self._store(node)
        elif op is ops.IF:
            gate = self.values[node.src[0]].astype(np.bool_)
            self.masks.append(gate & self.masks[-1] if self.masks else gate)
        elif op is ops.ENDIF:
            self.masks.pop()
        elif op is ops.BARRIER:
            if self.masks and not self.masks[-1].all():
                raise DeviceError(f"{self.kernel.name}: a barrier stands in an if that not all threads enter")
        else:
            self._leaf(node)

    def _leaf(self, node: UOp) -> None:
        """What has no arithmetic: leaves, lanes, accumulators, buffers."""
        match node.op:
            case ops.CONST:
                self.values[node] = np.full((1, node.dtype.lanes), node.arg, held_dtype(node.dtype.scalar))
            case ops.VAR:
                assert isinstance(node.arg, VarArg)
                self.values[node] = np.full((1, 1), self.variables[node.arg.name], held_dtype(node.dtype))
            case ops.SPECIAL:
                self.values[node] = self._special(node).reshape(-1, 1).astype(held_dtype(node.dtype))
            case ops.VECTORIZE:
                lanes = np.broadcast_arrays(*(self.values[s] for s in node.src))
                self.values[node] = np.concatenate(lanes, axis=1)
            case ops.GEP:
                assert isinstance(node.arg, int)
                self.values[node] = self.values[node.src[0]][:, node.arg : node.arg + 1]
            case ops.DEFINE_ACC:
                self.values[node] = self.values[node.src[0]]
                for phi in self.phis.get(node, ()):  # what stays so if a loop has no steps
                    self.values[phi] = self.values[node]
            case ops.PHI:
                self.values[node] = self.values[node.src[1]]
            case ops.LOCAL:
                assert isinstance(node.arg, BufferArg) and node.dtype.element is not None
                size = (len(self.numbers), node.arg.size or 0)
                self.local.setdefault(node, np.zeros(size, held_dtype(node.dtype.element)))
            case ops.BUFFER | ops.AFTER | ops.SINK:
                pass
            case _:
                raise DeviceError(f"the interpreter cannot execute {node.op.name}; the rules should have lowered it")

    def _special(self, node: UOp) -> npt.NDArray[np.int64]:
        """The hardware index of every thread, dimension 0 fastest."""
        assert isinstance(node.arg, SpecialArg)
        kind, dim = node.arg
        if kind is ThreadKind.THREAD:
            return np.asarray(self.inside)
        sizes: Sequence[int] = self.groups if kind is ThreadKind.GROUP else self.kernel.locals
        flat = self.numbers[self.group_of] if kind is ThreadKind.GROUP else self.inside
        return np.asarray(flat // math.prod(sizes[:dim]) % sizes[dim])

    # --- memory ------------------------------------------------------------------------------------------------------

    def _load(self, node: UOp) -> Values:
        assert node.dtype is not dtypes.void
        lanes = node.dtype.lanes
        places = self._places(node.src[1], lanes)
        gate = self._gate(node.src[2] if len(node.src) == 4 else None)
        data, base = self._memory(node.src[0])
        if gate is None:
            self._check(node, places, data.shape[-1], None)
            return self._read(data, base, places)
        gate, places = np.broadcast_arrays(gate, places)
        self._check(node, places, data.shape[-1], gate)
        other = self.values[node.src[3]] if len(node.src) == 4 else np.zeros((1, 1), data.dtype)
        taken = (
            self._read(data, base, np.where(gate, places, 0)) if data.shape[-1] else np.zeros(places.shape, data.dtype)
        )
        return np.where(gate, taken, other)

    def _read(self, data: Array, base: npt.NDArray[np.int64] | None, places: Values) -> Values:
        if base is None:
            return np.asarray(data[places])
        return np.asarray(data[base.reshape(-1, 1), np.broadcast_to(places, (self.threads, places.shape[1]))])

    def _store(self, node: UOp) -> None:
        value = self.values[node.src[2]]
        places = self._places(node.src[1], value.shape[1])
        gate = self._gate(node.src[3] if len(node.src) == 4 else None)
        data, base = self._memory(node.src[0], write=True)
        rows = 1 if base is None and gate is None else self.threads
        value, places = (np.broadcast_to(a, (max(rows, a.shape[0]), value.shape[1])) for a in (value, places))
        value, places = np.broadcast_arrays(value, places)
        chosen = np.ones(places.shape, np.bool_) if gate is None else np.broadcast_to(gate, places.shape)
        self._check(node, places, data.shape[-1], chosen)
        element = node.src[0].dtype.element
        assert element is not None
        if base is not None:
            group = np.broadcast_to(base.reshape(-1, 1), places.shape)
            data[group[chosen], places[chosen]] = value[chosen]
        else:
            data[places[chosen]] = to_storage(value[chosen], element)

    def _places(self, at: UOp, lanes: int) -> Values:
        """The elements that each thread and lane touches; a scalar index with several lanes: consecutive ones."""
        places = self.values[at].astype(np.int64)
        return places + np.arange(lanes) if places.shape[1] == 1 and lanes > 1 else places

    def _gate(self, gate: UOp | None) -> Values | None:
        """Which threads take part: those of the gate that are inside the ifs."""
        mask = self.masks[-1] if self.masks else None
        if gate is None:
            return mask
        own = self.values[gate].astype(np.bool_)
        return own if mask is None else own & mask

    def _memory(self, pointer: UOp, write: bool = False) -> tuple[Array, npt.NDArray[np.int64] | None]:
        """The array behind a pointer, and for local memory the row of each thread's group."""
        while pointer.op is ops.AFTER:
            pointer = pointer.src[0]
        if pointer.op is ops.LOCAL:
            return self.local[pointer], self.group_of
        assert isinstance(pointer.arg, BufferArg) and pointer.dtype.element is not None
        data = self.buffers[pointer.arg.slot]
        return (data if write else from_storage(data, pointer.dtype.element)), None

    def _check(self, node: UOp, places: Values, size: int, gate: Values | None) -> None:
        wrong = (places < 0) | (places >= size)
        if gate is not None:
            wrong &= gate
        if wrong.any():
            at = int(np.broadcast_to(places, wrong.shape)[wrong][0])
            raise DeviceError(
                f"{self.kernel.name}: {node.op.name} of element {at} of a buffer with {size} elements: {node.src[0]!r}[{node.src[1]!r}]. "
                "The index rules or a view are wrong; look at `rulewright show --stage linear`."
            )


def _matching(uops: Sequence[UOp]) -> dict[int, int]:
    """Where each loop ends."""
    stack, ends = [], {}
    for number, node in enumerate(uops):
        if node.op is ops.RANGE:
            stack.append(number)
        elif node.op is ops.ENDRANGE:
            ends[stack.pop()] = number
    return ends
