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
from .kernel import Const, Elementwise, Kernel, Load, Reduce, Store
from .sizes import Dim, Size, bounds, evaluate
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
    values = dict(variables or {})
    held = [np.array(buffer) for buffer in buffers]
    nodes: list[npt.NDArray[Any] | None] = []
    last_use = {source: number for number, node in enumerate(kernel.nodes) for source in _sources(node)}
    with np.errstate(all="ignore"):
        for number, node in enumerate(kernel.nodes):
            nodes.append(_node(kernel, number, nodes, buffers, held, values))
            for source in _sources(node):
                if last_use[source] == number:
                    nodes[source] = None
    return [held[argument.slot] for argument in kernel.outputs]


def _sources(node: object) -> tuple[int, ...]:
    if isinstance(node, Elementwise):
        return node.src
    return (node.src,) if isinstance(node, Reduce | Store) else ()


def _node(
    kernel: Kernel,
    number: int,
    done: list[npt.NDArray[Any] | None],
    buffers: Sequence[Array],
    held: list[Array],
    values: Values,
) -> npt.NDArray[Any] | None:
    node = kernel.nodes[number]
    match node:
        case Load():
            position, valid = _positions(node.views, values)
            data = buffers[node.buffer]
            flat = np.where(valid, position, 0)
            _check_reach(number, node, flat, data.size if valid.any() else 1)
            taken = from_storage(data, node.dtype)[flat] if data.size else np.zeros(flat.shape, numpy_dtype(node.dtype))
            result = np.where(valid, taken, np.zeros((), taken.dtype))
            return result.astype(np.float32) if node.image else result
        case Const():
            _, valid = _positions(node.views, values)
            constant = evaluate(node.value, values) if isinstance(node.value, Size) else node.value
            dtype = held_dtype(node.dtype)
            return np.where(valid, np.array(constant).astype(dtype), np.zeros((), dtype))
        case Reduce():
            source = done[node.src]
            assert source is not None
            return _reduced(node, source, kernel.types[number])
        case Elementwise():
            operands = [done[source] for source in node.src]
            source_type = kernel.types[node.src[-1]]
            return apply(node.op, source_type, kernel.types[number], [o for o in operands if o is not None])
        case Store():
            source = done[node.src]
            assert source is not None
            position, valid = _positions(node.views, values)
            value = np.broadcast_to(source, position.shape)
            _check_reach(number, node, position[valid], held[node.buffer].size)
            held[node.buffer][position[valid]] = to_storage(value[valid], node.dtype)
            return None


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
    for number, (argument, wanted) in enumerate(
        zip(kernel.outputs, evaluate_kernel(kernel, before, variables), strict=True)
    ):
        problem = mismatch(kernel, number, after[argument.slot], wanted)
        if problem is not None:
            yield problem


def mismatch(kernel: Kernel, output: int, got: Array, expected: Array) -> str | None:
    """What is wrong with output number `output`: None if it agrees within rounding, NaN equal to NaN.

    Floats may differ by a few units in the last place, more for long reductions; an integer that was cast from a
    computed float by one.
    """
    argument = kernel.outputs[output]
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{argument.name}: {got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
    with np.errstate(all="ignore"):
        wrong = ~_agree(kernel, output, got, expected)
    if not wrong.any():
        return None
    at = int(np.argmax(wrong.reshape(-1)))
    count = int(wrong.sum())
    return (
        f"{argument.name}[{at}] is {got.reshape(-1)[at]}, NumPy has {expected.reshape(-1)[at]} "
        f"({count} of {wrong.size} elements differ)"
    )


EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def _agree(kernel: Kernel, output: int, got: Array, expected: Array) -> npt.NDArray[np.bool_]:
    dtype = kernel.outputs[output].dtype
    if not dtype.is_float:
        exact = got == expected
        if dtype is dtypes.bool_ or not _truncates(kernel, kernel.outputs[output].slot):
            return np.asarray(exact)
        return np.asarray(exact | (np.abs(got.astype(np.float64) - expected.astype(np.float64)) <= 1))
    a, b = (from_storage(x, dtype).astype(np.float64) for x in (got, expected))
    steps = 1
    for node in kernel.nodes:
        if isinstance(node, Reduce):
            before = kernel.shapes[node.src]
            steps = max(steps, math.prod(_upper(before[axis]) for axis in node.axes))
    types = {t.name for t in kernel.types if t.is_float} | {dtype.name}
    epsilon = max(EPSILON[name] for name in types) * (16 + 2 * math.sqrt(steps))
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 1.0
    close = np.isfinite(b) & (np.abs(a - b) <= epsilon * (np.abs(b) + min(scale, 1e30) * 0.25 + 1e-30))
    return np.asarray(close | (a == b) | (np.isnan(a) & np.isnan(b)))


def _truncates(kernel: Kernel, slot: int) -> bool:
    """Whether what is stored in a buffer comes from a cast of a float to an integer; a comparison does not count."""
    pending = [node.src for node in kernel.stores if node.buffer == slot]
    seen = set(pending)
    while pending:
        number = pending.pop()
        node = kernel.nodes[number]
        if isinstance(node, Elementwise) and node.op is ops.CAST and kernel.types[node.src[0]].is_float:
            return True
        if kernel.types[number].is_int:
            new = set(_sources(node)) - seen
            seen |= new
            pending += sorted(new)
    return False


def _upper(size: Dim) -> int:
    return bounds(size)[1]
