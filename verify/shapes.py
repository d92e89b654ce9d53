"""The types that an instance may have: for each name its type with its lanes, how long each `...xs` is.

What the left side fixes comes from the language's type inference; what it leaves open is tried out. A choice is kept
if the operators accept the graph that it makes and the conditions on types hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any

from ..engine import dtypes
from ..engine.dtypes import DType, Kind
from ..engine.language.syntax import Instance, OnType, Rule
from ..engine.language.types import NameType, NameTypes, TypeConflict, name_types
from .atoms import Pattern, Role

OF_KIND: dict[Kind, tuple[DType, ...]] = {
    "index": (dtypes.index,),
    "bool": (dtypes.bool_,),
    "sint": (dtypes.int32, dtypes.int8, dtypes.int64, dtypes.int16),
    "uint": (dtypes.uint8, dtypes.uint32, dtypes.uint64, dtypes.uint16),
    "float": (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16),
    "void": (dtypes.void,),
}
TRIED = 240
"""Choices of types tried for an instance."""

HOPELESS = 130
"""If none of so many works, none will."""

KEPT = 16
"""Of which so many that work are enough."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One choice of types."""

    names: dict[str, DType]  # of values and constants with their lanes, of buffers the pointer
    types: dict[str, DType]  # of names for types
    lengths: dict[str, int]  # of each `...xs`, and of each `for k in 0..n` the n


def admitted(rule: Rule, instance: Instance) -> list[tuple[DType, frozenset[str]]]:
    """The types that the rule works in, each with the float flags that it needs there."""
    found: dict[tuple[DType, frozenset[str]], None] = {}
    kinds: tuple[Kind, ...] = ("index", "sint", "uint", "bool", "float", "void")
    listed = [(one.name, frozenset(one.flags)) for one in rule.on] or [(kind, frozenset[str]()) for kind in kinds]
    for name, flags in listed:
        for dtype in _of_class(name):
            if _inferred(instance, dtype) is not None:
                found[dtype, flags if dtype.is_float else frozenset()] = None
    return list(found)


def _of_class(name: str) -> tuple[DType, ...]:
    if name == "int":
        return (*OF_KIND["sint"], *OF_KIND["uint"])
    for kind, members in OF_KIND.items():
        if kind == name:
            return members
    return (dtypes.by_name(name),)


def _inferred(instance: Instance, dtype: DType) -> NameTypes | None:
    """What the left side fixes if the rule works in `dtype`; None if it cannot."""
    alone = replace(instance, right=instance.left, lets=())
    if dtype is dtypes.void:
        try:
            return _if_void(name_types(alone, ()))
        except TypeConflict:
            return None
    try:
        return name_types(alone, (OnType(dtype.name, (), instance.left.span),))
    except TypeConflict:
        return None


def _if_void(types: NameTypes) -> NameTypes | None:
    return types if types.root.kinds == frozenset({"void"}) else None


def choices_of_types(
    instance: Instance, pattern: Pattern, dtype: DType, numbers: Sequence[int], named: Sequence[DType]
) -> Iterator[Shape]:
    """Every choice of what the left side leaves open, the simplest first; most of them make no graph."""
    inferred = _inferred(instance, dtype)
    if inferred is None:
        return
    known = {n: t for n, t in inferred.names.items() if n in pattern.atoms and not pattern.atoms[n].several}
    lanes = {t.lane: t for t in known.values()} | {t.lane: t for t in inferred.types.values()}
    held = {t.element.lane: t.element for t in known.values() if t.element is not None}
    lanes |= held
    counted = {n: t for n, t in known.items() if pattern.atoms[n].role in (Role.VALUE, Role.CONSTANT)}
    counts = {t.count: t for t in counted.values()}
    widths = list(dict.fromkeys([1, 2, 4, 3, *(n for n in numbers if 2 <= n <= 16)]))
    lengths = {a.name: [1, 2, 0] for a in pattern.atoms.values() if a.several}
    lengths |= {name: [2, 4, 3] for name in pattern.counts}
    kinds = [(lane, _dtypes(t, [*named, dtype], lane in held)) for lane, t in lanes.items()]
    sizes = [(count, widths if t.lanes is None else [t.lanes]) for count, t in counts.items()]
    for chosen in _spread([*(some for _, some in kinds), *(some for _, some in sizes), *lengths.values()]):
        types, rest = chosen[: len(kinds)], chosen[len(kinds) :]
        dtype_of = dict(zip([lane for lane, _ in kinds], types, strict=True))
        width_of = dict(zip([count for count, _ in sizes], rest[: len(sizes)], strict=True))
        yield Shape(
            {name: _full(t, dtype_of, width_of) for name, t in known.items()},
            {name: dtype_of[t.lane] for name, t in inferred.types.items()},
            dict(zip(lengths, rest[len(sizes) :], strict=True)),
        )


def _spread(options: Sequence[Sequence[Any]]) -> Iterator[list[Any]]:
    """Combinations of the options: first the first of each, then some that differ in everything; all, if they are few."""
    total = prod(map(len, options))
    step = int(total * 0.618) | 1
    while gcd(step, total) != 1:
        step += 2
    for number in range(min(total, TRIED)):
        place, chosen = number * step % total, []
        for some in options:
            chosen.append(some[place % len(some)])
            place //= len(some)
        yield chosen


def _dtypes(t: NameType, likely: Sequence[DType], held: bool) -> list[DType]:
    """The types that a lane may have, the likely ones first; `held` in memory, where an index cannot stand."""
    if t.dtype is not None:
        return [t.dtype]
    if t.kinds == frozenset({"pointer"}):
        return [dtypes.void]  # found by its element
    found = [one for kind, some in OF_KIND.items() if kind in t.kinds and kind != "void" for one in some]
    first = [one for one in likely if one in found]
    return [one for one in dict.fromkeys([*first, *found]) if one is not dtypes.index or not held]


def _full(t: NameType, dtype_of: dict[int, DType], width_of: dict[int, int]) -> DType:
    if t.element is not None:
        return dtype_of[t.element.lane].ptr("global")
    dtype = dtype_of[t.lane]
    return dtype if dtype.kind == "void" else dtype.vec(width_of.get(t.count, 1))
