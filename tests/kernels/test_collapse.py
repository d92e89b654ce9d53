"""Reductions that need no loop: ramps, counts, series and gathers lose theirs and keep every value.

The near misses stand beside the hits: what only looks invariant, what a mantissa does not hold, and places outside of
a buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rulewright.engine.ops import AxisKind, RangeArg
from rulewright.kernels.json_form import read_kernel
from rulewright.program import Program, compile_kernel
from rulewright.runtimes import devices

DEVICES = ["interpreter", "llvm", "c", "opencl"]
Node = dict[str, Any]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    status = devices.probe(request.param)
    if not status.present:
        pytest.skip(f"device {request.param} is absent: {status.reason}")
    return str(request.param)


def view(shape: list[int], strides: list[int], offset: int = 0, mask: Any = None) -> Node:
    return {"shape": shape, "strides": strides, "offset": offset, "mask": mask}


def load(slot: int, dtype: str, shape: list[int], strides: list[int]) -> Node:
    return {"op": "load", "buffer": slot, "dtype": dtype, "views": [view(shape, strides)]}


def store(source: int, dtype: str, shape: list[int], strides: list[int]) -> Node:
    return {"op": "store", "buffer": 0, "dtype": dtype, "views": [view(shape, strides)], "src": [source]}


def node(op: str, *src: int, **more: Any) -> Node:
    return {"op": op, "src": list(src), **more}


def triangle(n: int, value: float, dtype: str, before: int = 0, after: int = 0) -> Node:
    """`value` at [i, r] with r + i >= n - 1, else 0: n rows of 2n - 1 places, of which each next is read one further on."""
    lead, trail = [1] * before, [1] * after
    none_before, none_after = [[0, 1]] * before, [[0, 1]] * after
    padded = view(
        [*lead, n, 2 * n - 1, *trail],
        [0] * (before + after + 2),
        mask=[*none_before, [0, n], [n - 1, 2 * n - 1], *none_after],
    )
    skewed = view([*lead, n, n, *trail], [*[0] * before, 2 * n, 1, *[0] * after])
    return {"op": "const", "value": value, "dtype": dtype, "views": [padded, skewed]}


def compiled(nodes: list[Node], device: str, schedule: str = "none", math: str = "strict") -> Program:
    return compile_kernel(read_kernel({"id": "test", "nodes": nodes}), device, schedule, math)


def loops(program: Program) -> int:
    """The loops of reductions that are left."""
    return sum(isinstance(n.arg, RangeArg) and n.arg.kind is AxisKind.REDUCE for n in program.uops)


@pytest.mark.parametrize("dtype", ["int32", "float32", "uint8"])
@pytest.mark.parametrize("value", [1, 3])
def test_ramp(device: str, dtype: str, value: int) -> None:
    n = 37
    nodes = [triangle(n, value, dtype), node("reduce_sum", 0, axes=[1]), store(1, dtype, [n, 1], [1, 0])]
    program = compiled(nodes, device)
    assert loops(program) == 0
    np.testing.assert_array_equal(program(), (np.arange(1, n + 1) * value).astype(dtype))


@pytest.mark.parametrize("value", [0.1, 5.0e6])
def test_ramp_whose_sums_are_rounded_keeps_its_loop(value: float) -> None:
    n = 37
    nodes = [triangle(n, value, "float32"), node("reduce_sum", 0, axes=[1]), store(1, "float32", [n, 1], [1, 0])]
    program = compiled(nodes, "interpreter")
    assert loops(program) == 1
    np.testing.assert_allclose(program(), np.arange(1, n + 1) * np.float32(value), rtol=1e-5)


def test_negative_ramp_that_counts_nothing_is_not_minus_zero(device: str) -> None:
    """No step of row 0 holds; 0 * -2.0 would be -0.0, and the sum of zeros is 0.0."""
    n = 5
    ramp = triangle(n, -2.0, "float32")
    ramp["views"][0]["mask"] = [[0, n], [n, 2 * n - 1]]
    program = compiled([ramp, node("reduce_sum", 0, axes=[1]), store(1, "float32", [n, 1], [1, 0])], device)
    assert loops(program) == 0
    found = program()
    np.testing.assert_array_equal(found, -2.0 * np.arange(n))
    assert not np.signbit(found[0])


def test_invariant_sums(device: str) -> None:
    """Σ x is x times the steps for integers; of floats only under `reassoc`."""
    x = np.array([5, -7, 100, 127], np.int8)
    nodes = [load(1, "int8", [4, 300], [1, 0]), node("reduce_sum", 0, axes=[1]), store(1, "int8", [4, 1], [1, 0])]
    program = compiled(nodes, device)
    assert loops(program) == 0
    np.testing.assert_array_equal(program(x), (x.astype(np.int64) * 300).astype(np.int8))


@pytest.mark.parametrize(("math", "expected"), [("strict", 1), ("fast", 0)])
def test_invariant_float_sum_needs_the_flag(math: str, expected: int) -> None:
    nodes = [
        load(1, "float32", [4, 300], [1, 0]),
        node("reduce_sum", 0, axes=[1]),
        store(1, "float32", [4, 1], [1, 0]),
    ]
    program = compiled(nodes, "interpreter", math=math)
    assert loops(program) == expected
    np.testing.assert_allclose(
        program(np.array([0.1, 2, -3, 1e6], np.float32)), np.array([30, 600, -900, 3e8], np.float32), rtol=1e-5
    )


def test_maximum_of_an_invariant_is_not_multiplied(device: str) -> None:
    x = np.array([0.5, -2.0, np.nan, 3.0], np.float32)
    nodes = [
        load(1, "float32", [4, 300], [1, 0]),
        node("reduce_max", 0, axes=[1]),
        store(1, "float32", [4, 1], [1, 0]),
    ]
    program = compiled(nodes, device)
    assert loops(program) == 0
    np.testing.assert_array_equal(program(x), x)


def test_maximum_of_a_masked_constant_keeps_its_loop(device: str) -> None:
    """Counting the steps is for sums only."""
    n = 6
    nodes = [triangle(n, 3, "int32"), node("reduce_max", 0, axes=[1]), store(1, "int32", [n, 1], [1, 0])]
    np.testing.assert_array_equal(compiled(nodes, device)(), np.full(n, 3))


def test_sum_of_the_ramp_itself_is_a_series(device: str) -> None:
    """Σ i over the ramp i + 1 is no invariant: it is n (n + 1) / 2."""
    n = 29
    nodes = [
        triangle(n, 1, "int32"),
        node("reduce_sum", 0, axes=[1]),
        node("reduce_sum", 1, axes=[0]),
        store(2, "int32", [1, 1], [0, 0]),
    ]
    program = compiled(nodes, device)
    assert loops(program) == 0
    assert program().item() == n * (n + 1) // 2


def gather_nodes(count: int, rows: int, columns: int, index: str = "int32", held: str = "float32") -> list[Node]:
    """out[b, e] = Σ_v where(v == indices[b], table[v, e], 0), the ramp v made by a sum."""
    full = [count, 1, rows, columns]
    ramp = triangle(rows, 1, index, before=1, after=1)
    one = {"op": "const", "value": 1, "dtype": index, "views": [view([1, 1, rows, 1], [0, 0, 0, 0])]}
    skewed = [0, 1, 2 * rows, 0]  # the ramp's own sum runs over axis 1, its places over axis 2
    ramp["views"][1]["strides"] = skewed
    nought = {"op": "const", "value": 0.0, "dtype": "float32", "views": [view(full, [0, 0, 0, 0])]}
    nodes: list[Node] = [
        ramp,
        node("reduce_sum", 0, axes=[1]),
        one,
        node("sub", 1, 2),
        load(1, index, [count, 1, 1, 1], [1, 0, 0, 0]),
        node("ne", 3, 4),
        nought,
        load(2, held, [1, 1, rows, columns], [0, 0, columns, 1]),
    ]
    table = len(nodes) - 1
    if held != "float32":
        nodes.append(node("cast", table, dtype="float32"))
        table = len(nodes) - 1
    nodes.append(node("where", 5, 6, table))
    nodes.append(node("reduce_sum", len(nodes) - 1, axes=[2]))
    nodes.append(store(len(nodes) - 1, "float32", [count, 1, 1, columns], [columns, 0, 0, 1]))
    return nodes


@pytest.mark.parametrize("held", ["float32", "float16"])
@pytest.mark.parametrize("columns", [1, 6])
@pytest.mark.parametrize("schedule", ["none", "default"])
def test_embedding_is_a_gather(device: str, columns: int, held: str, schedule: str) -> None:
    """Places outside the table read nothing: their rows are 0, as the sum over no place is."""
    rows, chosen = 11, np.array([3, 0, 10, 7, -1, 11, 2**31 - 1, -(2**31)], np.int32)
    table = np.arange(1, rows * columns + 1, dtype=held).reshape(rows, columns)
    table[3, 0], table[7, 0] = np.nan, -0.0
    program = compiled(gather_nodes(len(chosen), rows, columns, held=held), device, schedule)
    assert loops(program) == 0
    inside = (chosen >= 0) & (chosen < rows)
    expected = np.where(inside[:, None], table[np.where(inside, chosen, 0)], 0).astype(np.float32)
    found = program(chosen, table.ravel()).reshape(len(chosen), columns)
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[chosen == 7, 0]).any(), "a sum that starts with other steps' 0.0 is never -0.0"


def test_gather_by_a_type_that_wraps_before_the_end_of_the_table_keeps_its_loop(device: str) -> None:
    """Of 300 rows, int8 names row 44 also as 300 - 256: the sum has both."""
    rows, chosen = 300, np.array([5, -6, 43], np.int8)
    table = np.arange(rows, dtype=np.float32)
    found = compiled(gather_nodes(3, rows, 1, index="int8"), device)(chosen, table)
    ramp = np.arange(rows).astype(np.int8)
    expected = [table[ramp == one].sum() for one in chosen]
    np.testing.assert_array_equal(found.ravel(), np.array(expected, np.float32))
