"""A counterexample: where a rule changes a value, as small as it can be made, and as text to read and to paste."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..engine import dtypes, ops
from ..engine.dtypes import Scalar
from ..engine.ops import AxisKind, BufferArg, RangeArg, VarArg
from ..engine.printing import expression, literal
from ..engine.target import Context
from ..engine.uop import UOp, walk
from .comparison import Difference, difference
from .world import Effect, Lanes, Place, World

TRIES = 160
"""Worlds tried to make the values of a counterexample simpler."""


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An instance of a rule's left side, what the rule made of it, and values for which they differ."""

    before: UOp
    after: UOp
    context: Context
    values: tuple[tuple[str, str], ...]  # of what both sides read: a name, and its value
    left: str  # what each side gives
    right: str
    problem: str = ""  # what is wrong if it is not a value: the result is not well formed

    @property
    def keep(self) -> str:
        """The line to put beside the rule: it fails until the rule leaves this term alone."""
        given = ", ".join(_given(self.before, self.context))
        return f"keep {expression(self.before)}" + (f" given {given}" if given else "")

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {value}" for name, value in self.values)
        lines = [f"{expression(self.before)}", f"  becomes {expression(self.after)}"]
        if self.problem:
            lines.append(f"  {self.problem}")
        else:
            at = f"at {values}: " if values else ""
            lines.append(f"  {at}{self.left} before, {self.right} after")
        return "\n".join([*lines, f"  {self.keep}"])


def found(before: UOp, after: UOp, context: Context, world: World, seen: Difference) -> Counterexample:
    """The counterexample at this world, its values made as simple as they can be."""
    world, seen = _simplified(before, after, context, world, seen)
    values = tuple((_named(place), _text(value)) for place, value in world.seen.items())
    return Counterexample(before, after, context, values, _shown(seen.left, before), _shown(seen.right, after))


def malformed(before: UOp, after: UOp, context: Context, problem: str) -> Counterexample:
    return Counterexample(before, after, context, (), "", "", problem)


# --- making it small --------------------------------------------------------------------------------------------------


def _simplified(before: UOp, after: UOp, context: Context, world: World, seen: Difference) -> tuple[World, Difference]:
    tries = TRIES
    for place in list(world.seen):
        for simpler in _simpler(world.seen[place]) if place in world.seen else ():
            if tries == 0:
                return world, seen
            tries -= 1
            other = World(world.draw, {**world.seen, place: simpler})
            here = difference(before, after, other, context.flags)
            if here is not None and _cost(other) < _cost(world):
                world, seen = other, here
                break
    return world, seen


def _simpler(value: Scalar) -> list[Scalar]:
    if isinstance(value, bool):
        return [False] if value else []
    if isinstance(value, float):
        return [v for v in (1.0, 0.0, 2.0, -1.0) if _weight(v) < _weight(value)]
    return [v for v in (0, 1, -1, 2, value // 2, value - 1) if _weight(v) < _weight(value)]


def _cost(world: World) -> tuple[int, float]:
    return len(world.seen), sum(map(_weight, world.seen.values()))


def _weight(value: Scalar) -> float:
    """How hard a value is to read."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int):
        return min(abs(value), 1000) + abs(value).bit_length() + (0.5 if value < 0 else 0)
    if not math.isfinite(value):
        return 30.0
    return {1.0: 0.0, 0.0: 1.0, 2.0: 2.0, -1.0: 3.0}.get(value, 10.0 + len(repr(value))) + (value == 0) * (
        math.copysign(1, value) < 0
    )


# --- text -------------------------------------------------------------------------------------------------------------


def _named(place: Place) -> str:
    match place:
        case ("variable", name, 0):
            return str(name)
        case ("variable", name, lane):
            return f"{name}.{lane}"
        case ("axis", number):
            return f"r{number}"
        case ("cell", op, slot, index):
            return f"{'buffer' if op == 'buffer' else 'shared'}_{slot}[{index}]"
        case ("thread", arg):
            return str(arg)
        case _:
            return "the accumulator"


def _text(value: Scalar | None) -> str:
    return "undefined" if value is None else literal(value)


def _shown(result: Lanes | Effect, node: UOp) -> str:
    if isinstance(result, tuple):
        return ", ".join(map(_text, result)) if len(result) == 1 else f"({', '.join(map(_text, result))})"
    if result is None:
        return "an undefined access"
    cells = ", ".join(f"{_named(('cell', *cell))} = {_text(value)}" for cell, value in sorted(result.items(), key=str))
    return f"stores {cells}" if cells else "stores nothing"


def _given(graph: UOp, context: Context) -> list[str]:
    """The assumptions of a `keep` line."""
    found: dict[str, str] = {}
    for node in walk(graph):
        match node.arg:
            case VarArg(name, low, high):
                typed = "" if node.dtype is dtypes.index else f": {node.dtype}"
                found[name] = f"{name}{typed} in {low}..{high + 1}"
            case str() if node.op is ops.VAR:
                found[node.arg] = f"{node.arg}: {node.dtype}"
            case BufferArg(slot, size):
                name, form = (f"shared_{slot}", "local") if node.op is ops.LOCAL else (f"buffer_{slot}", "buffer")
                found[name] = f"{name}: {form}[{node.dtype.element}, {size}]"
            case RangeArg(axis, kind):
                form = "range" if kind is AxisKind.LOOP else kind.value
                found[f"r{axis}"] = f"r{axis}: {form}[{expression(node.src[0])}]"
    given = list(found.values())
    target = [*sorted(context.target.features), *map(str, context.target.widths)]
    given += [f"target({', '.join(target)})"] if target else []
    return given + ([f"flags({', '.join(sorted(context.flags))})"] if context.flags else [])
