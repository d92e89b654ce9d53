"""Views against a brute-force reading of their definition, one index tuple at a time, in plain Python."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rulewright.engine import dtypes
from rulewright.engine.errors import KernelError
from rulewright.engine.interpret import evaluate
from rulewright.engine.uop import UOp, const
from rulewright.kernels.kernel import Kernel, Load, Store, lowest, reach
from rulewright.kernels.reference import evaluate_kernel
from rulewright.kernels.view import View, Views, address, contiguous, row_major

Index = tuple[int, ...]


def ints(values: tuple[object, ...]) -> Index:
    assert all(isinstance(value, int) for value in values)
    return tuple(value for value in values if isinstance(value, int))


def element(views: Views, at: Index) -> int | None:
    """The element that an index tuple means, None where it is not valid: FORMAT's sentence, written down."""
    position = 0
    for number, view in enumerate(reversed(views)):
        shape = ints(view.shape)
        if number:
            rest, found = position, []
            for size in reversed(shape):
                found.append(rest % size)
                rest //= size
            at = tuple(reversed(found))
        for index, pair in zip(at, view.mask or (), strict=False):
            low, high = ints(pair)
            if not low <= index < high:
                return None
        position = (
            sum(index * stride for index, stride in zip(at, ints(view.strides), strict=True)) + ints((view.offset,))[0]
        )
    return position


def value_of(node: UOp) -> object:
    return evaluate(node, {})


def tuples(view: View) -> list[Index]:
    return list(itertools.product(*(range(size) for size in ints(view.shape))))


@st.composite
def masks(draw: st.DrawFn, shape: Index) -> tuple[tuple[int, int], ...] | None:
    if draw(st.booleans()):
        return None
    pairs = []
    for size in shape:
        low = draw(st.integers(0, size))
        pairs.append((low, draw(st.integers(low, size))))
    return tuple(pairs)


@st.composite
def strided(draw: st.DrawFn, limit: int | None = None) -> View:
    """A view whose positions start at 0 and, where there is a limit, stay below it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    strides = [draw(st.integers(-4, 4)) for _ in shape]
    if limit is not None:
        room = limit - 1
        for axis, size in enumerate(shape):
            step = room // max(size - 1, 1)
            strides[axis] = 0 if size == 1 else draw(st.integers(-step, step))
            room -= abs(strides[axis]) * (size - 1)
    offset = sum(-stride * (size - 1) for size, stride in zip(shape, strides, strict=True) if stride < 0)
    return View(shape, tuple(strides), offset, draw(masks(shape)))


@st.composite
def chains(draw: st.DrawFn) -> Views:
    """One to three views; each reads within the shape of the one before it."""
    views = [draw(strided())]
    for _ in range(draw(st.integers(0, 2))):
        views.append(draw(strided(math.prod(ints(views[-1].shape)))))
    return tuple(views)


PADDED: Views = (View((3,), (1,)), View((5,), (1,), -1, ((1, 4),)))
REVERSED: Views = (View((2, 3), (-3, -1), 5),)


@given(chains())
@example(REVERSED)
def test_address_is_the_element_that_the_views_mean(views: Views) -> None:
    for at in tuples(views[-1]):
        position, gate = address(views, [const(dtypes.index, index) for index in at])
        valid = gate is None or bool(value_of(gate))
        wanted = element(views, at)
        assert valid == (wanted is not None)
        if wanted is not None:
            assert value_of(position) == wanted


@given(chains())
@example(REVERSED)
@example(PADDED)
def test_the_reference_loads_the_element_that_the_views_mean(views: Views) -> None:
    wanted = [element(views, at) for at in tuples(views[-1])]
    size = max((one for one in wanted if one is not None), default=0) + 1
    data = np.arange(100, 100 + size, dtype=np.int32)
    last = views[-1].shape
    kernel = Kernel((Load(1, dtypes.int32, views), Store(0, dtypes.int32, (contiguous(last),), 0)))
    (got,) = evaluate_kernel(kernel, [np.full(len(wanted), -1, np.int32), data])
    assert got.tolist() == [0 if one is None else 100 + one for one in wanted]


@given(strided())
def test_the_reference_stores_only_where_the_views_are_valid(view: View) -> None:
    reached = [element((view,), at) for at in tuples(view)]
    size = max((one for one in reached if one is not None), default=0) + 1
    kernel = Kernel(
        (Load(1, dtypes.int32, (View(view.shape, (0,) * len(view.shape)),)), Store(0, dtypes.int32, (view,), 0))
    )
    (got,) = evaluate_kernel(kernel, [np.full(size, -7, np.int32), np.array([5], np.int32)])
    assert got.tolist() == [5 if position in reached else -7 for position in range(size)]


@given(strided())
def test_reach_is_one_more_than_the_highest_element(view: View) -> None:
    touched = [one for at in tuples(view) if (one := element((view,), at)) is not None]
    assert reach(view) == max(touched, default=-1) + 1


@given(st.lists(st.integers(0, 5), max_size=4))
def test_row_major_strides_are_numpys(shape: list[int]) -> None:
    if 0 not in shape:  # NumPy chooses others for arrays without elements
        assert row_major(shape) == tuple(stride // 4 for stride in np.zeros(shape, np.int32).strides)


@pytest.mark.parametrize(
    ("views", "problem"),
    [
        ((View((4,), (1,), -2),), r"views\[0\] reaches element -2, before the first"),
        ((View((4,), (-1,), 1),), r"views\[0\] reaches element -2, before the first"),
        ((contiguous((2, 3)), View((4,), (2,))), r"views\[1\] reaches element 6 of 6"),
        ((contiguous((2, 3)), View((4,), (1,), -1)), r"views\[1\] reaches element -1, before the first"),
    ],
)
def test_a_view_that_leaves_what_it_looks_at_is_refused(views: Views, problem: str) -> None:
    with pytest.raises(KernelError, match=r"nodes\[0\]: " + problem):
        Kernel((Load(1, dtypes.int32, views), Store(0, dtypes.int32, (contiguous((4,)),), 0)))
    with pytest.raises(KernelError, match=r"nodes\[1\]: " + problem):
        Kernel((Load(1, dtypes.int32, (contiguous((4,)),)), Store(0, dtypes.int32, views, 0)))


def test_a_mask_keeps_a_view_inside() -> None:
    views = (View((4,), (1,), -2, ((2, 4),)),)
    kernel = Kernel((Load(1, dtypes.int32, views), Store(0, dtypes.int32, (contiguous((4,)),), 0)))
    (got,) = evaluate_kernel(kernel, [np.zeros(4, np.int32), np.array([7, 8], np.int32)])
    assert got.tolist() == [0, 0, 7, 8]


def test_an_image_ends_where_its_texels_do() -> None:
    load = Load(1, dtypes.float32, (contiguous((9,)),), (1, 2))
    with pytest.raises(KernelError, match="reaches element 8 of 8"):
        Kernel((load, Store(0, dtypes.float32, (contiguous((9,)),), 0)))


@given(strided())
def test_the_lowest_element_is_known(view: View) -> None:
    touched = [one for at in tuples(view) if (one := element((view,), at)) is not None]
    assert lowest(view) == min(0, *touched, 0)


def test_the_reference_refuses_elements_after_the_buffer() -> None:
    kernel = Kernel((Load(1, dtypes.int32, (contiguous((4,)),)), Store(0, dtypes.int32, (contiguous((4,)),), 0)))
    with pytest.raises(KernelError, match=r"nodes\[0\]: element 3 of buffer 1, which has 3"):
        evaluate_kernel(kernel, [np.zeros(4, np.int32), np.zeros(3, np.int32)])
    with pytest.raises(KernelError, match=r"nodes\[1\]: element 3 of buffer 0, which has 3"):
        evaluate_kernel(kernel, [np.zeros(3, np.int32), np.zeros(4, np.int32)])
