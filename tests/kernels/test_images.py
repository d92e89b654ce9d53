"""Images that a kernel reads: as images on a device that has them, as flat buffers elsewhere, with equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rulewright.kernels.json_form import read_kernel
from rulewright.program import Program, compile_kernel
from rulewright.runtimes import devices

HEIGHT, WIDTH = 6, 5
SIZE = HEIGHT * WIDTH * 4
DEVICES = ["interpreter", "llvm", "c", "opencl"]
View = dict[str, Any]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    status = devices.probe(request.param)
    if not status.present:
        pytest.skip(f"device {request.param} is absent: {status.reason}")
    return str(request.param)


def view(shape: list[int], strides: list[int], offset: int = 0, mask: Any = None) -> View:
    return {"shape": shape, "strides": strides, "offset": offset, "mask": mask}


def read(views: list[View], device: str, held: str = "float32", schedule: str = "none") -> Program:
    """Twice what the views show of an image of HEIGHT x WIDTH texels."""
    shape = views[-1]["shape"]
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    image = {"image": held, "shape": [HEIGHT, WIDTH, 4]}
    nodes = [
        {"op": "load", "buffer": 1, "dtype": image, "views": views},
        {"op": "add", "src": [0, 0]},
        {"op": "store", "buffer": 0, "dtype": "float32", "views": [view(shape, strides)], "src": [1]},
    ]
    return compile_kernel(read_kernel({"id": "image", "nodes": nodes}), device, schedule)


def texels(held: str = "float32") -> Any:
    return (np.arange(SIZE) - 17).astype(held)


def reads(program: Program) -> int:
    return program.source.count("read_imagef(")


@pytest.mark.parametrize("held", ["float32", "float16"])
@pytest.mark.parametrize("schedule", ["none", "default", "UPCAST(0, 4)"])
def test_every_element(device: str, held: str, schedule: str) -> None:
    program = read([view([SIZE], [1])], device, held, schedule)
    assert (reads(program) > 0) == (device == "opencl")
    np.testing.assert_array_equal(program(texels(held)), texels(held).astype(np.float32) * 2)


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        ([view([SIZE // 4], [4], 2)], texels()[2::4]),
        ([view([SIZE], [-1], SIZE - 1)], texels()[::-1]),
        ([view([HEIGHT, 4], [WIDTH * 4, 1], 3)], texels().reshape(HEIGHT, -1)[:, 3:7]),
        ([view([SIZE + 8], [1], -4, [[4, SIZE + 4]])], np.pad(texels(), 4)),
        (
            [view([HEIGHT, 24], [20, 1], -2, [[0, HEIGHT], [2, 22]])],
            np.pad(texels().reshape(HEIGHT, 20), [(0, 0), (2, 2)]),
        ),
    ],
    ids=["one channel", "backwards", "shifted", "padded", "rows padded"],
)
@pytest.mark.parametrize("schedule", ["none", "default"])
def test_views_of_an_image(device: str, views: list[View], expected: Any, schedule: str) -> None:
    """A masked element beside a row's end is 0, not the next row's: only the gate tells."""
    program = read(views, device, schedule=schedule)
    np.testing.assert_array_equal(program(texels()).reshape(expected.shape), expected * 2)


def opencl() -> None:
    status = devices.probe("opencl")
    if not status.present:
        pytest.skip(f"device opencl is absent: {status.reason}")


def test_four_lanes_of_a_texel_are_one_read_without_choice() -> None:
    opencl()
    source = read([view([SIZE], [1])], "opencl", schedule="UPCAST(0, 4)").source
    assert source.count("read_imagef(") == 1
    assert "?" not in source


def test_an_image_that_is_too_large_is_a_flat_buffer() -> None:
    opencl()
    image = {"image": "float32", "shape": [1, 8193, 4]}
    nodes = [
        {"op": "load", "buffer": 1, "dtype": image, "views": [view([8], [1], 8193 * 4 - 8)]},
        {"op": "store", "buffer": 0, "dtype": "float32", "views": [view([8], [1])], "src": [0]},
    ]
    program = compile_kernel(read_kernel({"id": "large", "nodes": nodes}), "opencl")
    assert reads(program) == 0
    x = np.arange(8193 * 4, dtype=np.float32)
    np.testing.assert_array_equal(program(x), x[-8:])


def test_a_bound_image_takes_new_values() -> None:
    opencl()
    given = texels()
    launch = read([view([SIZE], [1])], "opencl").bind(given)
    launch()
    launch["data1"] = texels() + 1
    launch()
    np.testing.assert_array_equal(launch["data0"], (texels() + 1) * 2)
    np.testing.assert_array_equal(launch["data1"], texels() + 1)
    np.testing.assert_array_equal(given, texels())
