"""The value of any graph, loops, accumulators, lanes and memory included: the meaning that rules are checked against.

A graph is evaluated before it is lowered, so operators that no device executes have values too: `reduce`, `widen`,
`fold_lanes`, a `phi` with its loops around it. Loops bind their counter in a `Frame`; what does not vary in them is
evaluated once, outside. Where a value is undefined (semantics.md), so is what is computed from it; a gate that is false,
and the side of a scalar `where` that is not taken, are never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ..engine import evaluate as ev
from ..engine import facts, ops
from ..engine.dtypes import DType, Scalar
from ..engine.errors import GraphError
from ..engine.interpret import apply
from ..engine.ops import BufferArg, Op, RangeArg, VarArg
from ..engine.rewriting.support import INT64_LIMIT
from ..engine.uop import UOp, memory_of
from .reductions import combined
from .world import Cell, Effect, Frame, Lanes, Oracle, TooLong, Value, World, merged, same

INEXACT = frozenset({ops.EXP2, ops.LOG2, ops.SIN})
"""Operators that a device may compute with a small error."""

STEPS = 80
"""Loops beyond this many steps are not evaluated."""


class NoMeaning(GraphError):
    """The reference semantics does not know an operator: nothing can be said."""


class Evaluation:
    """Evaluates graphs in one world; `oracle` decides what the semantics leaves open."""

    def __init__(self, world: World, oracle: Oracle, *, payloads: bool = False) -> None:
        self.world, self.oracle = world, oracle
        self.payloads = payloads  # whether the bits of a NaN, which may be any, are those of the usual one
        self.too_large = False  # whether an index left the 64 bits that it must fit into in the end
        self.faulted = False  # whether an element outside of its buffer was read
        self.overflowed = False  # whether an infinity came of finite operands, and not of a division by zero
        self.top = Frame({}, {})

    def value(self, node: UOp) -> Lanes:
        """The lanes of a node with a value."""
        return self._run(node, self.top)

    def effect(self, node: UOp) -> Effect:
        """What a store, a sink or a barrier writes."""
        return self._effect(node, self.top)

    # --- values ------------------------------------------------------------------------------------------------------

    def _run(self, root: UOp, frame: Frame) -> Lanes:
        """The value of a node in a frame, computed from the operands up."""
        stack = [root]
        if frame.parent is None:
            known = frame.known
            while stack:
                node = stack[-1]
                if node not in known:
                    missing = [s for s in self._needed(node, frame) if s not in known]
                    if missing:
                        stack.extend(reversed(missing))
                        continue
                    known[node] = self._lanes(node, frame)
                stack.pop()
            return known[root]
        while stack:
            node = stack[-1]
            home = _home(node, frame)
            if node not in home.known:
                missing = [s for s in self._needed(node, frame) if s not in _home(s, frame).known]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                home.known[node] = self._lanes(node, frame)
            stack.pop()
        return _home(root, frame).known[root]

    def _needed(self, node: UOp, frame: Frame) -> tuple[UOp, ...]:
        """The operands that must have values before the node can be computed, as far as is known by now."""
        op, src = node.op, node.src
        if op is ops.WHERE and node.dtype.lanes == 1:
            condition = _home(src[0], frame).known.get(src[0])
            if condition is None:
                return src[:1]
            return src[:1] if condition[0] is None else (src[1],) if condition[0] else (src[2],)
        if op.elementwise or op in (ops.VECTORIZE, ops.GEP, ops.FOLD_LANES):
            return src
        if op is ops.LOAD:
            return src[1:]
        return ()

    def _lanes(self, node: UOp, frame: Frame) -> Lanes:
        op, dtype = node.op, node.dtype
        self.world.work += dtype.lanes
        if op.elementwise:
            return self._elementwise(node, frame)
        match op:
            case ops.CONST:
                assert isinstance(node.arg, bool | int | float)
                return (node.arg,) * dtype.lanes
            case ops.VAR:
                return self._variable(node)
            case ops.RANGE:
                return (self._counter(node, frame),)
            case ops.SPECIAL:
                end = self._run(node.src[0], frame)[0]
                return (self.world.read(("thread", node.arg), dtype, 0, max(0, (end or 1) - 1)),)
            case ops.VECTORIZE:
                return tuple(_home(s, frame).known[s][0] for s in node.src)
            case ops.GEP:
                assert isinstance(node.arg, int)
                return (_home(node.src[0], frame).known[node.src[0]][node.arg],)
            case ops.FOLD_LANES:
                return self._folded(node, _home(node.src[0], frame).known[node.src[0]])
            case ops.LOAD:
                return self._load(node, frame)
            case ops.REDUCE:
                return self._reduced(node, frame)
            case ops.DEFINE_ACC:
                return self._state(node, frame)
            case ops.PHI:
                return self._accumulated(node, frame)
            case ops.WIDEN:
                steps = self._steps((node.src[1],), frame)
                return tuple(lane for step in steps for lane in self._run(node.src[0], step))
        raise NoMeaning(f"{op.name} of type {dtype} has no value")

    def _elementwise(self, node: UOp, frame: Frame) -> Lanes:
        op, src, target = node.op, node.src, node.dtype.scalar
        if op is ops.WHERE and node.dtype.lanes == 1:
            condition = _home(src[0], frame).known[src[0]][0]
            taken = src[1] if condition else src[2]
            return (None,) if condition is None else _home(taken, frame).known[taken]
        source = src[-1].dtype.scalar
        if op in INEXACT:
            self.oracle.approximate = True
        operands = zip(*[_home(s, frame).known[s] for s in src], strict=True)
        if source.is_float and op in (ops.MAX, ops.MIN, ops.MULACC):
            return tuple(self._open(op, source, lane) for lane in operands)
        result = tuple(apply(op, source, target, *lane) for lane in operands)
        if op is ops.BITCAST and self.payloads and None in result:
            result = tuple(map(_nan_cast, [source] * len(result), self._known(src[0], frame), [target] * len(result)))
        if target.kind == "index" and any(v is not None and not -INT64_LIMIT <= v < INT64_LIMIT for v in result):
            self.too_large = True
        if target.is_float and any(v is not None and math.isinf(v) for v in result):
            self.overflowed = self.overflowed or _overflows(node, result, frame)
        return result

    def _known(self, node: UOp, frame: Frame) -> Lanes:
        return _home(node, frame).known[node]

    def _open(self, op: Op, dtype: DType, operands: tuple[Value, ...]) -> Value:
        """An operator on floats whose result the semantics does not fix entirely."""
        first = apply(op, dtype, dtype, *operands)
        if first is None:
            return None
        if op is ops.MULACC:
            return self.oracle.choose(_mulacc(dtype, first, operands))
        a, b = operands
        if a == 0 == b and not same(a, b):
            return self.oracle.choose((0.0, -0.0))
        return first

    def _variable(self, node: UOp) -> Lanes:
        low, high = facts.interval(node) if not node.dtype.is_float else (float("-inf"), float("inf"))
        if isinstance(node.arg, VarArg):
            low, high = node.arg.low, node.arg.high
        name = node.arg.name if isinstance(node.arg, VarArg) else node.arg
        if node.dtype.lanes == 1:
            return (self.world.read(("variable", name, 0), node.dtype, low, high),)
        return tuple(
            self.world.read(("variable", name, lane), node.dtype.scalar, low, high) for lane in range(node.dtype.lanes)
        )

    def _folded(self, node: UOp, lanes: Lanes) -> Lanes:
        width, scalar = node.dtype.lanes, node.dtype.scalar
        assert isinstance(node.arg, Op)
        return tuple(combined(node.arg, scalar, lanes[k::width], None, self.oracle) for k in range(width))

    # --- loops -------------------------------------------------------------------------------------------------------

    def _counter(self, node: UOp, frame: Frame) -> Value:
        assert isinstance(node.arg, RangeArg)
        bound = frame.axes.get(node.arg.axis)
        if bound is not None:
            return node.dtype.canonical(bound)
        end = self._run(node.src[0], frame)[0]
        if end is None or end <= 0:
            return None  # the loop has no step
        return self.world.read(("axis", node.arg.axis), node.dtype, 0, end - 1)

    def _steps(self, ranges: tuple[UOp, ...], frame: Frame) -> Iterator[Frame]:
        """A frame for each step of nested loops, the first range the outermost."""
        for taken, axes in enumerate(self._axes(ranges, frame)):
            if taken >= STEPS:
                raise TooLong
            yield frame.inside(axes)

    def _axes(self, ranges: tuple[UOp, ...], frame: Frame) -> Iterator[dict[int, int]]:
        if not ranges:
            yield {}
            return
        first = ranges[0]
        assert isinstance(first.arg, RangeArg)
        end = self._run(first.src[0], frame)[0]
        for step in range(min(int(end or 0), STEPS + 1)):
            here = {first.arg.axis: step}
            for inner in self._axes(ranges[1:], frame.inside(here) if ranges[1:] else frame):
                yield {**here, **inner}

    def _reduced(self, node: UOp, frame: Frame) -> Lanes:
        reducer, dtype = node.arg, node.dtype
        assert isinstance(reducer, Op)
        start: Scalar | None = ops.identity_of(reducer, dtype)
        if dtype.kind == "index" and isinstance(start, float):
            start = None  # no index is the greatest: without steps the result is undefined
        rows = [self._run(node.src[0], step) for step in self._steps(node.src[1:], frame)]
        return tuple(
            combined(reducer, dtype.scalar, tuple(row[k] for row in rows), start, self.oracle)
            for k in range(dtype.lanes)
        )

    def _state(self, node: UOp, frame: Frame) -> Lanes:
        """What an accumulator holds: inside its loops its state, without loops what it starts with."""
        state = frame.states.get(node.arg)
        if state is not None:
            return state
        if len(node.src) == 1:
            return self._run(node.src[0], frame)
        places = [("state", node.arg, lane) for lane in range(node.dtype.lanes)]
        low, high = facts.interval(node) if not node.dtype.is_float else (float("-inf"), float("inf"))
        return tuple(self.world.read(place, node.dtype.scalar, low, high) for place in places)

    def _accumulated(self, node: UOp, frame: Frame) -> Lanes:
        """A phi: inside its loops the new value, outside what the accumulator holds when they are done."""
        accumulator, new = node.src
        if accumulator.op is not ops.DEFINE_ACC:  # it had no loops, and became what it starts with
            return self._run(new, frame)
        ranges = accumulator.src[1:]
        open_ = [r for r in ranges if isinstance(r.arg, RangeArg) and r.arg.axis not in frame.axes]
        if accumulator.arg in frame.states and not open_:
            return self._run(new, frame)
        state = self._run(accumulator.src[0], frame)
        if not ranges:
            return self._run(new, frame.inside({}, {accumulator.arg: state}))
        for taken, axes in enumerate(self._axes(ranges, frame)):
            if taken >= STEPS:
                raise TooLong
            state = self._run(new, frame.inside(axes, {accumulator.arg: state}))
        return state

    # --- memory ------------------------------------------------------------------------------------------------------

    def _load(self, node: UOp, frame: Frame) -> Lanes:
        lanes = node.dtype.lanes
        operands = [_home(s, frame).known[s] for s in node.src[1:]]
        places = _consecutive(operands[0], lanes)
        gates = _spread(operands[1], lanes) if len(operands) > 1 else (True,) * lanes
        others = operands[2] if len(operands) > 2 else (node.dtype.canonical(0),) * lanes
        pointer, pending = self._memory(node.src[0], frame)
        found: list[Value] = []
        for at, gate, other in zip(places, gates, others, strict=True):
            if gate is None or pending is None:
                found.append(None)
            else:
                found.append(self._cell(pointer, at, pending) if gate else other)
        return tuple(found)

    def _memory(self, pointer: UOp, frame: Frame) -> tuple[UOp, Effect]:
        """The buffer behind a pointer, and what has been stored to it since the kernel began."""
        effects: list[Effect] = []
        while pointer.op is ops.AFTER:
            effects += [self._completed(barrier, frame) for barrier in pointer.src[1:]]
            pointer = pointer.src[0]
        return pointer, merged(iter(effects))

    def _cell(self, pointer: UOp, at: Value, pending: dict[Cell, Value]) -> Value:
        assert isinstance(pointer.arg, BufferArg) and pointer.dtype.element is not None
        if at is None or not 0 <= at or pointer.arg.size is not None and at >= pointer.arg.size:
            self.faulted = True
            return None
        cell = (pointer.op.name, pointer.arg.slot, int(at))
        if cell in pending:
            return pending[cell]
        return self.world.read(("cell", *cell), pointer.dtype.element)

    def _effect(self, node: UOp, frame: Frame) -> Effect:
        home = _home(node, frame)
        if node not in home.effects:
            match node.op:
                case ops.STORE:
                    home.effects[node] = self._stored(node, frame)
                case ops.SINK | ops.BARRIER:
                    home.effects[node] = merged(self._effect(s, frame) for s in node.src)
                case ops.WIDEN:
                    steps = self._steps((node.src[1],), frame)
                    home.effects[node] = merged(self._effect(node.src[0], step) for step in steps)
                case _:
                    raise GraphError(f"{node.op.name} stores nothing")
        return home.effects[node]

    def _stored(self, node: UOp, frame: Frame) -> Effect:
        pointer, value = memory_of(node.src[0]), node.src[2]
        lanes = value.dtype.lanes
        gates = _spread(self._run(node.src[3], frame), lanes) if len(node.src) > 3 else (True,) * lanes
        if None in gates:
            return None
        if not any(gates):
            return {}
        places = _consecutive(self._run(node.src[1], frame), lanes)
        values = self._run(value, frame)
        assert isinstance(pointer.arg, BufferArg)
        effects: list[Effect] = []
        for at, gate, lane in zip(places, gates, values, strict=True):
            if gate:
                outside = at is None or at < 0 or pointer.arg.size is not None and at >= pointer.arg.size
                effects.append(None if outside else {(pointer.op.name, pointer.arg.slot, int(at or 0)): lane})
        return merged(iter(effects))

    def _completed(self, barrier: UOp, frame: Frame) -> Effect:
        """What all steps of the loops have stored that a barrier waits for: those that a store's index varies in."""
        return merged(self._everywhere(store, frame) for store in barrier.src)

    def _everywhere(self, store: UOp, frame: Frame) -> Effect:
        while store.op is ops.WIDEN:
            return self._effect(store, frame)
        at = store.src[1]
        loops = tuple(n for n in facts_ranges(at) if isinstance(n.arg, RangeArg) and n.arg.axis not in frame.axes)
        return merged(self._effect(store, step) for step in self._steps(loops, frame))


def _overflows(node: UOp, result: Lanes, frame: Frame) -> bool:
    for k, value in enumerate(result):
        lanes = [_home(s, frame).known[s][k] for s in node.src]
        if value is not None and math.isinf(value) and all(v is not None and math.isfinite(v) for v in lanes):
            return not (node.op in (ops.DIV, ops.RECIP) and lanes[-1] == 0)
    return False


def facts_ranges(node: UOp) -> Iterator[UOp]:
    """The loop counters below a node, outermost numbers first."""
    from ..engine.uop import walk

    found = [n for n in walk(node) if n.op is ops.RANGE]
    return iter(sorted(found, key=lambda n: n.arg.axis if isinstance(n.arg, RangeArg) else 0))


def _home(node: UOp, frame: Frame) -> Frame:
    """The outermost frame in which the node has its value: loops that it does not vary in are left."""
    if frame.parent is None:
        return frame
    varies = facts.ranges(node)
    while frame.parent is not None and not varies & frame.bound and not frame.states:
        frame = frame.parent
    return frame


def _consecutive(places: Lanes, lanes: int) -> Lanes:
    """A scalar index of several lanes means consecutive elements."""
    if len(places) == lanes:
        return places
    first = places[0]
    return tuple(None if first is None else first + k for k in range(lanes))


def _spread(gates: Lanes, lanes: int) -> Lanes:
    return gates if len(gates) == lanes else gates * lanes


def _nan_cast(source: DType, value: Value, target: DType) -> Value:
    """A bitcast from or to a NaN, whose bits are taken to be those of the usual one."""
    if value is None or not source.is_float and not target.is_float:
        return apply(ops.BITCAST, source, target, value)
    if target.is_float:
        exact = ev.bitcast(source, value, target)
        return math.nan if exact is None else exact
    if value == value:
        return ev.bitcast(source, value, target)
    return target.canonical(
        {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000}.get(source.name, 0x7FF8 << 48)
    )


def _mulacc(dtype: DType, separate: Scalar, operands: tuple[Value, ...]) -> tuple[Scalar, ...]:
    """a * b + c rounded twice, and rounded once."""
    a, b, c = (Fraction(0) if value is None else value for value in operands)  # none is undefined
    try:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
    except (ValueError, OverflowError):
        return (separate,)
    if exact == 0:
        return (separate,)
    try:
        fused = dtype.canonical(float(exact))
    except OverflowError:
        return (separate,)
    return (separate,) if ev.same_value(separate, fused) else (separate, fused)
