"""What a reduction may give: the semantics does not say in which order floats are added up, nor in which precision halves are.

Every order is a binary tree over the values and the start. For few values all trees are tried; for many only some, and
any rounding is then accepted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

from ..engine import ops
from ..engine.dtypes import DType, Scalar, float32
from ..engine.evaluate import same_value
from ..engine.interpret import apply
from ..engine.ops import Op
from .world import Oracle, TooLong, Value, distinct

ALL_TREES = 4
"""Up to so many operands, the start included if there is one, every order is tried."""


def combined(op: Op, dtype: DType, values: Sequence[Value], start: Scalar | None, oracle: Oracle) -> Value:
    """The values brought together by a reducer; None if one of them is undefined."""
    operands = list(values) if start is None else [start, *values]
    if None in operands or not operands:
        return None
    known = [value for value in operands if value is not None]
    if not dtype.is_float:
        return reduce(lambda a, b: _step(op, dtype, a, b), known)
    if op in (ops.MAX, ops.MIN):
        result = reduce(lambda a, b: _step(op, dtype, a, b), known)
        zeros = distinct([value for value in known if value == 0])
        return oracle.choose(zeros) if result == 0 and len(zeros) > 1 else result
    return oracle.choose(_orders(op, dtype, known, oracle))


def _step(op: Op, dtype: DType, a: Scalar, b: Scalar) -> Scalar:
    result = apply(op, dtype, dtype, a, b)
    assert result is not None
    return result


def _orders(op: Op, dtype: DType, values: list[Scalar], oracle: Oracle) -> list[Scalar]:
    """The results of all orders, that from left to right first."""
    first = reduce(lambda a, b: _step(op, dtype, a, b), values)
    if len(values) <= 2 or all(same_value(value, values[0]) for value in values) and not math.isfinite(first):
        return [first]
    if len(values) > ALL_TREES:
        if not _is_exact(op, dtype, values):
            if op is ops.MUL:
                raise TooLong  # a part that overflows or vanishes decides, and which part depends on the order
            oracle.unordered = True
            backwards = reduce(lambda a, b: _step(op, dtype, a, b), reversed(values))
            return distinct([first, backwards, *_wider(op, dtype, values)])
        return [first]
    trees: dict[frozenset[int], list[Scalar]] = {frozenset({k}): [value] for k, value in enumerate(values)}
    everything = frozenset(range(len(values)))
    return distinct([first, *_trees(op, dtype, everything, trees), *_wider(op, dtype, values)])


def _trees(op: Op, dtype: DType, members: frozenset[int], done: dict[frozenset[int], list[Scalar]]) -> list[Scalar]:
    """The results of every tree over some of the values."""
    if members not in done:
        ordered = sorted(members)
        results: list[Scalar] = []
        for bits in range(1 << (len(ordered) - 1)):  # the first member is always on the left
            left = frozenset([ordered[0], *(m for k, m in enumerate(ordered[1:]) if bits >> k & 1)])
            if left != members:
                for a in _trees(op, dtype, left, done):
                    results += [_step(op, dtype, a, b) for b in _trees(op, dtype, members - left, done)]
        done[members] = distinct(results)
    return done[members]


def _wider(op: Op, dtype: DType, values: list[Scalar]) -> list[Scalar]:
    """Of a 16-bit type: accumulated in float32, rounded at the end."""
    if dtype.bits != 16:
        return []
    return [dtype.canonical(reduce(lambda a, b: _step(op, float32, a, b), values))]


def _is_exact(op: Op, dtype: DType, values: list[Scalar]) -> bool:
    """Whether every order gives the same, since no step rounds: whole numbers whose sums have few digits."""
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.name]
    if op is not ops.ADD or not all(math.isfinite(v) and v == int(v) for v in values):
        return False
    return sum(abs(v) for v in values) <= 1 << digits
