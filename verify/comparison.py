"""Does what a rule made have the value of what it was made from, in one world: bit for bit, unless a flag says otherwise.

Where the semantics leaves something open, both sides have several outcomes, and each of the right side must be one of
the left side's. Where the left side is undefined, the right may be anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..engine.dtypes import DType
from ..engine.uop import UOp
from .reference import Evaluation
from .world import Effect, Lanes, Oracle, TooLong, Value, World, same

OUTCOMES = 24
"""Ways through what the semantics leaves open that are followed."""

LOOSE = frozenset({"reassoc", "contract", "arcp", "afn"})
"""Flags that allow another rounding."""

_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


@dataclass(frozen=True, slots=True)
class Difference:
    """What each side gives: a value, its lanes, or what is stored."""

    left: Lanes | Effect
    right: Lanes | Effect


@dataclass(frozen=True, slots=True)
class _Outcomes:
    results: list[Lanes | Effect]
    loose: bool  # not all outcomes are listed, or an operator is not exact
    unordered: bool  # the orders of a reduction are not all listed
    values: list[Value]  # of all parts that are computed once
    too_large: bool  # an index left its 64 bits: no kernel has such a value
    overflowed: bool


def difference(left: UOp, right: UOp, world: World, flags: frozenset[str]) -> Difference | None:
    """How the sides differ in this world; None if they agree, or if the left side is undefined."""
    try:
        before = _outcomes(left, world)
        if before.too_large or not _granted(before, world, flags):
            return None
        after = _outcomes(right, world, payloads=True)
    except TooLong:
        return None
    if not _granted(before, world, flags):  # of what the right side reads besides
        return None
    judge = _Judge(left.dtype, flags, before, after, world)
    for result in after.results:
        if not judge.accepts(result):
            return Difference(before.results[0], result)
    return None


def _outcomes(graph: UOp, world: World, *, payloads: bool = False) -> _Outcomes:
    oracle = Oracle()
    results: list[Lanes | Effect] = []
    values: list[Value] = []
    too_large = overflowed = False
    while True:
        evaluation = Evaluation(world, oracle, payloads=payloads)
        result = evaluation.effect(graph) if graph.dtype.kind == "void" else evaluation.value(graph)
        results.append(_undefined(graph) if evaluation.faulted else result)
        values += [lane for lanes in evaluation.top.known.values() for lane in lanes]
        too_large, overflowed = too_large or evaluation.too_large, overflowed or evaluation.overflowed
        more = oracle.advance()
        if not more or len(results) >= OUTCOMES:
            loose = oracle.approximate or oracle.unordered or more
            return _Outcomes(results, loose, oracle.unordered, values, too_large, overflowed)


def _undefined(graph: UOp) -> Lanes | Effect:
    return None if graph.dtype.kind == "void" else (None,) * graph.dtype.lanes


def _granted(before: _Outcomes, world: World, flags: frozenset[str]) -> bool:
    """Whether what the flags promise holds: no NaN, no infinity, neither read nor computed by the left side."""
    if not flags & {"nnan", "ninf"}:
        return True
    floats = [v for v in (*world.seen.values(), *before.values) if isinstance(v, float)]
    if "nnan" in flags and any(math.isnan(v) for v in floats):
        return False
    return not ("ninf" in flags and any(math.isinf(v) for v in floats))


class _Judge:
    """Compares results of the right side with those of the left."""

    def __init__(self, dtype: DType, flags: frozenset[str], before: _Outcomes, after: _Outcomes, world: World) -> None:
        self.before = before
        self.nsz = "nsz" in flags
        self.reordered = "reassoc" in flags  # terms that cancel in another order may leave the other zero
        self.loose = bool(flags & LOOSE) or before.loose or after.loose
        read = [value for value in world.seen.values() if isinstance(value, float)]  # also inside of loops
        self.scale = _greatest([*before.values, *after.values, *read]) if self.loose else 0.0
        self.overflowed = before.overflowed or after.overflowed or before.unordered
        self.error = 16 * 2.0 ** -_DIGITS.get(dtype.scalar.name, 24) if dtype.is_float else 2.0**-8

    def accepts(self, result: Lanes | Effect) -> bool:
        if isinstance(result, tuple):
            return all(self._lane(value, k) for k, value in enumerate(result))
        return any(self._effect(result, allowed) for allowed in self.before.results)

    def _lane(self, value: Value, k: int) -> bool:
        allowed = [lanes[k] for lanes in self.before.results if isinstance(lanes, tuple)]
        return any(self._value(value, one) for one in allowed)

    def _effect(self, result: Effect, allowed: object) -> bool:
        if not isinstance(allowed, dict):
            return True
        if result is None or isinstance(result, tuple) or set(result) != set(allowed):
            return False
        return all(self._value(result[cell], value) for cell, value in allowed.items())

    def _value(self, value: Value, allowed: Value) -> bool:
        if allowed is None:
            return True
        if value is None:
            return False
        if same(value, allowed) or self.nsz and value == 0 == allowed:
            return True
        if not self.loose or not isinstance(value, float) or not isinstance(allowed, float):
            return False
        if not math.isfinite(value) or not math.isfinite(allowed):
            return self.overflowed
        if value == 0 == allowed:
            return self.reordered
        return abs(value - allowed) <= self.error * max(self.scale, abs(value), abs(allowed))


def _greatest(values: Iterable[Value]) -> float:
    return max((abs(v) for v in values if isinstance(v, int | float) and math.isfinite(v)), default=0.0)
