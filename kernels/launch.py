"""Launch geometry: any number of axes onto at most three hardware dimensions.

Neighbouring axes share a hardware dimension where there are too many of them, and each index is read back as
`(hardware // stride) % size`. Where no such sharing fits the limits, all axes are numbered together and that number is
split into factors. Either map is a bijection (the tests prove it for every case).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from ..engine import dtypes, ops
from ..engine.errors import KernelError
from ..engine.ops import ThreadKind
from ..engine.uop import UOp, const, make, special
from .sizes import Dim, product, to_uop

Sharing = list[list[Dim]]
"""For each hardware dimension the neighbouring axes that share it."""


def group_dims(kind: ThreadKind, dims: Sequence[Dim], limits: Sequence[int] | None, reverse: bool = False) -> list[UOp]:
    """One index expression for each axis, over the hardware indices of `kind`.

    `limits` are the sizes that the hardware dimensions may have; None: any number of dimensions, any size.
    With `reverse` the last axis is on the first hardware dimension. A symbolic axis keeps a dimension for itself.
    Raises KernelError for what does not fit.
    """
    if reverse:
        return group_dims(kind, list(reversed(dims)), limits)[::-1]
    if limits is None:
        return [special(kind, number, to_uop(size)) for number, size in enumerate(dims)]
    shared = _shared(dims, limits)
    if shared is None:
        factors = _factored(dims, limits)
        return _read_back(_flat([special(kind, number, size) for number, size in enumerate(factors)], factors), dims)
    found: list[UOp] = []
    for number, part in enumerate(shared):
        found += _read_back(special(kind, number, to_uop(product(tuple(part)))), part)
    return found


def hardware_sizes(dims: Sequence[Dim], limits: Sequence[int], reverse: bool = False) -> tuple[Dim, ...]:
    """The sizes of the hardware dimensions, padded with 1 to as many as there are limits."""
    ordered = list(reversed(dims)) if reverse else list(dims)
    shared = _shared(ordered, limits)
    sizes = _factored(ordered, limits) if shared is None else [product(tuple(part)) for part in shared]
    return (*sizes, *[1] * (len(limits) - len(sizes)))


def _shared(dims: Sequence[Dim], limits: Sequence[int]) -> Sharing | None:
    """The sharing with the fewest axes together that fits, on the left if there is a choice."""
    for parts in range(min(len(dims), len(limits)), 0, -1):
        for sharing in _sharings(dims, parts):
            if all(_fits(part, limit) for part, limit in zip(sharing, limits, strict=False)):
                return sharing
    return None if dims else []


def _sharings(dims: Sequence[Dim], parts: int) -> Iterator[Sharing]:
    """Every way to cut the axes into so many runs, longer first runs first."""
    for cuts in reversed(list(combinations(range(1, len(dims)), parts - 1))):
        ends = [0, *cuts, len(dims)]
        yield [list(dims[first:end]) for first, end in pairwise(ends)]


def _fits(part: Sequence[Dim], limit: int) -> bool:
    if len(part) == 1 and not isinstance(part[0], int):
        return True
    size = product(tuple(part))
    return isinstance(size, int) and size <= limit


def _factored(dims: Sequence[Dim], limits: Sequence[int]) -> list[int]:
    """Sizes within the limits whose product is that of the axes."""
    numbers = [size for size in dims if isinstance(size, int)]
    if len(numbers) < len(dims):
        raise KernelError(f"{_misfit(dims, limits)}; a symbolic axis cannot be merged with another or split")
    found = {(1,) * len(limits)}
    for prime in sorted((prime for size in numbers for prime in _primes(size)), reverse=True):
        found = {
            (*sizes[:at], sizes[at] * prime, *sizes[at + 1 :])
            for sizes in found
            for at, limit in enumerate(limits)
            if sizes[at] * prime <= limit
        }
    if not found or not limits:
        raise KernelError(f"{_misfit(dims, limits)}; give an axis sizes with smaller factors, or split it by LOCAL")
    return list(max(found))


def _primes(size: int) -> list[int]:
    found = []
    factor = 2
    while factor * factor <= size:
        while size % factor == 0:
            found.append(factor)
            size //= factor
        factor += 1
    return [*found, size] if size > 1 else found


def _flat(indices: Sequence[UOp], sizes: Sequence[int]) -> UOp:
    """The number of the thread, row-major."""
    flat = indices[0]
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        flat = make(ops.ADD, make(ops.MUL, flat, const(dtypes.index, size)), index)
    return flat


def _read_back(flat: UOp, dims: Sequence[Dim]) -> list[UOp]:
    """Each axis's index in a row-major number over the axes."""
    if len(dims) == 1:
        return [flat]
    found: list[UOp] = []
    stride: Dim = 1
    for size in reversed(dims):
        at = flat if stride == 1 else make(ops.FLOORDIV, flat, to_uop(stride))
        found.append(make(ops.FLOORMOD, at, to_uop(size)))
        stride = stride * size
    return found[::-1]


def _misfit(dims: Sequence[Dim], limits: Sequence[int]) -> str:
    axes, most = ", ".join(map(str, dims)), ", ".join(map(str, limits)) or "nothing"
    return f"cannot map the axes {axes} onto hardware dimensions of at most {most}"
