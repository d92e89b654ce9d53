"""The reference device: executes the linear form with NumPy, all threads in lock step.

A value is an array with one row a thread and one column a lane; what is the same in all threads has one row. Loops
run in order, an `if` and a loop whose end differs between threads become masks. Arithmetic is that of
`engine.arrays`, memory that of `interpreter_memory`. Values are dropped after their last use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from ..engine import ops
from ..engine.arrays import Array, apply, held_dtype
from ..engine.errors import DeviceError
from ..engine.interpret import evaluate
from ..engine.linear import LinearKernel
from ..engine.ops import BufferArg, SpecialArg, ThreadKind, VarArg
from ..engine.uop import UOp
from ..renderers.listing import ListingRenderer
from .base import HostBound, scratch_arrays
from .interpreter_memory import Memory, Values

BLOCK = 1 << 16
"""Threads, or elements of local memory, that are in work together."""


class Interpreter:
    """The device `interpreter`."""

    name = "interpreter"

    def __init__(self) -> None:
        self.renderer = ListingRenderer()

    @property
    def description(self) -> str:
        return f"NumPy {np.__version__}, all threads in lock step"

    def build(self, kernel: LinearKernel, source: str) -> InterpretedKernel:
        return InterpretedKernel(kernel, tuple((part, _plan(part.uops)) for part in kernel.parts))


@dataclass(frozen=True)
class InterpretedKernel:
    """A kernel ready to be interpreted."""

    kernel: LinearKernel
    parts: tuple[tuple[LinearKernel, _Plan], ...]

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        """Raises DeviceError for an access outside of its buffer, a race, or a barrier that not all threads reach."""
        held = [*buffers, *scratch_arrays(self.kernel)]
        for part, plan in self.parts:
            self._run(part, plan, held, variables)

    def _run(self, kernel: LinearKernel, plan: _Plan, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        groups = [_size(size, kernel, variables) for size in kernel.groups]
        total = math.prod(groups)
        shared = sum(n.arg.size or 0 for n in kernel.uops if n.op is ops.LOCAL and isinstance(n.arg, BufferArg))
        step = max(1, BLOCK // max(1, math.prod(kernel.locals) * kernel.threads, shared))
        with np.errstate(all="ignore"):
            for first in range(0, total, step):
                numbers = np.arange(first, min(first + step, total))
                _Block(kernel, plan, buffers, variables, groups, numbers).run()

    def bind(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> HostBound:
        return HostBound(tuple(buffers), partial(self, tuple(buffers), variables))


def _size(size: UOp, kernel: LinearKernel, variables: Mapping[str, int]) -> int:
    known = {
        node: variables[node.arg.name] for node in kernel.uops if node.op is ops.VAR and isinstance(node.arg, VarArg)
    }
    value = evaluate(size, known)
    assert isinstance(value, int)
    return value


# --- what is known before running -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """Of each loop where it ends; of each accumulator its phi, by the loops that it runs over; what to drop where."""

    ends: dict[int, int]
    phis: dict[UOp, UOp]
    assigned: dict[UOp, list[UOp]]
    dropped: dict[int, list[UOp]]


def _plan(uops: Sequence[UOp]) -> _Plan:
    phis = {node.src[0]: node for node in uops if node.op is ops.PHI}
    assigned: dict[UOp, list[UOp]] = {}
    for accumulator in phis:
        for loop in accumulator.src[1:]:
            assigned.setdefault(loop, []).append(accumulator)
    ends = _ends(uops)
    return _Plan(ends, phis, assigned, _dropped(uops, ends))


def _ends(uops: Sequence[UOp]) -> dict[int, int]:
    """Where the loop that starts at a place ends."""
    stack: list[int] = []
    ends: dict[int, int] = {}
    for place, node in enumerate(uops):
        if node.op is ops.RANGE:
            stack.append(place)
        elif node.op is ops.ENDRANGE:
            ends[stack.pop()] = place
    return ends


def _dropped(uops: Sequence[UOp], ends: dict[int, int]) -> dict[int, list[UOp]]:
    """After which place each value is used no more: not before the end of a loop that it was made outside of.

    Constants stay: they are small, and renderers take them wherever they stand.
    """
    made: dict[UOp, int] = {}  # how many loops are open where the node stands
    last: dict[UOp, int] = {}
    opened: list[int] = []
    for place, node in enumerate(uops):
        if node.op is ops.RANGE:
            opened.append(place)
        for s in node.src:
            if s in made:
                last[s] = ends[opened[made[s]]] if len(opened) > made[s] else place
        if node.op is ops.PHI:  # its accumulator takes its value, and itself, when the loops end
            last[node] = last[node.src[0]] = ends[opened[made[node.src[0]]]]
        if node.op is ops.ENDRANGE:
            opened.pop()
        made[node] = made[node.src[0]] if node.op is ops.PHI else len(opened)
        last.setdefault(node, place)
    dropped: dict[int, list[UOp]] = {}
    for node, place in last.items():
        if node.op is not ops.CONST:
            dropped.setdefault(place, []).append(node)
    return dropped


# --- running ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Loop:
    """An open loop: where it starts, its step, and how many steps it has, for each thread if they differ."""

    place: int
    steps: Values
    most: int
    step: int = 0

    @property
    def differs(self) -> bool:
        return len(self.steps) > 1


@dataclass
class _Block:
    """Some groups of a launch, executed together."""

    kernel: LinearKernel
    plan: _Plan
    buffers: Sequence[Array]
    variables: Mapping[str, int]
    groups: Sequence[int]
    numbers: npt.NDArray[np.int64]  # of the groups
    values: dict[UOp, Values] = field(default_factory=dict)
    masks: list[Values] = field(default_factory=list)
    loops: list[_Loop] = field(default_factory=list)

    def __post_init__(self) -> None:
        per_group = math.prod(self.kernel.locals) * self.kernel.threads
        group = np.repeat(np.arange(len(self.numbers)), per_group)
        inside = np.tile(np.arange(per_group), len(self.numbers))
        self.memory = Memory(self.kernel.name, self.buffers, group, inside)

    def run(self) -> None:
        uops = self.kernel.uops
        place = 0
        while place < len(uops):
            node = uops[place]
            if node.op is ops.RANGE:
                place = self._open(node, place)
            elif node.op is ops.ENDRANGE:
                place = self._next_step(node.src[0], place)
            else:
                self._execute(node)
            for value in self.plan.dropped.get(place, ()):
                self.values.pop(value, None)
            place += 1

    # --- loops -------------------------------------------------------------------------------------------------------

    def _open(self, node: UOp, place: int) -> int:
        """Begins a loop, or goes to the end of one without steps. Returns the place that has been executed."""
        steps = self.values[node.src[0]]
        if len(steps) > 1 and (steps == steps[0]).all():
            steps = steps[:1]
        loop = _Loop(place, steps, int(steps.max()))
        if loop.most <= 0:
            return self.plan.ends[place]
        self.loops.append(loop)
        self._begin_step(node)
        return place

    def _begin_step(self, node: UOp) -> None:
        loop = self.loops[-1]
        self.values[node] = np.full((1, 1), loop.step, held_dtype(node.dtype))
        if loop.differs:
            self._enter(loop.step < loop.steps)

    def _next_step(self, node: UOp, place: int) -> int:
        """Ends a step: its accumulators take their new values, all at once."""
        for accumulator in self.plan.assigned.get(node, ()):
            self.values[accumulator] = self.values[self.plan.phis[accumulator]]
        loop = self.loops[-1]
        if loop.differs:
            self.masks.pop()
        loop.step += 1
        if loop.step >= loop.most:
            self.loops.pop()
            return place
        self._begin_step(node)
        return loop.place

    def _enter(self, gate: Values) -> None:
        self.masks.append(gate & self.masks[-1] if self.masks else gate)

    # --- nodes -------------------------------------------------------------------------------------------------------

    def _execute(self, node: UOp) -> None:
        op = node.op
        if op.elementwise:
            operands = [self.values[s] for s in node.src]
            source = node.src[-1].dtype if op is ops.WHERE else node.src[0].dtype
            self.values[node] = apply(op, source, node.dtype, operands)
        elif op is ops.LOAD:
            other = self.values[node.src[3]] if len(node.src) > 3 else None
            places = self._places(node.src[1], node.dtype.lanes)
            self.values[node] = self.memory.load(node, places, self._gate(node.src[2:3]), other)
        elif op is ops.STORE:
            places = self._places(node.src[1], node.src[2].dtype.lanes)
            self.memory.store(node, places, self.values[node.src[2]], self._gate(node.src[3:]))
        elif op is ops.IF:
            self._enter(self.values[node.src[0]])
        elif op is ops.ENDIF:
            self.masks.pop()
        elif op is ops.BARRIER:
            if self.masks and not self.masks[-1].all():
                raise DeviceError(f"{self.kernel.name}: a barrier stands in an if or loop that not all threads enter")
            self.memory.barrier()
        else:
            self._place(node)

    def _place(self, node: UOp) -> None:
        """What has no arithmetic: leaves, lanes, accumulators, buffers."""
        values = self.values
        match node.op:
            case ops.CONST:
                values[node] = np.full((1, node.dtype.lanes), node.arg, held_dtype(node.dtype.scalar))
            case ops.VAR:
                assert isinstance(node.arg, VarArg)
                values[node] = np.full((1, 1), self.variables[node.arg.name], held_dtype(node.dtype))
            case ops.SPECIAL:
                values[node] = self._special(node).reshape(-1, 1).astype(held_dtype(node.dtype))
            case ops.VECTORIZE:
                values[node] = np.concatenate(np.broadcast_arrays(*(values[s] for s in node.src)), axis=1)
            case ops.GEP:
                assert isinstance(node.arg, int)
                values[node] = values[node.src[0]][:, node.arg : node.arg + 1]
            case ops.DEFINE_ACC:
                values[node] = values[node.src[0]]
                values[self.plan.phis[node]] = values[node]  # which stays so if a loop has no steps
            case ops.PHI:
                values[node] = self._assigned(node)
            case ops.LOCAL:
                self.memory.allocate(node, len(self.numbers))
            case ops.BUFFER | ops.AFTER:
                pass
            case _:
                raise DeviceError(f"the interpreter cannot execute {node.op.name}; the rules should have lowered it")

    def _assigned(self, phi: UOp) -> Values:
        """The new value; the old one in threads that have left a loop."""
        old, new = (self.values[s] for s in phi.src)
        return np.where(self.masks[-1], new, old) if self.masks else new

    def _special(self, node: UOp) -> npt.NDArray[np.int64]:
        """The hardware index of every thread, dimension 0 fastest."""
        assert isinstance(node.arg, SpecialArg)
        kind, dim = node.arg
        inside = self.memory.inside
        if kind is ThreadKind.THREAD:
            return inside
        sizes: Sequence[int] = self.groups if kind is ThreadKind.GROUP else self.kernel.locals
        flat = self.numbers[self.memory.group] if kind is ThreadKind.GROUP else inside
        return np.asarray(flat // math.prod(sizes[:dim]) % sizes[dim])

    def _places(self, at: UOp, lanes: int) -> Values:
        """The elements that each thread and lane touches; a scalar index with several lanes: consecutive ones."""
        places = self.values[at].astype(np.int64)
        return places + np.arange(lanes) if places.shape[1] == 1 and lanes > 1 else places

    def _gate(self, own: Sequence[UOp]) -> Values | None:
        """Which threads take part: those inside the ifs and loops, and of the node's own gate if it has one."""
        mask = self.masks[-1] if self.masks else None
        if not own:
            return mask
        gate = self.values[own[0]]
        return gate if mask is None else gate & mask
