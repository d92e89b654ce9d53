"""Descriptions that are well-formed JSON and yet no kernel: one error that names the node."""

from __future__ import annotations

from typing import Any

import pytest
import rulewright as rw
from rulewright.engine.errors import KernelError

Data = dict[str, Any]


def view(shape: list[Any], strides: list[Any]) -> Data:
    return {"shape": shape, "strides": strides, "offset": 0, "mask": None}


def load(buffer: int, shape: list[Any], strides: list[Any], dtype: object = "float32") -> Data:
    return {"op": "load", "buffer": buffer, "dtype": dtype, "views": [view(shape, strides)]}


def store(source: int, shape: list[Any], strides: list[Any]) -> Data:
    return {"op": "store", "buffer": 0, "dtype": "float32", "views": [view(shape, strides)], "src": [source]}


@pytest.mark.parametrize(("nodes", "message"), [
    (
        [load(1, [3], [1]), load(2, [3, 3], [3, 1]), {"op": "add", "src": [0, 1]}, store(2, [3, 3], [3, 1])],
        r"^nodes\[2\]: all nodes of a kernel have one rank, got 1 and 2$",
    ),
    ([load(1, [5], [1]), store(0, [5, 1], [1, 1])], r"^nodes\[1\]: all nodes of a kernel have one rank, got 1 and 2$"),
    (
        [load(1, [4], [1], {"image": ["float32"], "shape": [1, 1, 4]}), store(0, [4], [1])],
        r'^nodes\[0\]\.dtype: an image is \{"image": ',
    ),
    (
        [load(1, [["var", "n", 1, 5]], [1]), load(2, [1], [["var", "n", 1, 9]]), {"op": "add", "src": [0, 1]},
         store(2, [["var", "n", 1, 5]], [1])],
        r"^variable n has the bounds 1\.\.5 and 1\.\.9; give it one$",
    ),
], ids=["ranks", "rank-of-store", "image", "bounds"])  # fmt: skip
def test_what_is_no_kernel_is_named(nodes: list[Data], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        rw.read_kernel({"nodes": nodes})
