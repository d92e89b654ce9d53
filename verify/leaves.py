"""What is put in the place of an atom: a description that can be changed until the guard holds, and the node it stands for.

A description is data. The first one that is drawn is arbitrary within what the atom's role and type allow; the search
in `verify.search` replaces it by another where a condition of the guard asks for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..engine import dtypes, ops
from ..engine.dtypes import DType, Scalar
from ..engine.ops import AxisKind, BufferArg, RangeArg, VarArg
from ..engine.uop import UOp, const, intern, make
from .choices import Choices
from .values import edges

TABLES = 40
"""Buffers from this number on hold what varies with a loop."""

LOOPS = (AxisKind.REDUCE, AxisKind.UNROLL, AxisKind.UPCAST, AxisKind.PARTIAL, AxisKind.LOOP)
LANES = (AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.PARTIAL)


@dataclass(frozen=True, slots=True)
class Variable:
    """`v * scale + offset`, where v is a variable between bounds that are included, or without bounds."""

    low: int | None = None
    high: int | None = None
    scale: int = 1
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    value: Scalar


@dataclass(frozen=True, slots=True)
class Varying:
    """Something that varies with the loops around it, or with the accumulators: which of several forms."""

    form: int


@dataclass(frozen=True, slots=True)
class Same:
    """The same node as another atom."""

    name: str


@dataclass(frozen=True, slots=True)
class Loop:
    """A range; `symbolic`: its end is a variable of which only the bound is known."""

    steps: int
    kind: AxisKind = AxisKind.REDUCE
    symbolic: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer of so many elements."""

    size: int


@dataclass(frozen=True, slots=True)
class Accumulator:
    """An accumulator over loops of these lengths, that starts at a variable."""

    loops: tuple[Loop, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A store of a variable at a variable place."""

    gated: bool


Leaf = Variable | Constant | Varying | Same | Loop | Memory | Accumulator | Stored


# --- first descriptions -----------------------------------------------------------------------------------------------

SMALL_BOUNDS = ((0, 7), (-4, 9), (0, 0), (0, 1), (1, 9), (-8, -1), (0, 15), (3, 20), (-1, 1), (0, 63), (-130, 130))
STEPS = (3, 2, 1, 4, 0, 5)
SIZES = (16, 64, 4, 8, 1)


def first_constant(choices: Choices, dtype: DType) -> Constant:
    """A constant: mostly one of the simplest."""
    values = edges(dtype.scalar)
    return Constant(values[choices.below(min(10, len(values)))] if choices.rarely(2) else choices.pick(values))


def first_variable(choices: Choices, dtype: DType, bounded: bool, size: int | None) -> Variable | Constant:
    """A variable, with bounds where they matter; `size`: it is the index of a buffer with so many elements."""
    whole = dtype.kind in ("index", "sint", "uint")
    if size is not None and whole:
        low, high = choices.pick(((0, size - 1), (-2, size + 1), (0, size // 2), (0, 0), (size, size + 3)))
        return Variable(*_clipped(dtype, low, high))
    if choices.rarely(9):
        return first_constant(choices, dtype)
    if whole and (bounded or choices.rarely(3)):
        return Variable(*_clipped(dtype, *choices.pick(SMALL_BOUNDS)))
    return Variable()


def _clipped(dtype: DType, low: int, high: int) -> tuple[int, int]:
    """Bounds within a type."""
    if not dtype.is_int:
        return low, high
    lowest, highest = int(dtype.lowest), int(dtype.highest)
    return min(max(low, lowest), highest), min(max(high, lowest), highest)


def first_loop(choices: Choices) -> Loop:
    kind = choices.pick(LOOPS) if choices.rarely(2) else AxisKind.REDUCE
    if kind in LANES:
        return Loop(choices.pick((2, 4, 3, 1)), kind)
    return Loop(choices.pick(STEPS), kind, choices.rarely(8))


def first_upcast(choices: Choices) -> Loop:
    """A range that `widen` may have: its steps are lanes."""
    return Loop(choices.pick((2, 4, 3, 1)), choices.pick(LANES))


# --- nodes ------------------------------------------------------------------------------------------------------------


def variable(name: str, dtype: DType, leaf: Variable) -> UOp:
    """`v * scale + offset`, without what does nothing."""
    if leaf.low is None or leaf.high is None:
        node = make(ops.VAR, dtype=dtype, arg=name)
    else:
        node = make(ops.VAR, dtype=dtype, arg=VarArg(name, *_clipped(dtype, leaf.low, leaf.high)))
    if leaf.scale != 1:
        node = make(ops.MUL, node, const(dtype, leaf.scale))
    return make(ops.ADD, node, const(dtype, leaf.offset)) if leaf.offset else node


def loop(axis: int, leaf: Loop) -> UOp:
    end = const(dtypes.index, leaf.steps)
    if leaf.symbolic:
        end = make(ops.VAR, dtype=dtypes.index, arg=VarArg(f"n{axis}", 0, leaf.steps))
    return make(ops.RANGE, end, arg=RangeArg(axis, leaf.kind))


def buffer(number: int, pointer: DType, size: int) -> UOp:
    op = ops.LOCAL if pointer.space == "local" else ops.BUFFER
    return intern(op, pointer, (), BufferArg(number, size))


def accumulator(name: str, number: int, dtype: DType, loops: tuple[UOp, ...], start: UOp | None = None) -> UOp:
    """An accumulator; the reduction that it belongs to only gives it its identity."""
    summand = make(ops.VAR, dtype=dtype, arg=f"{name}_summand{number}")
    identity = intern(ops.REDUCE, dtype, (summand, *loops), ops.ADD)
    begin = start if start is not None else make(ops.VAR, dtype=dtype, arg=f"{name}_start")
    return intern(ops.DEFINE_ACC, dtype, (begin, *loops), identity)


def varying(name: str, number: int, dtype: DType, form: int, loops: Sequence[UOp], states: Sequence[UOp]) -> UOp:
    """One of the ways in which a value may depend on the loops and accumulators around it."""
    free = make(ops.VAR, dtype=dtype, arg=name)
    matching = [state for state in states if state.dtype is dtype]
    if matching and form % 2:
        return _of_state(free, matching[-1], form // 2, dtype)
    loops = [one for one in loops if one.dtype.kind == "index"]
    if not loops:
        return free
    place = _place(loops)
    if form % 3 == 1 and dtype.lanes == 1 and dtype.kind != "bool":
        return _of_counter(loops[0] if form % 2 else place, free, form // 3, dtype)
    return table(TABLES + number, dtype, place, loops)


def _of_state(free: UOp, state: UOp, form: int, dtype: DType) -> UOp:
    if form % 4 == 0:
        return state
    if dtype.kind == "bool":
        return make(ops.XOR, state, free)
    if form % 4 == 1:
        return make(ops.ADD, state, free)
    if form % 4 == 2:
        return make(ops.ADD, make(ops.MUL, state, const(dtype, 2)), free)
    return make(ops.MAX, state, free)


def _of_counter(counter: UOp, free: UOp, form: int, dtype: DType) -> UOp:
    own = counter if dtype.kind == "index" else make(ops.CAST, counter, dtype=dtype)
    if form % 4 == 0:
        return own
    if form % 4 == 1:
        return make(ops.ADD, own, free)
    if form % 4 == 2:
        return make(ops.ADD, make(ops.MUL, own, const(dtype, 3)), free)
    return make(ops.MUL, own, const(dtype, -1)) if dtype.kind != "uint" else own


def _place(loops: Sequence[UOp]) -> UOp:
    """A number that is different at every step of the loops."""
    place = loops[0]
    for inner in loops[1:]:
        place = make(ops.ADD, make(ops.MUL, place, const(dtypes.index, 8)), inner)
    return place


def table(slot: int, dtype: DType, place: UOp, loops: Sequence[UOp]) -> UOp:
    """Any value at each step: loaded from a buffer of its own."""
    held = dtypes.int64 if dtype.kind == "index" else dtype.scalar
    size = 8 ** len(loops) * dtype.lanes
    memory = intern(ops.BUFFER, held.ptr("global"), (), BufferArg(slot, size))
    if dtype.lanes > 1:
        place = make(ops.MUL, place, const(dtypes.index, dtype.lanes))
    loaded = make(ops.LOAD, memory, place, dtype=held.vec(dtype.lanes))
    return make(ops.CAST, loaded, dtype=dtype) if dtype.kind == "index" else loaded


def store(name: str, number: int, leaf: Stored) -> UOp:
    """A store into a buffer of its own, or of all stores, so that two may meet."""
    memory = intern(ops.BUFFER, dtypes.int32.ptr("global"), (), BufferArg(TABLES - 1 - number % 2, 8))
    at = make(ops.VAR, dtype=dtypes.index, arg=VarArg(f"{name}_at{number}", 0, 7))
    value = make(ops.VAR, dtype=dtypes.int32, arg=f"{name}{number}")
    gate = [make(ops.VAR, dtype=dtypes.bool_, arg=f"{name}_gate{number}")] if leaf.gated else []
    return make(ops.STORE, memory, at, value, *gate)


# --- what a condition may ask for -------------------------------------------------------------------------------------


def alternatives(leaf: Leaf, dtype: DType, pool: Sequence[int], can_vary: bool) -> list[Leaf]:
    """Other descriptions of an atom, built from the numbers that a condition mentions."""
    match leaf:
        case Loop():
            steps = [n for n in dict.fromkeys([*STEPS, *pool]) if 0 <= n <= 20]
            fixed: list[Leaf] = [Loop(n, kind) for kind in LOOPS for n in steps if n or kind not in LANES]
            return fixed + [Loop(n, kind, True) for kind in LOOPS if kind not in LANES for n in steps]
        case Memory():
            return [Memory(n) for n in dict.fromkeys([*SIZES, *pool]) if 1 <= n <= 4096]
        case Variable() | Constant() | Varying():
            return _other_values(dtype, pool, can_vary)
        case _:
            return []


def _other_values(dtype: DType, pool: Sequence[int], can_vary: bool) -> list[Leaf]:
    found: list[Leaf] = [Variable(), *(Varying(form) for form in range(3 if can_vary else 0))]
    if dtype.kind == "bool" or dtype.is_float:
        return [*found, Constant(dtype.canonical(1)), Constant(dtype.canonical(0))]
    low, high = (-math.inf, math.inf) if dtype.kind == "index" else (dtype.lowest, dtype.highest)
    numbers = [n for n in pool if low <= n <= high][:14]
    found += [Variable(a, b) for a in numbers for b in numbers if a <= b]
    for scale in numbers:
        if abs(scale) > 1:
            found.append(Variable(0, 5, scale) if dtype.is_int else Variable(None, None, scale))
            found.append(Variable(-3, 9, scale) if dtype.kind != "uint" else Variable(1, 2, scale))
            found += [Variable(0, 3, scale, offset) for offset in numbers[:4] if offset]
    found += [Constant(n) for n in numbers]
    return found
