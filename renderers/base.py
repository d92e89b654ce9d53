"""What every renderer is: a target's features as data, and a function from a linear kernel to source text."""

from __future__ import annotations

from typing import Protocol

from ..engine.linear import LinearKernel
from ..engine.target import Target


class Renderer(Protocol):
    """Prints kernels for one target."""

    target: Target

    def render(self, kernel: LinearKernel) -> str:
        """The source text. Raises RenderError naming the operator that the target cannot express."""
        ...
