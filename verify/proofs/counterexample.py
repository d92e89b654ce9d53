"""Whether a case that the solver found is one: both sides in the reference semantics, with plain numbers."""

from __future__ import annotations

from ...engine.dtypes import Scalar, index
from ...engine.evaluate import same_value
from ...engine.language.syntax import Instance
from .domain import Buffer, Concrete, Lane
from .exact import Unsupported
from .goals import expected_type, right_side
from .guards import Guard
from .shapes import Shape
from .sides import Effect, Impossible, Result, Sides, Value
from .solver import Case


def confirmed(instance: Instance, shape: Shape, case: Case) -> str | None:
    """The case in words, with both results; None where the sides agree after all, or cannot be computed."""
    domain = Concrete(case.values, case.memory, case.sizes)
    sides = Sides(domain, shape, dict(instance.bindings))
    sides.formula = Guard(sides, domain)
    try:
        left = sides.term(instance.left, expected_type(instance.left, shape))
        right = right_side(sides, instance, left)
        if any(lane.term is None for lane in sides.computed) or domain.too_large:
            return None
        before, after = _shown(left, domain), _shown(right, domain)
    except (Unsupported, Impossible):
        return None
    if not _is_wrong(before, after, bool(shape.flags & {"nsz", "reassoc"})):
        return None
    names = [f"{name} = {_text(value)}" for name, value in sorted(case.values.items()) if "!" not in name]
    names += [f"size({name}) = {size}" for name, size in sorted(case.sizes.items())]
    where = ", ".join(names) or "always"
    return f"{where}: before {_listed(before)}, after {_listed(after)} ({shape})"


def _is_wrong(before: list[Scalar | None], after: list[Scalar | None], any_zero: bool) -> bool:
    if len(before) != len(after):
        return True
    for a, b in zip(before, after, strict=True):
        if a is None:
            continue
        if b is None or not same_value(a, b) and not (any_zero and a == b == 0):
            return True
    return False


def _shown(result: Result, domain: Concrete) -> list[Scalar | None]:
    """The lanes of a value; of stores the element at each place that one of them writes, in the order of places."""
    if isinstance(result, Value):
        return [lane.term for lane in result.lanes]
    if isinstance(result, tuple):
        return _after(result, domain)
    raise Unsupported("a side without a value")


def _after(effect: Effect, domain: Concrete) -> list[Scalar | None]:
    written: dict[tuple[str, int], Scalar | None] = {}
    for write in effect:
        if write.gate.term is None:
            return [None]
        if not write.gate.term:
            continue
        place = None if write.at.term is None else write.at.term + write.offset
        if place is None or write.value.term is None or not 0 <= place < domain.sizes.get(write.buffer.name, 0):
            return [None]
        written[write.buffer.name, place] = write.value.term
    unchanged = {key: domain.load(write_buffer(effect, key[0]), Lane(key[1], True), index, 0).term for key in written}
    kept = {key: value for key, value in written.items() if value != unchanged[key]}
    return [part for (_, place), value in sorted(kept.items()) for part in (place, value)]


def write_buffer(effect: Effect, name: str) -> Buffer:
    """The buffer of this name."""
    return next(write.buffer for write in effect if write.buffer.name == name)


def _listed(values: list[Scalar | None]) -> str:
    return ", ".join(map(_text, values)) or "nothing is changed"


def _text(value: Scalar | None) -> str:
    if value is None:
        return "undefined"
    return repr(value).lower() if isinstance(value, bool) else repr(value)
