"""A strided, masked view: how an index tuple becomes a position in a buffer, and where it is valid.

An access has one or more views. The last one is the access's shape: an index tuple gives `offset + Σ i*stride` and is
valid inside `mask`. With several views that flat position is unravelled, row-major, over the shape of the view
before it, and so on down to the first; the access is valid where all of them are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..engine import dtypes, ops
from ..engine.uop import UOp, const, make
from .sizes import Dim, evaluate, product, to_uop

Mask = tuple[tuple[Dim, Dim], ...]


@dataclass(frozen=True, slots=True)
class View:
    """Shape and strides in elements; `mask` is a half-open interval for each axis, or None."""

    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0
    mask: Mask | None = None

    def bound(self, values: Mapping[str, int]) -> View:
        """The view with its symbolic sizes replaced by what they are for these values of the variables."""
        mask = None if self.mask is None else tuple((evaluate(a, values), evaluate(b, values)) for a, b in self.mask)
        shape = tuple(evaluate(size, values) for size in self.shape)
        strides = tuple(evaluate(stride, values) for stride in self.strides)
        return View(shape, strides, evaluate(self.offset, values), mask)


Views = tuple[View, ...]


def row_major(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Strides of a contiguous array."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def contiguous(shape: Sequence[Dim]) -> View:
    return View(tuple(shape), row_major(shape))


def _index(value: int) -> UOp:
    return const(dtypes.index, value)


def address(views: Views, at: Sequence[UOp]) -> tuple[UOp, UOp | None]:
    """The flat position of an index tuple of the last view, and the condition under which it is valid (None: always)."""
    gates: list[UOp] = []
    indices = list(at)
    position = _index(0)
    for number, view in enumerate(reversed(views)):
        if number:
            indices = _unravel(position, view.shape)
        gates += _inside(view, indices)
        position = _position(view, indices)
    gate: UOp | None = None
    for clause in gates:
        gate = clause if gate is None else make(ops.AND, gate, clause)
    return position, gate


def _position(view: View, at: Sequence[UOp]) -> UOp:
    position: UOp | None = None
    for index, stride, size in zip(at, view.strides, view.shape, strict=True):
        if stride == 0 or size == 1:
            continue
        term = index if stride == 1 else make(ops.MUL, index, to_uop(stride))
        position = term if position is None else make(ops.ADD, position, term)
    if position is None:
        return to_uop(view.offset)
    return position if view.offset == 0 else make(ops.ADD, position, to_uop(view.offset))


def _inside(view: View, at: Sequence[UOp]) -> list[UOp]:
    """The clauses of the mask that are not plainly true."""
    clauses = []
    for index, size, (low, high) in zip(at, view.shape, view.mask or (), strict=False):
        if low != 0:
            clauses.append(make(ops.GE, index, to_uop(low)))
        if high != size:
            clauses.append(make(ops.LT, index, to_uop(high)))
    return clauses


def _unravel(position: UOp, shape: Sequence[Dim]) -> list[UOp]:
    """The index tuple, row-major, of a flat position."""
    found: list[UOp] = []
    for axis, size in enumerate(shape):
        step = product(tuple(shape[axis + 1 :]))
        at = position if step == 1 else make(ops.FLOORDIV, position, to_uop(step))
        found.append(_index(0) if size == 1 else make(ops.FLOORMOD, at, to_uop(size)))
    return found
