"""What every runtime is: builds a rendered kernel and runs it on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..engine.arrays import Array, numpy_dtype
from ..engine.linear import LinearKernel
from ..renderers.base import Renderer

__all__ = ["Array", "Executable", "Runtime", "numpy_dtype"]


class Executable(Protocol):
    """A built kernel."""

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        """Runs the kernel. `buffers` are flat, contiguous and in slot order; written ones change in place."""
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
