"""Kernels that are functions in this process: called through ctypes, on all of their threads at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..engine.linear import LinearKernel
from .base import Array, HostBound, scratch_arrays
from .threads import run_threads


class NativeKernel:
    """A compiled function of the buffers' addresses, the variables and, where it has several, the thread's number.

    Of a kernel in several parts each is a function, at the address of the same place in `addresses`. `library` is what
    holds their code: it stays loaded as long as this object, or a call that was bound, lives. Python's lock is released
    while a function runs.
    """

    def __init__(self, addresses: Sequence[int], kernel: LinearKernel, library: object) -> None:
        self._library = library
        self._kernel = kernel
        self._variables = tuple(variable.name for variable in kernel.variables)
        self._functions = [_function(address, part) for address, part in zip(addresses, kernel.parts, strict=True)]

    def __call__(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> None:
        self._call(buffers, variables)()

    def bind(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> HostBound:
        return HostBound(tuple(buffers), self._call(buffers, variables))

    def _call(self, buffers: Sequence[Array], variables: Mapping[str, int]) -> Callable[[], object]:
        held = [*buffers, *scratch_arrays(self._kernel)]
        arguments = [buffer.__array_interface__["data"][0] for buffer in held]
        arguments += [variables[name] for name in self._variables]
        steps = [_step(function, threads, arguments) for function, threads in self._functions]
        call = steps[0] if len(steps) == 1 else partial(_in_turn, steps)
        call.__dict__["needs"] = held, self._library  # the addresses alone would keep neither alive
        return call


def _function(address: int, part: LinearKernel) -> tuple[Callable[..., object], int]:
    """A part's function, and on how many threads it runs."""
    numbers = len(part.variables) + (part.threads > 1)
    signature = [ctypes.c_void_p] * len(part.buffers) + [ctypes.c_int32] * numbers
    return ctypes.CFUNCTYPE(None, *signature)(address), part.threads


def _step(function: Callable[..., object], threads: int, arguments: Sequence[int]) -> partial[Any]:
    one: partial[Any] = partial(function, *arguments)
    return one if threads <= 1 else partial(run_threads, one, threads)


def _in_turn(steps: Sequence[Callable[[], object]]) -> None:
    for step in steps:
        step()
