"""Which OpenCL device to use: one on which a kernel has been built, run and found right.

A driver that is listed may still be unable to build anything, so that a device counts only after a trial. The reasons
of those that failed are kept, for `rulewright devices` and for the error where none is left.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..engine.errors import DeviceError
from ..engine.target import LARGEST_IMAGE

try:
    import pyopencl as cl
except ImportError as problem:
    raise DeviceError("device opencl needs the package pyopencl: pip install pyopencl") from problem

__all__ = ["Found", "build", "cl", "fetch", "find"]

_TRIAL = """
__kernel void trial(__global float *restrict data0, __global const float *restrict data1) {
  int gidx0 = get_global_id(0);
  vstore4(vload4(0, data1 + 4 * gidx0) * 2.0f + exp2(1.0f), 0, data0 + 4 * gidx0);
}
"""


@dataclass(frozen=True)
class Found:
    """A device that works. `shares`: it can use arrays of the host where they lie."""

    context: Any  # pyopencl's own types are not annotated
    device: Any
    shares: bool
    broken: tuple[str, ...]

    def has(self, extension: str) -> bool:
        return extension in self.device.extensions.split()


def build(context: Any, device: Any, source: str, *names: str) -> list[Any]:
    """The kernels of these names of a program. Raises pyopencl's error with the driver's log.

    Without warnings, which drivers print on the terminal; with division and square root that round correctly, where
    the device offers them.
    """
    exact = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    options = ["-w", "-cl-fp32-correctly-rounded-divide-sqrt"] if exact else ["-w"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(context, source).build(options=options)
        return [cl.Kernel(program, name) for name in names]


def texels(array: np.ndarray[Any, Any]) -> Any:
    """The format of an image of four float16 or float32 a texel."""
    kind = cl.channel_type.HALF_FLOAT if array.dtype == np.float16 else cl.channel_type.FLOAT
    return cl.ImageFormat(cl.channel_order.RGBA, kind)


def has_images(found: Found) -> bool:
    """Whether the device has 2-D images of both formats, of the size that OpenCL promises at least."""
    device = found.device
    if not device.image_support or min(device.image2d_max_width, device.image2d_max_height) < LARGEST_IMAGE:
        return False
    formats = cl.get_supported_image_formats(found.context, cl.mem_flags.READ_ONLY, cl.mem_object_type.IMAGE2D)
    wanted = {texels(np.empty(0, np.dtype(kind))) for kind in (np.float16, np.float32)}
    return wanted <= set(formats)


@cache
def find() -> Found:
    """The device that $RULEWRIGHT_OPENCL or $PYOPENCL_CTX names ("0:1", or parts of names), else the first that works.

    Raises DeviceError with the reason of each that does not.
    """
    named = os.environ.get("RULEWRIGHT_OPENCL") or os.environ.get("PYOPENCL_CTX")
    broken: list[str] = []
    for device in _named(named) if named else _all(broken):
        context = cl.Context([device])
        try:
            shares = bool(device.type & cl.device_type.CPU) and _works(context, device, shares=True)
            if shares or _works(context, device, shares=False):
                return Found(context, device, shares, tuple(broken))
            reason = "a trial kernel gave a wrong result"
        except cl.Error as problem:
            reason = _shortened(str(problem))
        broken.append(f"{device.platform.name}, {device.name.strip()}: {reason}")
    listed = "".join(f"\n  {reason}" for reason in broken)
    raise DeviceError(f"no OpenCL device works; install a driver (for CPUs: PoCL){listed and ':'}{listed}")


def _all(broken: list[str]) -> Iterator[Any]:
    """Every device of every platform. A platform that cannot list its devices is reported as broken."""
    try:
        platforms = cl.get_platforms()
    except cl.Error as problem:
        raise DeviceError(f"no OpenCL platform; install a driver (for CPUs: PoCL): {problem}") from problem
    for platform in platforms:
        try:
            yield from platform.get_devices()
        except cl.Error as problem:
            broken.append(f"{platform.name}: {_shortened(str(problem))}")


def _named(selector: str) -> list[Any]:
    """The device that pyopencl finds by numbers or names with colons between them."""
    try:
        context = cl.create_some_context(interactive=False, answers=selector.split(":"))
    except (cl.Error, RuntimeError, ValueError, IndexError) as problem:
        raise DeviceError(
            f"RULEWRIGHT_OPENCL or PYOPENCL_CTX is {selector!r}, which names no OpenCL device: {problem}"
        ) from problem
    return list(context.devices)


def _works(context: Any, device: Any, *, shares: bool) -> bool:
    """Whether a trial kernel gives the right result, on arrays whose alignment is only that of their elements."""
    source = np.arange(33, dtype=np.float32)[1:]
    target = np.zeros(33, np.float32)[1:]
    flags = cl.mem_flags
    place = flags.USE_HOST_PTR if shares else flags.COPY_HOST_PTR
    queue = cl.CommandQueue(context, device)
    data0 = cl.Buffer(context, flags.READ_WRITE | place, hostbuf=target)
    data1 = cl.Buffer(context, flags.READ_ONLY | place, hostbuf=source)
    (kernel,) = build(context, device, _TRIAL, "trial")
    kernel(queue, (8,), None, data0, data1)
    fetch(queue, data0, target, shares=shares)
    return bool(np.array_equal(target, source * 2 + 2))


def fetch(queue: Any, buffer: Any, array: np.ndarray[Any, Any], *, shares: bool) -> None:
    """Waits until the array holds what kernels wrote into its buffer."""
    if shares:
        mapped, _ = cl.enqueue_map_buffer(queue, buffer, cl.map_flags.READ, 0, array.shape, array.dtype)
        mapped.base.release(queue)
    else:
        cl.enqueue_copy(queue, array, buffer)


def _shortened(message: str) -> str:
    """The first lines of a driver's message, on one line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return "; ".join(lines[:3])[:300]
