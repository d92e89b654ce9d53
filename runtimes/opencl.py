"""The device `opencl`: builds and launches kernels through pyopencl."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from ..engine import ops
from ..engine.errors import DeviceError, LaunchError
from ..engine.interpret import evaluate
from ..engine.linear import BufferParam, LinearKernel
from ..engine.ops import BufferArg, VarArg
from ..engine.uop import UOp, walk
from ..renderers.opencl import OpenCLRenderer
from . import opencl_device
from .base import Array, scratch_arrays
from .opencl_device import Found, build, cl, fetch

ALONE = 64
"""Threads for each core of a processor up to which each is a group of its own, so that the cores can share them out."""


class OpenCLRuntime:
    """Builds and runs OpenCL kernels on one device."""

    name = "opencl"

    def __init__(self, found: Found | None = None) -> None:
        """Raises DeviceError if no device works."""
        self._found = found or opencl_device.find()
        self._queue = cl.CommandQueue(self._found.context, self._found.device)
        device = self._found.device
        self.renderer = OpenCLRenderer(
            half=self._found.has("cl_khr_fp16"),
            float64=self._found.has("cl_khr_fp64"),
            group_threads=device.max_work_group_size,
            local_memory=device.local_mem_size,
            images=opencl_device.has_images(self._found),
            cpu_lanes=max(4, device.native_vector_width_float) if device.type & cl.device_type.CPU else 0,
        )

    @property
    def description(self) -> str:
        device = self._found.device
        return f"{device.name.strip()} by {device.platform.name} {device.driver_version}"

    @property
    def broken(self) -> tuple[str, ...]:
        """The devices that were tried before this one and did not work, with their reasons."""
        return self._found.broken

    def build(self, kernel: LinearKernel, source: str) -> OpenCLKernel:
        """Compiles. Raises DeviceError with the driver's message, or naming the limit that the kernel exceeds."""
        device = self._found.device
        for part in kernel.parts:
            _check_group(part, device)
        try:
            names = [self.renderer.function_name(part) for part in kernel.parts]
            built = build(self._found.context, device, source, *names)
            info = cl.kernel_work_group_info.WORK_GROUP_SIZE
            most = [one.get_work_group_info(info, device) for one in built]
        except cl.Error as problem:
            raise DeviceError(f"{self.description} did not build the kernel:\n{problem}") from problem
        for part, limit in zip(kernel.parts, most, strict=True):
            if math.prod(part.locals) > limit:
                raise _too_large(part, f"the device runs at most {limit} threads of this kernel together")
        alone = ALONE * device.max_compute_units if device.type & cl.device_type.CPU else 0
        parts = [Part(one, part, alone) for one, part in zip(built, kernel.parts, strict=True)]
        return OpenCLKernel(self._found, self._queue, parts, kernel)


def _check_group(kernel: LinearKernel, device: Any) -> None:
    """Raises DeviceError where a group is larger than the device admits, or needs more local memory than it has."""
    if math.prod(kernel.locals) > device.max_work_group_size:
        raise _too_large(kernel, f"the device has at most {device.max_work_group_size} threads a group")
    for dim, (size, most) in enumerate(zip(kernel.locals, device.max_work_item_sizes, strict=False)):
        if size > most:
            raise _too_large(kernel, f"the device has at most {most} threads in dimension {dim}")
    needed = sum(_bytes(node) for node in kernel.uops if node.op is ops.LOCAL)
    if needed > device.local_mem_size:
        raise DeviceError(
            f"kernel {kernel.name} needs {needed} bytes of local memory, the device has {device.local_mem_size}: "
            "choose smaller groups"
        )


def _too_large(kernel: LinearKernel, limit: str) -> DeviceError:
    sizes = " x ".join(map(str, kernel.locals))
    return DeviceError(f"kernel {kernel.name} has groups of {sizes} threads, but {limit}: choose smaller groups")


def _bytes(node: UOp) -> int:
    assert isinstance(node.arg, BufferArg)
    assert node.dtype.element is not None
    return (node.arg.size or 0) * node.dtype.element.bits // 8


class Part:
    """One of the functions that a kernel runs one after the other, and how many threads it has.

    Up to `alone` threads without groups of their own each are a group: drivers would put them together, on one core.
    """

    def __init__(self, built: Any, kernel: LinearKernel, alone: int) -> None:
        self.built, self._kernel, self._alone = built, kernel, alone

    def group(self, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
        """The size of a group, of a launch of these sizes; None where the driver chooses."""
        if self._kernel.locals or math.prod(sizes) <= self._alone:
            return (*self._kernel.locals, 1, 1, 1)[: len(sizes)]
        return None

    def global_sizes(self, variables: Mapping[str, int]) -> tuple[int, ...]:
        """How many threads there are in each dimension; local sizes are 1 where there are fewer than group sizes."""
        groups = [_size(node, variables) for node in self._kernel.groups]
        dims = max(len(groups), len(self._kernel.locals), 1)
        groups += [1] * (dims - len(groups))
        return tuple(n * k for n, k in zip(groups, (*self._kernel.locals, 1, 1, 1), strict=False))


class OpenCLKernel:
    """A built kernel."""

    def __init__(self, found: Found, queue: Any, parts: Sequence[Part], kernel: LinearKernel) -> None:
        self._found, self.queue, self._parts = found, queue, parts
        self.buffers = [param for param in kernel.buffers if not param.scratch]
        self.shares = found.shares  # whether the device works in the arrays' own memory
        self._scratch = [max(1, array.nbytes) for array in scratch_arrays(kernel)]
        self._variables = [variable.name for variable in kernel.variables]
        self._lock = Lock()  # a kernel's arguments are part of its state

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        bound = self.bind(buffers, variables)
        bound.launch()
        bound.collect()

    def bind(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> OpenCLBound:
        held = [self._hold(array, p) for array, p in zip(buffers, self.buffers, strict=True)]
        held += [cl.Buffer(self._found.context, cl.mem_flags.READ_WRITE, size) for size in self._scratch]
        return OpenCLBound(self, list(buffers), held, variables)

    def start(self, held: Sequence[Any], variables: Mapping[str, int]) -> None:
        """Puts one launch on these device buffers into the queue. Raises LaunchError if the device refuses it."""
        scalars = [np.int32(variables[name]) for name in self._variables]
        for part in self._parts:  # the queue keeps their order
            sizes = part.global_sizes(variables)
            group = part.group(sizes)
            if 0 in sizes:
                continue
            try:
                with self._lock:
                    part.built(self.queue, sizes, group, *held, *scalars)
            except cl.Error as problem:
                raise LaunchError(
                    f"the device refused the launch of {sizes} threads in groups of {group}: {problem}"
                ) from problem

    def _hold(self, array: Array, parameter: BufferParam) -> Any:
        """A device buffer or image for an array: the array's own memory where the device shares it, else a copy."""
        flags = cl.mem_flags
        if parameter.image:
            height, width = parameter.image
            place = flags.READ_ONLY | flags.COPY_HOST_PTR
            return cl.create_image(
                self._found.context, place, opencl_device.texels(array), (width, height), hostbuf=array
            )
        access = flags.READ_WRITE if parameter.written else flags.READ_ONLY
        if array.nbytes == 0:
            return cl.Buffer(self._found.context, access, 1)
        place = flags.USE_HOST_PTR if self._found.shares else flags.COPY_HOST_PTR
        return cl.Buffer(self._found.context, access | place, hostbuf=array)


class OpenCLBound:
    """A kernel on device buffers that stand for these arrays."""

    def __init__(
        self, kernel: OpenCLKernel, arrays: list[Array], held: list[Any], variables: Mapping[str, int]
    ) -> None:
        self._kernel, self._arrays, self._held, self._variables = kernel, arrays, held, dict(variables)

    def launch(self) -> None:
        """Begins a run without waiting for it."""
        self._kernel.start(self._held, self._variables)

    def run(self) -> None:
        self.launch()
        self._kernel.queue.finish()

    def read(self, slot: int) -> Array:
        if not self._kernel.buffers[slot].image:
            self._fetch(slot)
        return self._arrays[slot]

    def write(self, slot: int, array: Array) -> None:
        if array.nbytes:
            image = self._kernel.buffers[slot].image
            place: dict[str, Any] = {"origin": (0, 0), "region": image[::-1]} if image else {}
            cl.enqueue_copy(self._kernel.queue, self._held[slot], np.ascontiguousarray(array), **place)
            if image:  # is never fetched
                self._arrays[slot] = np.array(array)

    def collect(self) -> None:
        """Waits for the kernel, and for what it wrote."""
        written = [p.slot for p in self._kernel.buffers if p.written and self._arrays[p.slot].nbytes]
        for slot in written:
            self._fetch(slot)
        if not written:
            self._kernel.queue.finish()

    def _fetch(self, slot: int) -> None:
        array = self._arrays[slot]
        if array.nbytes:
            fetch(self._kernel.queue, self._held[slot], array, shares=self._kernel.shares)


def _size(node: UOp, variables: Mapping[str, int]) -> int:
    """A group size, which may depend on variables."""
    values = {v: variables[v.arg.name] for v in walk(node) if v.op is ops.VAR and isinstance(v.arg, VarArg)}
    size = evaluate(node, values)
    if not isinstance(size, int):
        raise LaunchError(f"the number of groups {node} has no value for {dict(variables)}")
    return size
