"""What every runtime is: builds a rendered kernel and runs it on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..engine.arrays import Array, numpy_dtype
from ..engine.linear import LinearKernel
from ..renderers.base import Renderer

__all__ = ["Array", "Bound", "Executable", "HostBound", "Runtime", "numpy_dtype", "scratch_arrays"]


class Bound(Protocol):
    """A built kernel with its buffers: it runs again and again on them, and nothing is passed or copied."""

    def run(self) -> None:
        """Runs the kernel and waits for it."""
        ...

    def read(self, slot: int) -> Array:
        """What a buffer holds now, flat: its own memory where the device works there, else a copy."""
        ...

    def write(self, slot: int, array: Array) -> None:
        """Replaces what a buffer holds by a flat array of the same size and type."""
        ...


@dataclass(frozen=True, slots=True)
class HostBound:
    """A bound kernel on a device that works in the arrays' own memory."""

    buffers: tuple[Array, ...]
    run: Callable[[], object]

    def read(self, slot: int) -> Array:
        return self.buffers[slot]

    def write(self, slot: int, array: Array) -> None:
        self.buffers[slot][...] = array


def scratch_arrays(kernel: LinearKernel) -> list[Array]:
    """Memory for the buffers in which the parts of a kernel hand over what they found, in slot order."""
    return [np.empty(param.size or 0, numpy_dtype(param.dtype)) for param in kernel.buffers if param.scratch]


class Executable(Protocol):
    """A built kernel."""

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        """Runs the kernel. `buffers` are flat, contiguous and in slot order; written ones change in place."""
        ...

    def bind(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> Bound:
        """The kernel on these buffers, which it uses in place where the device can."""
        ...


class Runtime(Protocol):
    """A device: `name` as users write it, the renderer of its language, and how many threads it runs at once."""

    name: str
    renderer: Renderer

    @property
    def description(self) -> str:
        """What it is, with versions: one line for `rulewright devices`."""
        ...

    def build(self, kernel: LinearKernel, source: str) -> Executable:
        """Compiles. Raises DeviceError with the compiler's own message."""
        ...
