"""The device `c`: compiles kernels with the C compiler of this machine and calls them through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial

from ..engine.linear import LinearKernel
from ..renderers.c import CONTRACT_FLAGS, FLAGS, CRenderer
from ..renderers.dialect import may_contract
from . import compiler
from .base import Array
from .compiler import Compiler
from .threads import run_threads

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
        self.renderer = CRenderer(half=half, half_storage=half_storage, widths=widths)

    @property
    def description(self) -> str:
        return self._compiler.version

    def build(self, kernel: LinearKernel, source: str) -> CKernel:
        """Compiles, or takes what an earlier process compiled. Raises DeviceError with the compiler's message."""
        path = self._compiler.shared_object(source, CONTRACT_FLAGS if may_contract(kernel) else FLAGS)
        return CKernel(ctypes.CDLL(str(path)), self.renderer.function_name(kernel), kernel)


class CKernel:
    """A compiled kernel. The library stays loaded as long as this object lives."""

    def __init__(self, library: ctypes.CDLL, function: str, kernel: LinearKernel) -> None:
        self._function = library[function]
        self._function.restype = None
        self._variables = [variable.name for variable in kernel.variables]
        self._threads = kernel.threads

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        arguments: list[ctypes.c_void_p | ctypes.c_int32] = [ctypes.c_void_p(b.ctypes.data) for b in buffers]
        arguments += [ctypes.c_int32(variables[name]) for name in self._variables]
        if self._threads > 1:
            run_threads(partial(_run_one, self._function, arguments), self._threads)
        else:
            self._function(*arguments)


def _run_one(
    function: ctypes._NamedFuncPointer, arguments: list[ctypes.c_void_p | ctypes.c_int32], thread: int
) -> None:
    function(*arguments, ctypes.c_int32(thread))
