"""The device `c`: compiles kernels with the C compiler of this machine and calls them through ctypes."""

from __future__ import annotations

import ctypes

from ..engine.linear import LinearKernel
from ..renderers.c import CONTRACT_FLAGS, FLAGS, CRenderer
from ..renderers.dialect import may_contract
from . import compiler
from .compiler import Compiler
from .native import NativeKernel

_HALF = """int works(double tiny) {
  _Float16 one = tiny * 2048, a = tiny, b = (long long)(tiny * 4096);
  return one + a + a == one && (double)(b * a) == tiny * 2 && (float)(_Float16)(1 + tiny + tiny * tiny * tiny) > 1;
}"""
"""Half a unit in the last place is lost twice if each operator rounds, and a double is rounded once."""

_HALF_STORAGE = """int works(double tiny) {
  __fp16 one = (float)(1 + tiny), more = (float)(1 + tiny * 3);
  return (float)one == 1 && (float)more == 1 + (float)tiny * 4;
}"""


class CRuntime:
    """Builds and runs C kernels."""

    name = "c"

    def __init__(self, found: Compiler | None = None) -> None:
        """Raises DeviceError if there is no compiler."""
        self._compiler = found or compiler.find()
        half = self._compiler.confirms(_HALF)
        half_storage = half or self._compiler.confirms(_HALF_STORAGE)
        widths = tuple(n for n in (16, 8, 4, 2) if n <= self._compiler.lanes)
        self.renderer = CRenderer(
            half=half, half_storage=half_storage, widths=widths, registers=self._compiler.registers
        )

    @property
    def description(self) -> str:
        return self._compiler.version

    def build(self, kernel: LinearKernel, source: str) -> NativeKernel:
        """Compiles, or takes what an earlier process compiled. Raises DeviceError with the compiler's message."""
        path = self._compiler.shared_object(source, CONTRACT_FLAGS if may_contract(kernel) else FLAGS)
        library = ctypes.CDLL(str(path))
        functions = [library[self.renderer.function_name(part)] for part in kernel.parts]
        addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
        return NativeKernel(addresses, kernel, library)
