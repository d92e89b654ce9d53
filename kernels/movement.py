"""Movement of views: shrink, flip, stride, pad, expand, permute and reshape change how a buffer is read, not the buffer.

Each takes the views of an access and gives new ones; all but reshape change the last view only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ..engine.errors import KernelError
from .sizes import Dim, product
from .view import Mask, View, Views, contiguous, row_major


def _with_last(views: Views, last: View) -> Views:
    return (*views[:-1], last)


def _intervals(view: View) -> list[tuple[Dim, Dim]]:
    return list(view.mask) if view.mask is not None else [(0, size) for size in view.shape]


def _mask(shape: Sequence[Dim], intervals: Sequence[tuple[Dim, Dim]]) -> Mask | None:
    """None where the intervals are the whole shape."""
    whole = all(low == 0 and high == size for size, (low, high) in zip(shape, intervals, strict=True))
    return None if whole else tuple(intervals)


def shrink(views: Views, axis: int, low: int, high: int) -> Views:
    """Keeps the half-open interval of an axis."""
    view = views[-1]
    shape = _set(view.shape, axis, high - low)
    intervals = _intervals(view)
    first, end = intervals[axis]
    if isinstance(first, int) and isinstance(end, int):
        start = min(max(first - low, 0), high - low)
        intervals[axis] = (start, max(min(end - low, high - low), start))
    elif low != 0 or view.mask is not None:
        raise KernelError(f"cannot slice a symbolic axis of size {view.shape[axis]}")
    return _with_last(views, View(shape, view.strides, view.offset + view.strides[axis] * low, _mask(shape, intervals)))


def flip(views: Views, axis: int) -> Views:
    """Reads an axis backwards."""
    view = views[-1]
    size, stride = view.shape[axis], view.strides[axis]
    intervals = _intervals(view)
    low, high = intervals[axis]
    intervals[axis] = (size - high, size - low)
    offset = view.offset + stride * (size - 1)
    return _with_last(views, View(view.shape, _set(view.strides, axis, -stride), offset, _mask(view.shape, intervals)))


def every(views: Views, axis: int, step: int) -> Views:
    """Every `step`-th element of an axis, from the first."""
    view = views[-1]
    size = view.shape[axis]
    shape = _set(view.shape, axis, -(-size // step))
    intervals = _intervals(view)
    low, high = intervals[axis]
    intervals[axis] = (-(-low // step), -(-high // step))
    return _with_last(
        views, View(shape, _set(view.strides, axis, view.strides[axis] * step), view.offset, _mask(shape, intervals))
    )


def pad(views: Views, axis: int, before: int, behind: int) -> Views:
    """Zeros before and behind an axis: places that are not valid."""
    view = views[-1]
    shape = _set(view.shape, axis, view.shape[axis] + before + behind)
    intervals = _intervals(view)
    low, high = intervals[axis]
    intervals[axis] = (low + before, high + before)
    return _with_last(
        views, View(shape, view.strides, view.offset + view.strides[axis] * -before, _mask(shape, intervals))
    )


def expand(views: Views, axis: int, size: Dim) -> Views:
    """Repeats an axis of size 1."""
    view = views[-1]
    intervals = _intervals(view)
    shape = _set(view.shape, axis, size)
    intervals[axis] = (0, size) if intervals[axis] == (0, 1) else (0, 0)
    return _with_last(views, View(shape, _set(view.strides, axis, 0), view.offset, _mask(shape, intervals)))


def place(views: Views, axes: Sequence[int], rank: int) -> Views:
    """Moves axis number k to place `axes[k]` of `rank` axes; the others have size 1."""
    view = views[-1]
    shape: list[Dim] = [1] * rank
    strides: list[Dim] = [0] * rank
    intervals: list[tuple[Dim, Dim]] = [(0, 1)] * rank
    for number, (axis, interval) in enumerate(zip(axes, _intervals(view), strict=True)):
        shape[axis], strides[axis], intervals[axis] = view.shape[number], view.strides[number], interval
    return _with_last(views, View(tuple(shape), tuple(strides), view.offset, _mask(shape, intervals)))


def diagonal(views: Views, first: int, second: int) -> Views:
    """Two axes of one size walked together, as `first`; `second` is left with size 1. An axis of size 1 repeats."""
    view = views[-1]
    if view.shape[first] == 1:
        views = expand(views, first, view.shape[second])
    elif view.shape[second] == 1:
        views = expand(views, second, view.shape[first])
    view = views[-1]
    intervals = _intervals(view)
    (low, high), (other_low, other_high) = intervals[first], intervals[second]
    if (other_low, other_high) != (0, view.shape[second]):
        if not all(isinstance(bound, int) for bound in (low, high, other_low, other_high)):
            raise KernelError(f"cannot take the diagonal of a padded axis of symbolic size {view.shape[first]}")
        low = max(low, other_low)  # type: ignore[type-var] # numbers, as just checked
        high = max(min(high, other_high), low)  # type: ignore[type-var]
    intervals[first], intervals[second] = (low, high), (0, 1)
    shape = _set(view.shape, second, 1)
    strides = _set(_set(view.strides, first, view.strides[first] + view.strides[second]), second, 0)
    return _with_last(views, View(shape, strides, view.offset, _mask(shape, intervals)))


def reshape(views: Views, shape: Sequence[Dim]) -> Views:
    """The same elements, row-major, in another shape: one view where the strides allow it, else one more."""
    view = views[-1]
    merged = _merged(view, shape)
    if merged is not None:
        return _with_last(views, merged)
    if view.mask is None and _is_row_major(view):
        last = replace(contiguous(shape), offset=view.offset)
        return _with_last(views, last)
    return (*views, contiguous(shape))


def _merged(view: View, shape: Sequence[Dim]) -> View | None:
    """The reshaped view where runs of old axes with one common stride cover runs of new ones, else None."""
    intervals = _intervals(view)
    old = [axis for axis, size in enumerate(view.shape) if size != 1]
    if any(intervals[axis] != (0, 1) for axis, size in enumerate(view.shape) if size == 1):
        return None
    sizes = [size for axis in old if isinstance(size := view.shape[axis], int) and size > 0]
    wanted = [size for size in shape if isinstance(size, int) and size > 0]
    if len(sizes) != len(old) or len(wanted) != len(shape):
        return None
    strides: list[Dim] = []
    mask: list[tuple[Dim, Dim]] = []
    start, done = 0, 0
    for run in _runs(sizes, wanted):
        axes, parts = old[start : start + run[0]], wanted[done : done + run[1]]
        start, done = start + run[0], done + run[1]
        kept = [size for size in parts if size != 1]
        if kept == [view.shape[axis] for axis in axes]:
            own = iter(axes)
            for size in parts:
                axis = next(own) if size != 1 else None
                strides.append(0 if axis is None else view.strides[axis])
                mask.append((0, 1) if axis is None else intervals[axis])
            continue
        if any(intervals[axis] != (0, view.shape[axis]) for axis in axes) or not _evenly_spaced(view, axes):
            return None
        strides += [step * view.strides[axes[-1]] for step in row_major(parts)]
        mask += [(0, size) for size in parts]
    return View(tuple(shape), tuple(strides), view.offset, _mask(shape, mask))


def _runs(old: Sequence[int], new: Sequence[int]) -> list[tuple[int, int]]:
    """How many axes of each side belong together: the shortest runs of equal products. No old size is 1."""
    runs: list[tuple[int, int]] = []
    a = b = 0
    while a < len(old) or b < len(new):
        left, right, from_a, from_b = 1, 1, a, b
        while b < len(new) and new[b] == 1:
            b += 1
        while left != right or (a == from_a and a < len(old)):
            if left <= right:
                left, a = left * old[a], a + 1
            else:
                right, b = right * new[b], b + 1
        runs.append((a - from_a, b - from_b))
    return runs


def _evenly_spaced(view: View, axes: Sequence[int]) -> bool:
    """Whether each axis steps over exactly the next one."""
    return all(view.strides[a] == view.strides[b] * view.shape[b] for a, b in pairwise(axes))


def _is_row_major(view: View) -> bool:
    if product(view.shape) == 1:
        return True
    steps = row_major(view.shape)
    return all(size == 1 or stride == step for size, stride, step in zip(view.shape, view.strides, steps, strict=True))


def _set(values: Sequence[Dim], axis: int, value: Dim) -> tuple[Dim, ...]:
    return (*values[:axis], value, *values[axis + 1 :])
