"""What a program's callers pass: inputs by position or name, variables by name, each checked with a clear refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .engine.errors import LaunchError
from .kernels.kernel import Argument, Kernel
from .kernels.sizes import evaluate
from .runtimes.base import Array, numpy_dtype

Variables = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A buffer argument with what never changes from call to call."""

    argument: Argument
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...] | None  # None where it depends on variables


class Signature:
    """The arguments of one kernel. `name` is the program's, for messages."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel, self.name = kernel, name
        self.inputs = [argument.name for argument in kernel.inputs]
        self.parameters = {argument.name: _parameter(argument) for argument in kernel.arguments}

    def variables(self, named: Mapping[str, object]) -> dict[str, int]:
        """The value of every variable. Raises LaunchError where one is missing, no whole number or out of bounds."""
        values = {}
        for name, (low, high) in self.kernel.variables.items():
            value = named.get(name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                raise LaunchError(f"{self.name}: pass the variable {name}=… as a whole number in {low}..{high}")
            if not low <= value <= high:
                raise LaunchError(f"{self.name}: variable {name} = {value} is outside its bounds {low}..{high}")
            values[name] = int(value)
        return values

    def buffers(self, arrays: Sequence[object], named: Mapping[str, object], variables: Variables) -> list[Array]:
        """Contiguous arrays of the declared shapes, in slot order; outputs are always fresh.

        Raises LaunchError naming the argument that does not fit.
        """
        given = self._given(arrays, named)
        return [self._buffer(one, given.get(name), variables) for name, one in self.parameters.items()]

    def check_flat(self, buffers: Sequence[Array], variables: Variables) -> None:
        """Refuses, with a LaunchError, flat buffers in slot order that the kernel could not run on in place."""
        if len(buffers) != len(self.parameters):
            raise LaunchError(f"{self.name} has {len(self.parameters)} buffers, got {len(buffers)}")
        for (name, one), buffer in zip(self.parameters.items(), buffers, strict=True):
            if buffer.dtype != one.dtype or buffer.ndim != 1 or not buffer.flags.c_contiguous:
                raise LaunchError(f"{self.name}: {name} must be a flat contiguous array of {one.dtype}")
            shape = self._shape(one, variables)
            needed = self.kernel.reached(one.argument.slot, variables) if shape is None else prod(shape)
            if buffer.size < needed:
                raise LaunchError(f"{self.name}: {name} needs {needed} elements, got {buffer.size}")
            if one.argument.written and not buffer.flags.writeable:
                raise LaunchError(f"{self.name}: {name} is written, and this array is read-only")

    def _given(self, arrays: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
        if len(arrays) > len(self.inputs):
            listed = ", ".join(self.inputs)
            raise LaunchError(f"{self.name} takes {len(self.inputs)} inputs ({listed}), got {len(arrays)}")
        given: dict[str, object] = dict(zip(self.inputs, arrays, strict=False))
        for name, value in named.items():
            if name in self.kernel.variables:
                continue
            if name not in self.parameters:
                raise LaunchError(f"{self.name} has no argument {name}; it has {', '.join(self.parameters)}")
            if name in given:
                raise LaunchError(f"{self.name}: {name} was passed twice")
            given[name] = value
        missing = [name for name in self.inputs if name not in given]
        if missing:
            raise LaunchError(f"{self.name}: missing input {', '.join(missing)}")
        return given

    def _shape(self, one: Parameter, variables: Variables) -> tuple[int, ...] | None:
        """The declared shape; None where only the kernel's views say how far a flat buffer reaches."""
        declared = one.argument.shape
        if one.shape is not None or declared is None:
            return one.shape
        return tuple(evaluate(size, variables) for size in declared)

    def _buffer(self, one: Parameter, value: object, variables: Variables) -> Array:
        argument = one.argument
        shape = self._shape(one, variables)
        needed = 0 if shape is not None else self.kernel.reached(argument.slot, variables)
        if value is None:
            return np.zeros(needed if shape is None else shape, one.dtype)
        array = np.asarray(value)
        if array.dtype != one.dtype:
            raise LaunchError(
                f"{self.name}: {argument.name} must be {one.dtype}, got {array.dtype}; convert it with .astype"
            )
        if shape is not None and array.shape != shape:
            raise LaunchError(f"{self.name}: {argument.name} must have the shape {shape}, got {array.shape}")
        if array.size < needed:
            raise LaunchError(f"{self.name}: {argument.name} needs {needed} elements for {variables}, got {array.size}")
        return np.array(array, order="C") if argument.written else np.ascontiguousarray(array)


def _parameter(argument: Argument) -> Parameter:
    sizes = argument.shape
    concrete = tuple(size for size in sizes if isinstance(size, int)) if sizes is not None else None
    fixed = concrete if sizes is not None and concrete is not None and len(concrete) == len(sizes) else None
    return Parameter(argument, numpy_dtype(argument.dtype), fixed)
