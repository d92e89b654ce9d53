"""What a kernel must compute, by NumPy: the oracle that every device is compared with.

Floats are computed in float64 and rounded to the node's type after each node, sums after the last term; integers
wrap exactly. Nothing here shares code with the lowering: views are evaluated on whole index arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine import dtypes, ops
from ..engine.arrays import Array, apply, from_storage, held_dtype, numpy_dtype, rounded, to_bfloat16, to_storage
from ..engine.dtypes import DType
from ..engine.errors import KernelError
from .accuracy import Error, agrees, elementwise_error, reduction_error, stored_error
from .kernel import Argument, Const, Elementwise, Kernel, Load, Reduce, Store
from .sizes import Size, evaluate
from .view import View, Views

Values = Mapping[str, int]
Integers = npt.NDArray[np.int64]


def default_variables(kernel: Kernel) -> dict[str, int]:
    """A value for each variable, about the middle of its bounds."""
    return {name: (low + high + 1) // 2 for name, (low, high) in kernel.variables.items()}


def iteration_points(kernel: Kernel, variables: Values) -> int:
    """How many index tuples the kernel visits."""
    return math.prod(evaluate(size, variables) for size in kernel.axis_sizes)


def make_buffers(kernel: Kernel, variables: Values, seed: int = 0) -> list[Array]:
    """Reproducible contents for every buffer, flat, by slot: small numbers of both signs."""
    random = np.random.default_rng(seed)
    return [
        _contents(argument.dtype, size, random)
        for argument, size in zip(kernel.arguments, buffer_sizes(kernel, variables), strict=True)
    ]


def buffer_sizes(kernel: Kernel, variables: Values) -> list[int]:
    """The number of elements of each buffer: as declared, or what the views reach for these variables."""
    reached = dict.fromkeys(range(len(kernel.arguments)), 1)
    for node in kernel.nodes:
        if isinstance(node, Load | Store):
            position, valid = _positions(node.views, variables)
            highest = int(np.max(np.where(valid, position, 0), initial=0)) + 1
            reached[node.buffer] = max(reached[node.buffer], highest)
    sizes = []
    for argument in kernel.arguments:
        shape = argument.shape
        declared = 0 if shape is None else math.prod(evaluate(size, variables) for size in shape)
        sizes.append(declared if shape is not None else reached[argument.slot])
    return sizes


def _contents(dtype: DType, size: int, random: np.random.Generator) -> Array:
    if dtype.is_float:
        values = random.uniform(-2.0, 2.0, size).astype(np.float32)
        return to_bfloat16(values) if dtype is dtypes.bfloat16 else values.astype(numpy_dtype(dtype))
    if dtype is dtypes.bool_:
        return random.integers(0, 2, size).astype(np.bool_)
    return random.integers(0 if dtype.kind == "uint" else -10, 11, size).astype(numpy_dtype(dtype))


def evaluate_kernel(kernel: Kernel, buffers: Sequence[Array], variables: Values | None = None) -> list[Array]:
    """The contents of the written buffers after the kernel, by slot. `buffers` are flat and stay as they are."""
    evaluation = _Evaluation(kernel, buffers, dict(variables or {}), bounded=False)
    return [evaluation.held[argument.slot] for argument in kernel.outputs]


def evaluate_with_errors(
    kernel: Kernel, buffers: Sequence[Array], variables: Values | None = None
) -> list[tuple[Array, Error]]:
    """As `evaluate_kernel`, and for each element how far a right result may be from it (None: not at all)."""
    evaluation = _Evaluation(kernel, buffers, dict(variables or {}), bounded=True)
    return [(evaluation.held[argument.slot], evaluation.errors.get(argument.slot)) for argument in kernel.outputs]


class _Evaluation:
    """One run over the nodes in order, whole arrays at a time; a value is dropped after its last use."""

    def __init__(self, kernel: Kernel, buffers: Sequence[Array], variables: Values, *, bounded: bool) -> None:
        self.kernel, self.buffers, self.variables, self.bounded = kernel, buffers, variables, bounded
        self.held = [np.array(buffer) for buffer in buffers]
        self.errors: dict[int, Error] = {}  # of the written buffers
        self.done: list[tuple[npt.NDArray[Any], Error]] = []
        nothing: tuple[npt.NDArray[Any], Error] = (np.zeros(()), None)
        last_use = {source: number for number, node in enumerate(kernel.nodes) for source in _sources(node)}
        with np.errstate(all="ignore"):
            for number, node in enumerate(kernel.nodes):
                self.done.append(self._node(number))
                for source in _sources(node):
                    if last_use[source] == number:
                        self.done[source] = nothing

    def _node(self, number: int) -> tuple[npt.NDArray[Any], Error]:
        node, dtype = self.kernel.nodes[number], self.kernel.types[number]
        match node:
            case Load():
                return self._load(number, node), None
            case Const():
                _, valid = _positions(node.views, self.variables)
                constant = evaluate(node.value, self.variables) if isinstance(node.value, Size) else node.value
                held = held_dtype(node.dtype)
                return np.where(valid, np.array(constant).astype(held), np.zeros((), held)), None
            case Reduce():
                value, error = self.done[node.src]
                result = _reduced(node, value, dtype)
                bound = reduction_error(node.op, dtype, value, error, node.axes, result) if self.bounded else None
                return result, bound
            case Elementwise():
                source = self.kernel.types[node.src[-1]]
                operands, errors = zip(*(self.done[one] for one in node.src), strict=True)
                result = apply(node.op, source, dtype, operands)
                return result, (
                    elementwise_error(node.op, source, dtype, operands, errors, result) if self.bounded else None
                )
            case Store():
                return self._store(number, node)

    def _load(self, number: int, node: Load) -> npt.NDArray[Any]:
        position, valid = _positions(node.views, self.variables)
        data = self.buffers[node.buffer]
        flat = np.where(valid, position, 0)
        _check_reach(number, node, flat, data.size if valid.any() else 1)
        taken = from_storage(data, node.dtype)[flat] if data.size else np.zeros(flat.shape, numpy_dtype(node.dtype))
        result = np.where(valid, taken, np.zeros((), taken.dtype))
        return result.astype(np.float32) if node.image else result

    def _store(self, number: int, node: Store) -> tuple[npt.NDArray[Any], Error]:
        source, error = self.done[node.src]
        position, valid = _positions(node.views, self.variables)
        value = np.broadcast_to(source, position.shape)
        buffer = self.held[node.buffer]
        _check_reach(number, node, position[valid], buffer.size)
        buffer[position[valid]] = to_storage(value[valid], node.dtype)
        error = stored_error(node.dtype, source, error)
        if self.bounded and (error is not None or self.errors.get(node.buffer) is not None):
            of_buffer = self.errors.get(node.buffer)
            bound = np.zeros(buffer.size) if of_buffer is None else of_buffer
            bound[position[valid]] = np.broadcast_to(0.0 if error is None else error, position.shape)[valid]
            self.errors[node.buffer] = bound
        return value, None


def _sources(node: object) -> tuple[int, ...]:
    if isinstance(node, Elementwise):
        return node.src
    return (node.src,) if isinstance(node, Reduce | Store) else ()


def _check_reach(number: int, node: Load | Store, position: Integers, size: int) -> None:
    """NumPy counts negative positions from the end: here they are as wrong as those past the end."""
    if position.size and not 0 <= (low := int(position.min())) <= (high := int(position.max())) < size:
        at = low if low < 0 else high
        raise KernelError(f"nodes[{number}]: element {at} of buffer {node.buffer}, which has {size}; mend the views")


# --- views -----------------------------------------------------------------------------------------------------------


def _positions(views: Views, values: Values) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Flat positions and validity of every index tuple of the last view."""
    shape = tuple(evaluate(size, values) for size in views[-1].shape)
    indices = list(np.indices(shape, dtype=np.int64, sparse=True))
    valid: npt.NDArray[np.bool_] = np.ones((1,) * len(shape), np.bool_)
    position: Integers = np.zeros(shape, np.int64)
    for number, view in enumerate(reversed(views)):
        if number:
            sizes = [evaluate(size, values) for size in view.shape]
            indices = (
                list(np.unravel_index(np.clip(position, 0, max(math.prod(sizes) - 1, 0)), sizes))
                if math.prod(sizes)
                else []
            )
            if not indices:
                indices = [position] * len(sizes)
        valid = valid & _inside(view, indices, values)
        position = np.zeros((1,) * len(shape), np.int64) + evaluate(view.offset, values)
        for index, stride in zip(indices, view.strides, strict=True):
            position = position + index * evaluate(stride, values)
        position = np.broadcast_to(position, shape)
    return position, np.broadcast_to(valid, shape)


def _inside(view: View, indices: Sequence[npt.NDArray[Any]], values: Values) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = np.ones((1,) * (indices[0].ndim if indices else 0), np.bool_)
    for index, interval in zip(indices, view.mask or (), strict=False):
        low, high = (evaluate(bound, values) for bound in interval)
        valid = valid & (index >= low) & (index < high)
    return valid


# --- values ---------------------------------------------------------------------------------------------------------


def _reduced(node: Reduce, source: npt.NDArray[Any], dtype: DType) -> npt.NDArray[Any]:
    wide = source.astype(np.float64) if dtype.is_float else source
    if dtype is dtypes.bool_:
        function: Any = {ops.ADD: np.any, ops.MAX: np.any, ops.MUL: np.all, ops.MIN: np.all}[node.op]
        return np.asarray(function(wide, axis=node.axes, keepdims=True))
    function = {ops.ADD: np.add, ops.MAX: np.maximum, ops.MUL: np.multiply, ops.MIN: np.minimum}[node.op]
    start = 0 if node.op is ops.ADD else 1 if node.op is ops.MUL else _start(node, dtype)
    result = function.reduce(wide, axis=node.axes, keepdims=True, initial=start, dtype=wide.dtype)
    return rounded(np.asarray(result), dtype)


def _start(node: Reduce, dtype: DType) -> int | float:
    return dtype.lowest if node.op is ops.MAX else dtype.highest


# --- comparison ------------------------------------------------------------------------------------------------------


def differences(kernel: Kernel, before: Sequence[Array], after: Sequence[Array], variables: Values) -> Iterator[str]:
    """What each wrong output has instead, given all buffers by slot before and after the kernel ran."""
    expected = evaluate_with_errors(kernel, before, variables)
    for argument, (wanted, error) in zip(kernel.outputs, expected, strict=True):
        problem = mismatch(argument, after[argument.slot], wanted, error)
        if problem is not None:
            yield problem


def mismatch(argument: Argument, got: Array, expected: Array, error: Error) -> str | None:
    """What is wrong with an output: None if each element is within its error, NaN equal to NaN."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{argument.name}: {got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
    a, b = from_storage(got, argument.dtype), from_storage(expected, argument.dtype)
    with np.errstate(all="ignore"):
        wrong = ~agrees(argument.dtype, a, b, error)
    if not wrong.any():
        return None
    at = int(np.argmax(wrong))
    allowed = "" if error is None else f" and may be off by {error[at]:.3g}"
    return (
        f"{argument.name}[{at}] is {a[at]}, NumPy has {b[at]}{allowed} ({wrong.sum()} of {wrong.size} elements differ)"
    )
