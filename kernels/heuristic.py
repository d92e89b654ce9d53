"""The default schedule: which options a kernel gets when nobody says any."""

from __future__ import annotations

from collections.abc import Iterable

from ..engine.target import Target
from .kernel import Kernel
from .schedule import Option, OptionKind, Schedule, reduced_and_mixed
from .sizes import Dim

SMALL = 1 << 15
"""Below this number of steps a kernel is not shared out over threads: starting them would cost more."""


def default_schedule(kernel: Kernel, target: Target, threads: int) -> Schedule:
    """A simple good schedule: vectors along the last stored axis, groups or CPU threads along the first."""
    options: list[Option] = []
    reduced, mixed = reduced_and_mixed(kernel)
    sizes = list(kernel.axis_sizes)
    free = [axis for axis, size in enumerate(sizes) if axis not in reduced and isinstance(size, int) and size > 1]
    vector = _vector_axis(kernel, [axis for axis in free if axis not in mixed])
    if vector is not None and target.widths:
        _take(
            options,
            sizes,
            OptionKind.UPCAST,
            vector,
            [w for w in target.widths if w <= (4 if target.has("threads") else 16)],
        )
    elif target.widths and vector is None:
        _unroll(kernel, options, sizes, reduced, target)
    if target.has("threads"):
        _group(options, sizes, [axis for axis in free if axis not in mixed])
    elif threads > 1 and _steps(kernel) >= SMALL:
        first = next((axis for axis in free if _dividing(sizes[axis], range(threads, 1, -1))), None)
        if first is not None:
            _take(options, sizes, OptionKind.THREAD, first, list(range(threads, 1, -1)))
    return tuple(options)


def _vector_axis(kernel: Kernel, free: list[int]) -> int | None:
    """The axis along which every store is contiguous, the last such."""
    for axis in reversed(free):
        strides = {store.views[-1].strides[axis] for store in kernel.stores}
        if strides == {1}:
            return axis
    return None


def _unroll(kernel: Kernel, options: list[Option], sizes: list[Dim], reduced: frozenset[int], target: Target) -> None:
    """Without a stored axis for vectors: the last reduced axis, in steps of a vector."""
    axes = [axis for axis in sorted(reduced) if isinstance(sizes[axis], int)]
    if axes:
        _take(options, sizes, OptionKind.UNROLL, axes[-1], [w for w in target.widths if w <= 8])


def _group(options: list[Option], sizes: list[Dim], free: list[int]) -> None:
    left = 64
    for axis in reversed(free):
        if left > 1:
            left //= _take(options, sizes, OptionKind.LOCAL, axis, [n for n in (64, 32, 16, 8, 4, 2) if n <= left])


def _dividing(size: Dim, amounts: Iterable[int]) -> int | None:
    return next((n for n in amounts if isinstance(size, int) and n > 1 and size % n == 0), None)


def _take(options: list[Option], sizes: list[Dim], kind: OptionKind, axis: int, amounts: list[int]) -> int:
    """Adds the option with the first amount that divides; the amount, or 1."""
    size = sizes[axis]
    amount = _dividing(size, amounts)
    if amount is None or not isinstance(size, int):
        return 1
    options.append(Option(kind, axis, amount))
    sizes[axis] = size // amount
    return amount


def _steps(kernel: Kernel) -> int:
    total = 1
    for size in kernel.axis_sizes:
        total *= size if isinstance(size, int) else 1
    return total
