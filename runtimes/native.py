"""Kernels that are functions in this process: called through ctypes, on all of their threads at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..engine.linear import LinearKernel
from .base import Array, HostBound
from .threads import run_threads


class NativeKernel:
    """A compiled function of the buffers' addresses, the variables and, where it has several, the thread's number.

    `library` is what holds its code: it stays loaded as long as this object lives. Python's lock is released while the
    function runs.
    """

    def __init__(self, address: int, kernel: LinearKernel, library: object) -> None:
        self._library = library
        self._variables = tuple(variable.name for variable in kernel.variables)
        self._threads = kernel.threads
        numbers = len(self._variables) + (kernel.threads > 1)
        signature = [ctypes.c_void_p] * len(kernel.buffers) + [ctypes.c_int32] * numbers
        self._function = ctypes.CFUNCTYPE(None, *signature)(address)

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        self._call(buffers, variables)()

    def bind(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> HostBound:
        return HostBound(tuple(buffers), self._call(buffers, variables))

    def _call(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> Callable[[], object]:
        arguments = [buffer.__array_interface__["data"][0] for buffer in buffers]
        arguments += [variables[name] for name in self._variables]
        one = partial(self._function, *arguments)
        return one if self._threads <= 1 else partial(run_threads, one, self._threads)
