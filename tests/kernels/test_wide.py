"""Buffers of more than 2³¹ elements: their files have holes, so that only what a kernel touches takes memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rulewright as rw

EDGE = 2**31
ROW = 2**20
DEVICES = ["interpreter", "llvm", "c"]
"""Those that work on the caller's memory as it is."""


def holes(path: Path, size: int) -> np.memmap[tuple[int], np.dtype[np.int8]]:
    """An int8 array of zeros."""
    with path.open("wb") as file:
        file.truncate(size)
    return np.memmap(path, np.int8, "r+", shape=(size,))


@pytest.mark.parametrize("device", DEVICES)
def test_loads_on_both_sides_of_the_edge(device: str, tmp_path: Path) -> None:
    data = holes(tmp_path / "data", EDGE + 64)
    data[EDGE - 4 : EDGE + 8] = np.arange(1, 13)
    data[:12] = 100  # what an index that wrapped to 0 would read
    wide = rw.tensor("wide", data.shape, "int8")
    program = rw.compile(rw.kernel(wide[EDGE - 4 : EDGE + 8] * 2), device)
    np.testing.assert_array_equal(program(data), 2 * np.arange(1, 13, dtype=np.int8))


@pytest.mark.parametrize("schedule", ["none", "default"])
@pytest.mark.parametrize("device", DEVICES)
def test_a_product_beyond_the_edge(device: str, schedule: str, tmp_path: Path) -> None:
    """Row and column fit an int32, and `row * stride` does not."""
    rows = EDGE // ROW + 3
    data = holes(tmp_path / "data", rows * ROW)
    expected = np.zeros((rows, 4), np.int8)
    for row in (0, 1, rows // 2, rows - 4, rows - 3, rows - 1):
        expected[row] = np.arange(row % 97, row % 97 + 4)
        data[row * ROW : row * ROW + 4] = expected[row]
    wide = rw.tensor("wide", (rows, ROW), "int8")
    program = rw.compile(rw.kernel(wide[:, :4] + 0), device, schedule)
    np.testing.assert_array_equal(program(data.reshape(rows, ROW)), expected)


@pytest.mark.parametrize(("size", "wide"), [(EDGE - 1, False), (EDGE, True)])
def test_an_index_is_as_wide_as_it_must(size: int, wide: bool) -> None:
    """The end of a loop is the first number that its counter must still hold."""
    source = rw.compile(rw.kernel(rw.tensor("data", (size,), "int8") + 1), "c", "none").source
    assert ("int64_t" in source) == wide
