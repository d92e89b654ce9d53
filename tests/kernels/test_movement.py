"""Views after movement read the elements that NumPy's arrays have, and need no more views than they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import dtypes
from rulewright.kernels import movement
from rulewright.kernels.kernel import Kernel, Load, Store
from rulewright.kernels.reference import evaluate_kernel
from rulewright.kernels.view import View, Views, contiguous

Array = Any


def read(views: Views, data: Array) -> Array:
    """The elements that the views see, by a kernel that copies them."""
    shape: Any = views[-1].shape
    nodes = (Load(1, dtypes.int32, views), Store(0, dtypes.int32, (contiguous(shape),), 0))
    out = np.zeros(int(np.prod(shape, dtype=int)), np.int32)
    return evaluate_kernel(Kernel(nodes), [out, data.ravel()])[0].reshape(shape)


def counted(*shape: int) -> Array:
    return np.arange(1, int(np.prod(shape)) + 1, dtype=np.int32).reshape(shape)


def permuted(*shape: int, order: tuple[int, ...]) -> Views:
    places = [order.index(axis) for axis in range(len(order))]
    return movement.place((contiguous(shape),), places, len(order))


@pytest.mark.parametrize(("views", "array", "shape", "count"), [
    ((contiguous((4, 6)),), counted(4, 6), (2, 2, 3, 2), 1),
    (permuted(4, 6, order=(1, 0)), counted(4, 6).T, (2, 3, 2, 2), 1),
    (permuted(4, 6, order=(1, 0)), counted(4, 6).T, (24,), 2),
    (movement.shrink((contiguous((4, 6)),), 0, 1, 3), counted(4, 6)[1:3], (12,), 1),
    (movement.shrink((contiguous((4, 6)),), 1, 1, 5), counted(4, 6)[:, 1:5], (16,), 2),
    (movement.shrink((contiguous((4, 6)),), 1, 1, 5), counted(4, 6)[:, 1:5], (2, 2, 2, 2), 1),
    (movement.flip(movement.flip((contiguous((4, 6)),), 0), 1), counted(4, 6)[::-1, ::-1], (24,), 1),
    (movement.pad((contiguous((4, 6)),), 0, 1, 1), np.pad(counted(4, 6), [(1, 1), (0, 0)]), (6, 2, 3), 1),
    (movement.pad((contiguous((4, 6)),), 0, 1, 1), np.pad(counted(4, 6), [(1, 1), (0, 0)]), (36,), 2),
    (permuted(2, 3, 4, order=(2, 0, 1)), counted(2, 3, 4).transpose(2, 0, 1), (4, 1, 6, 1), 1),
])  # fmt: skip
def test_reshape_merges_strides_where_it_can(views: Views, array: Array, shape: tuple[int, ...], count: int) -> None:
    moved = movement.reshape(views, shape)
    assert len(moved) == count
    np.testing.assert_array_equal(read(moved, counted(24)), array.reshape(shape))


def test_a_diagonal_walks_both_axes_inside_both_masks() -> None:
    views = movement.pad(movement.pad((contiguous((3, 3)),), 0, 1, 0), 1, 0, 1)
    padded = np.pad(counted(3, 3), [(1, 0), (0, 1)])
    np.testing.assert_array_equal(read(movement.diagonal(views, 0, 1), counted(9))[:, 0], np.diag(padded))


def test_a_view_that_is_valid_nowhere_reads_zeros_after_a_reshape() -> None:
    nowhere = (View((1, 6), (6, 1), 0, ((0, 0), (0, 6))),)
    assert not read(movement.reshape(nowhere, (2, 3)), counted(6)).any()


@st.composite
def moves(draw: st.DrawFn) -> tuple[Views, Array, Array]:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=3)))
    views: Views = (contiguous(shape),)
    data = array = counted(*shape)
    for _ in range(draw(st.integers(1, 7))):
        axis = draw(st.integers(0, array.ndim - 1))
        at = (slice(None),) * axis
        match draw(st.sampled_from(["shrink", "flip", "every", "pad", "place", "reshape", "expand"])):
            case "shrink":
                low = draw(st.integers(0, array.shape[axis] - 1))
                high = draw(st.integers(low + 1, array.shape[axis]))
                views, array = movement.shrink(views, axis, low, high), array[(*at, slice(low, high))]
            case "flip":
                views, array = movement.flip(views, axis), np.flip(array, axis)
            case "every":
                views, array = movement.every(views, axis, 2), array[(*at, slice(None, None, 2))]
            case "pad":
                widths = [(0, 0)] * array.ndim
                widths[axis] = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
                views, array = movement.pad(views, axis, *widths[axis]), np.pad(array, widths)
            case "place":
                order = draw(st.permutations(range(array.ndim)))
                places = [order.index(number) for number in range(array.ndim)]
                views, array = movement.place(views, places, array.ndim), array.transpose(order)
            case "reshape":
                wanted = draw(st.sampled_from([(-1,), (1, -1), (-1, array.shape[-1]), (array.shape[0], -1, 1)]))
                array = array.reshape(wanted)
                views = movement.reshape(views, array.shape)
            case "expand" if array.shape[axis] == 1:
                views, array = movement.expand(views, axis, 3), np.repeat(array, 3, axis)
    return views, data, array


@settings(max_examples=200, deadline=None)
@given(moves())
def test_any_sequence_of_moves_reads_what_numpy_has(case: tuple[Views, Array, Array]) -> None:
    views, data, expected = case
    np.testing.assert_array_equal(read(views, data), expected)
