"""Axes that are dropped: an element that lies in padding stays zero when no axis is left to mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rulewright as rw
from rulewright.kernels.reference import evaluate_kernel

X = np.arange(1, 5, dtype=np.float32)
Array = Any


@pytest.mark.parametrize("schedule", ["default", "none"])
@pytest.mark.parametrize("take", [
    lambda x, pad: pad(x, [(0, 1)])[4],
    lambda x, pad: pad(x, [(2, 2)])[1],
    lambda x, pad: pad(x, [(2, 2)])[2],
    lambda x, pad: pad(x.reshape(2, 2), [(0, 1), (1, 0)])[2, 1],
    lambda x, pad: pad(x.reshape(2, 2), [(0, 1), (1, 0)])[1, 0],
    lambda x, pad: pad(x.reshape(2, 2), [(0, 1), (1, 0)])[2],
    lambda x, pad: pad(x, [(0, 1)])[4] + x,
    lambda x, pad: pad(x, [(0, 1)])[4].reshape(1, 1),
    lambda x, pad: pad(x + 1, [(1, 1)])[5],
])  # fmt: skip
def test_an_element_of_the_padding_is_zero(take: Callable[..., Any], schedule: str) -> None:
    wanted = np.asarray(take(X, np.pad))
    kernel = rw.kernel(take(rw.tensor("x", (4,)), lambda x, widths: x.pad(widths)))
    (expected,) = evaluate_kernel(kernel, [np.full(wanted.size, 7, np.float32), X])
    assert np.array_equal(expected, wanted.reshape(-1))
    got = rw.compile(kernel, "interpreter", schedule)(X)
    assert np.array_equal(np.asarray(got), wanted)
