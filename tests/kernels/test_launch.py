"""Launch geometry: the specified examples, and for every case a bijection within the limits."""

from __future__ import annotations

import itertools
import math

import pytest
from rulewright.engine import interpret, ops
from rulewright.engine.errors import KernelError
from rulewright.engine.ops import ThreadKind
from rulewright.engine.uop import UOp, walk
from rulewright.kernels.launch import group_dims, hardware_sizes
from rulewright.kernels.sizes import Dim, var

Dims = tuple[int, ...]
GROUPS = (2**31 - 1, 65535, 65535)
N = var("n", 1, 8)


def hardware(indices: list[UOp]) -> dict[int, tuple[UOp, int]]:
    """By hardware dimension its index and its size."""
    found: dict[int, tuple[UOp, int]] = {}
    for node in (node for index in indices for node in walk(index) if node.op is ops.SPECIAL):
        size = node.src[0].arg
        assert isinstance(node.arg, ops.SpecialArg) and isinstance(size, int)
        found[node.arg.dim] = (node, size)
    return found


def assert_bijection(dims: Dims, limits: Dims | None, reverse: bool) -> None:
    """Every thread has its own point, every point a thread, and no hardware dimension is too large."""
    indices = group_dims(ThreadKind.GROUP, dims, limits, reverse)
    found = hardware(indices)
    nodes, sizes = [node for node, _ in found.values()], [size for _, size in found.values()]
    if limits is not None:
        assert all(size <= limits[dim] for dim, (_, size) in found.items())
    points = [
        tuple(interpret.evaluate(index, dict(zip(nodes, at, strict=True))) for index in indices)
        for at in itertools.product(*map(range, sizes))
    ]
    assert len(points) == math.prod(dims)
    assert set(points) == set(itertools.product(*map(range, dims)))


def a_map_exists(dims: Dims, limits: Dims) -> bool:
    total = math.prod(dims)
    return any(math.prod(sizes) == total for sizes in itertools.product(*(range(1, n + 1) for n in limits)))


@pytest.mark.parametrize(("dims", "limits", "reverse", "sizes"), [
    ((2,), (16, 16, 16), False, (2, 1, 1)),
    ((2, 3), (16, 16, 16), False, (2, 3, 1)),
    ((2, 3), (16, 16, 16), True, (3, 2, 1)),
    ((2, 3, 4, 5), (16, 16, 16), False, (6, 4, 5)),
    ((2, 3, 4, 5), (32, 16, 16), True, (20, 3, 2)),
    ((100003, 3, 5), GROUPS, True, (1500045, 1, 1)),
    ((100003, 2), GROUPS, False, (100003, 2, 1)),
])  # fmt: skip
def test_specified_sizes(dims: Dims, limits: Dims, reverse: bool, sizes: Dims) -> None:
    assert hardware_sizes(dims, limits, reverse) == sizes


@pytest.mark.parametrize("limits", [(16, 16, 16), (8, 4, 4), (4, 4, 4), (6, 3, 5), (12, 4), (30,)], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_every_map_is_a_bijection_within_the_limits(limits: Dims, reverse: bool) -> None:
    mapped = refused = 0
    for rank in range(1, 5):
        for dims in itertools.product((1, 2, 3, 5), repeat=rank):
            if math.prod(dims) > 40:
                continue
            if a_map_exists(dims, limits):
                assert_bijection(dims, limits, reverse)
                mapped += 1
            else:
                with pytest.raises(KernelError, match="cannot map the axes"):
                    group_dims(ThreadKind.GROUP, dims, limits, reverse)
                refused += 1
    assert mapped > 50 and mapped + refused > 120


@pytest.mark.parametrize(("dims", "limits"), [
    ((64, 3, 4), (16, 16, 16)), ((1, 1, 32), (16, 16, 16)), ((2, 2, 32), (4, 4, 16)), ((17, 17), (17, 17)),
])  # fmt: skip
def test_large_axes_are_split(dims: Dims, limits: Dims) -> None:
    assert_bijection(dims, limits, reverse=False)
    assert_bijection(dims, limits, reverse=True)


def test_without_limits_each_axis_has_its_own_dimension() -> None:
    assert_bijection((3, 5, 2, 4), None, reverse=False)
    assert sorted(hardware(group_dims(ThreadKind.GROUP, (3, 5, 2, 4), None))) == [0, 1, 2, 3]


def test_no_axes_need_no_dimensions() -> None:
    assert group_dims(ThreadKind.GROUP, (), ()) == []
    assert hardware_sizes((), GROUPS) == (1, 1, 1)


@pytest.mark.parametrize(("dims", "limits", "message"), [
    ((23,), (16, 16, 16), "cannot map the axes 23 onto hardware dimensions of at most 16, 16, 16"),
    ((128, 3, 4), (16, 4, 23), "cannot map the axes 128, 3, 4 onto hardware dimensions of at most 16, 4, 23"),
    ((2,), (), "cannot map the axes 2 onto hardware dimensions of at most nothing"),
    ((N, 17), (16, 16, 16), "a symbolic axis cannot be merged with another or split"),
    ((N, N, N, N), (16, 16, 16), "a symbolic axis cannot be merged with another or split"),
])  # fmt: skip
def test_what_cannot_fit_is_refused(dims: tuple[Dim, ...], limits: Dims, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        group_dims(ThreadKind.GROUP, dims, limits)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dims", [(N, 3, 5, 7), (2, N, 3, 5, 7), (2, 3, 5, N), (N, 2, 3, N)], ids=str)
def test_a_symbolic_axis_keeps_its_own_dimension(dims: tuple[Dim, ...], reverse: bool) -> None:
    indices = group_dims(ThreadKind.GROUP, dims, GROUPS, reverse)
    for size, index in zip(dims, indices, strict=True):
        if size is N:
            assert index.op is ops.SPECIAL and index.src[0].op is ops.VAR
