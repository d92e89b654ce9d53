"""Launch geometry: any number of axes onto at most three hardware dimensions.

A dimension above its limit is split over adjacent hardware dimensions, too many dimensions are merged, and each
axis's index is read back as `(flat // stride) % size`. The map is a bijection (the tests prove it for each case).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..engine import dtypes, ops
from ..engine.errors import KernelError
from ..engine.ops import ThreadKind
from ..engine.uop import UOp, const, make, special
from .sizes import Dim, to_uop


def group_dims(kind: ThreadKind, dims: Sequence[Dim], limits: Sequence[int] | None, reverse: bool = False) -> list[UOp]:
    """One index expression for each axis, over the hardware indices of `kind`.

    `limits` are the sizes that the hardware dimensions may have; None: any number of dimensions, any size.
    With `reverse` the last axis is on the first hardware dimension. Raises KernelError for what does not fit.
    """
    if reverse:
        return group_dims(kind, list(reversed(dims)), limits)[::-1]
    if limits is None:
        return [special(kind, number, to_uop(size)) for number, size in enumerate(dims)]
    sizes = _fit(list(dims), list(limits))
    hardware = [special(kind, number, to_uop(size)) for number, size in enumerate(sizes)]
    if list(sizes) == list(dims):
        return hardware
    return _read_back(hardware, sizes, dims)


def hardware_sizes(dims: Sequence[Dim], limits: Sequence[int], reverse: bool = False) -> tuple[Dim, ...]:
    """The sizes of the hardware dimensions, padded with 1 to as many as there are limits."""
    sizes = _fit(list(reversed(dims)) if reverse else list(dims), list(limits))
    return (*sizes, *[1] * (len(limits) - len(sizes)))


def _fit(dims: list[Dim], limits: list[int]) -> list[Dim]:
    sizes = _merge(dims, limits)
    if len(sizes) <= len(limits) and all(_within(s, limit) for s, limit in zip(sizes, limits, strict=False)):
        return sizes
    return _split(sizes, limits)


def _within(size: Dim, limit: int) -> bool:
    return not isinstance(size, int) or size <= limit


def _merge(dims: list[Dim], limits: list[int]) -> list[Dim]:
    """Merges neighbours, the leftmost pair whose product fits, until there are no more than hardware dimensions."""
    sizes = list(dims)
    while len(sizes) > len(limits):
        for left in range(len(sizes) - 1):
            a, b = sizes[left], sizes[left + 1]
            limit = limits[min(left, len(limits) - 1)] if limits else 0
            if isinstance(a, int) and isinstance(b, int) and a * b <= limit:
                sizes[left : left + 2] = [a * b]
                break
        else:
            raise KernelError(
                f"cannot map the axes {_listed(dims)} onto hardware dimensions of at most {_listed(limits)}"
            )
    return sizes


def _split(sizes: list[Dim], limits: list[int]) -> list[Dim]:
    """Moves factors of what is too large to the neighbouring dimensions."""
    result: list[Dim] = list(sizes) + [1] * (len(limits) - len(sizes))
    for number, limit in enumerate(limits):
        while True:
            size = result[number]
            if not isinstance(size, int) or size <= limit:
                break
            factor = next((f for f in range(2, size + 1) if size % f == 0), size)
            target = (number + 1) % len(limits)
            neighbour = result[target]
            if target == 0 or not isinstance(neighbour, int) or size // factor < 1:
                raise KernelError(
                    f"cannot map the axes {_listed(sizes)} onto hardware dimensions of at most {_listed(limits)}"
                )
            result[number], result[target] = size // factor, neighbour * factor
    if any(not _within(size, limit) for size, limit in zip(result, limits, strict=True)):
        raise KernelError(f"cannot map the axes {_listed(sizes)} onto hardware dimensions of at most {_listed(limits)}")
    return result


def _read_back(hardware: list[UOp], sizes: Sequence[Dim], dims: Sequence[Dim]) -> list[UOp]:
    """The flat number of the thread, row-major, and each axis's index in it."""
    if any(not isinstance(size, int) for size in dims):
        raise KernelError(f"a symbolic axis among {_listed(dims)} would have to be merged or split")
    flat: UOp | None = None
    for index, size in zip(hardware, sizes, strict=True):
        flat = index if flat is None else make(ops.ADD, make(ops.MUL, flat, to_uop(size)), index)
    found: list[UOp] = []
    stride = 1
    for size in reversed(dims):
        assert flat is not None and isinstance(size, int)
        at = flat if stride == 1 else make(ops.FLOORDIV, flat, const(dtypes.index, stride))
        found.append(make(ops.FLOORMOD, at, to_uop(size)))
        stride *= size
    return found[::-1]


def _listed(values: Sequence[Dim]) -> str:
    return ", ".join(map(str, values))
