"""Whole kernels from the Python form, on every device, against NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rulewright as rw
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine.errors import KernelError, LaunchError
from rulewright.kernels.reference import differences, make_buffers
from rulewright.runtimes import devices

DEVICES = ["llvm", "c", "opencl", "interpreter"]
Array = Any


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    status = devices.probe(name)
    if not status.present:
        if name in os.environ.get("RULEWRIGHT_REQUIRE_DEVICES", "").split(","):
            pytest.fail(f"device {name} is required here and absent: {status.reason}")
        pytest.skip(f"device {name} is absent: {status.reason}")
    return name


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x: rw.Tensor) -> rw.Tensor:
    e = rw.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def numpy_softmax(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x: rw.Tensor) -> rw.Tensor:
    d = x - x.mean(1)[:, None]
    return d / rw.sqrt((d * d).mean(1)[:, None] + 1e-5)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Array], list[tuple[int, ...]]]] = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, [(5, 8), (5, 8)]),
    "broadcast": (lambda a, b: a * b[None], lambda a, b: a * b, [(6, 16), (16,)]),
    "matmul": (lambda a, b: a @ b, lambda a, b: a @ b, [(12, 20), (20, 16)]),
    "matmul-odd": (lambda a, b: a @ b, lambda a, b: a @ b, [(5, 7), (7, 3)]),
    "einsum": (
        lambda a, b: rw.einsum("bik,bkj->bij", a, b), lambda a, b: np.einsum("bik,bkj->bij", a, b),
        [(2, 4, 6), (2, 6, 8)],
    ),
    "sum": (lambda a: a.sum(), lambda a: a.sum(), [(40, 50)]),
    "sum-rows": (lambda a: a.sum(1), lambda a: a.sum(1), [(9, 64)]),
    "max-columns": (lambda a: a.max(0), lambda a: a.max(0), [(9, 64)]),
    "prod": (lambda a: a.prod(1), lambda a: a.prod(1), [(3, 5)]),
    "transpose": (lambda a: a.T, lambda a: a.T, [(24, 16)]),
    "reshape": (lambda a: a.T.reshape(8, 12) + 1, lambda a: a.T.reshape(8, 12) + 1, [(12, 8)]),
    "slices": (lambda a: a[::-2, 3:9], lambda a: a[::-2, 3:9], [(10, 12)]),
    "pad": (lambda a: rw.exp(a).pad([(1, 2), (0, 3)]), lambda a: np.pad(np.exp(a), [(1, 2), (0, 3)]), [(5, 13)]),
    "flip": (lambda a: a.flip(0, 1), lambda a: a[::-1, ::-1], [(4, 6)]),
    "softmax": (softmax, numpy_softmax, [(6, 32)]),
    "layer-norm": (
        layer_norm, lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), [(6, 32)],
    ),
    "where": (lambda a: rw.where(a > 0, a, a * 0.1), lambda a: np.where(a > 0, a, a * 0.1), [(7, 16)]),
    "two-outputs": (lambda a: [a.sum(1), a.max(1)], lambda a: (a.sum(1), a.max(1)), [(8, 24)]),
    "sigmoid": (rw.sigmoid, lambda a: 1 / (1 + np.exp(-a)), [(3, 16)]),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["default", "none"])
@pytest.mark.parametrize("name", CASES)
def test_kernel_equals_numpy(device: str, name: str, schedule: str) -> None:
    expression, reference, shapes = CASES[name]
    arrays = [floats(*shape, seed=n) for n, shape in enumerate(shapes)]
    outputs = expression(*(rw.tensor(f"x{n}", shape) for n, shape in enumerate(shapes)))
    program = rw.compile(rw.kernel(outputs), device, schedule)
    got, expected = program(*arrays), reference(*arrays)
    for a, b in zip(
        got if isinstance(got, tuple) else (got,), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=1e-5, err_msg=program.source)


@pytest.mark.parametrize("schedule", [
    "UPCAST(1, 4)", "UPCAST(0, 2) UPCAST(1, 4)", "UPCAST(1, 4) UPCAST(0, 2)", "UNROLL(2, 4)", "UNROLL(2, 0)",
    "UPCAST(1, 8) UNROLL(2, 4)", "PARTIAL(2, 4)", "PARTIAL(2, 0)", "PARTIAL(2, 5) UNROLL(2, 2) UPCAST(0, 2)",
    "UPCAST(0, 3) UNROLL(2, 2) UNROLL(2, 2)", "UPCAST(1, 16)",
])  # fmt: skip
def test_schedules_do_not_change_the_result(device: str, schedule: str) -> None:
    a, b = floats(12, 20), floats(20, 16, seed=1)
    product = rw.kernel((rw.tensor("a", (12, 20))[:, None, :] * rw.tensor("b", (20, 16)).T[None]).sum(2))
    program = rw.compile(product, device, schedule)
    np.testing.assert_allclose(program(a, b), a @ b, rtol=1e-4, atol=1e-5, err_msg=program.source)
    assert rw.compile(product, device, program.schedule).source == program.source


def test_threads_and_groups_do_not_change_the_result(device: str) -> None:
    a = floats(16, 64)
    kernel = rw.kernel(rw.tensor("a", (16, 64)) * 2.0)
    option = "LOCAL(1, 16) LOCAL(0, 2)" if device in ("opencl", "interpreter") else "THREAD(0, 2)"
    assert np.array_equal(rw.compile(kernel, device, option)(a), a * 2)


@pytest.mark.parametrize(("schedule", "problem"), [
    ("UPCAST(0, 5)", "5 does not divide the 12 steps of axis 0"),
    ("UPCAST(7, 2)", "there is no axis 7; the kernel has 3"),
    ("UPCAST(2, 2)", "axis 2 is reduced; UNROLL it"),
    ("UNROLL(0, 2)", "axis 0 is not reduced; UPCAST it"),
    ("PARTIAL(0, 2)", "axis 0 is not reduced; UPCAST it"),
    ("LOCAL(0, 2)", "cannot have group threads on llvm"),
    ("THREAD(2, 2)", "axis 2 is reduced"),
    ("THREAD(0, 2) THREAD(1, 2)", "axis 1 is not the first"),
    ("SIDEWAYS(1, 2)", "not a schedule option"),
])  # fmt: skip
def test_illegal_schedules_are_refused_with_the_reason(schedule: str, problem: str) -> None:
    product = rw.kernel((rw.tensor("a", (12, 20))[:, None, :] * rw.tensor("b", (20, 16)).T[None]).sum(2))
    with pytest.raises(KernelError, match=problem):
        rw.compile(product, "llvm", schedule)


@pytest.mark.parametrize(("device", "offset", "loads", "stores"), [
    ("interpreter", 0, 2, 1), ("interpreter", 1, 0, 1), ("llvm", 1, 2, 1),
])  # fmt: skip
def test_accesses_become_vectors_where_they_are_aligned_or_need_not_be(
    device: str, offset: int, loads: int, stores: int
) -> None:
    width = 16
    a, b = rw.tensor("a", (8, 32)), rw.tensor("b", (8, 32))
    kernel = rw.kernel(a[:, offset : offset + width] + b[:, offset : offset + width])
    program = rw.compile(kernel, device, "UPCAST(1, 4)")
    vectors = [node for node in program.uops if node.op.name == "load" and node.dtype.lanes == 4]
    stored = [node for node in program.uops if node.op.name == "store" and node.src[2].dtype.lanes == 4]
    assert (len(vectors), len(stored)) == (loads, stores), program.source


def test_symbolic_sizes_are_bound_at_launch(device: str) -> None:
    n = rw.var("n", 1, 100)
    rows = rw.tensor("x", (n, 4))
    doubled, summed = rw.compile(rw.kernel(rows * 2 + 1), device), rw.compile(rw.kernel(rows.sum(0)), device)
    for count in (1, 7, 100):
        x = floats(count, 4)
        assert np.array_equal(doubled(x, n=count), x * 2 + 1)
        np.testing.assert_allclose(summed(x, n=count), x.sum(0, dtype=np.float64), rtol=1e-4, atol=1e-5)
    with pytest.raises(LaunchError, match=r"n = 101 is outside its bounds 1\.\.100"):
        doubled(floats(101, 4), n=101)
    with pytest.raises(LaunchError, match="pass the variable n"):
        doubled(floats(3, 4))


def test_launches_that_do_not_fit_are_refused() -> None:
    program = rw.compile(rw.kernel(rw.tensor("a", (4, 4)) + rw.tensor("b", (4, 4))))
    a = floats(4, 4)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: program(a), "missing input b"),
        (lambda: program(a, a, a), "takes 2 inputs"),
        (lambda: program(a, a.astype(np.float64)), "b must be float32, got float64"),
        (lambda: program(a, a[:2]), r"b must have the shape \(4, 4\), got \(2, 4\)"),
        (lambda: program(a, c=a), "has no argument c"),
        (lambda: program(a, a, a=a), "a was passed twice"),
    ]
    for call, problem in calls:
        with pytest.raises(LaunchError, match=problem):
            call()


# --- traps -----------------------------------------------------------------------------------------------------------


def test_maximum_of_nan_is_nan(device: str) -> None:
    a = np.array([1.0, np.nan, -np.inf, 3.0], np.float32)
    b = np.array([np.nan, 2.0, -np.inf, 1.0], np.float32)
    program = rw.compile(rw.kernel(rw.maximum(rw.tensor("a", (4,)), rw.tensor("b", (4,)))), device)
    assert np.array_equal(program(a, b), np.maximum(a, b), equal_nan=True)


def test_floats_are_not_folded_where_a_bit_would_change(device: str) -> None:
    x = np.array([-0.0, np.inf, np.nan, 1.0], np.float32)
    t = rw.tensor("x", (4,))
    with np.errstate(all="ignore"):
        cases = [(t * 0.0, x * np.float32(0)), (t - t, x - x), (t / t, x / x), (t + 0.0, x + np.float32(0))]
    for expression, expected in cases:
        got = rw.compile(rw.kernel(expression), device)(x)
        assert isinstance(got, np.ndarray)
        assert np.array_equal(got, expected, equal_nan=True)
        number = ~np.isnan(expected)
        assert np.array_equal(np.signbit(got[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_wrap_and_division_floors(device: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    a = np.array([info.min, info.max, 7, info.max - 3, 5, 100], dtype)
    b = np.array([3, 2, 3, 7, 4, 9], dtype)
    x, y = rw.tensor("a", (6,), dtype), rw.tensor("b", (6,), dtype)
    four = np.array(4, dtype)
    with np.errstate(all="ignore"):
        cases = [(x + y, a + b), (x * y, a * b), (-x + y * 0, -a), (x // y, a // b), (x % y, a % b)]
        cases.append(((x * 4) // 4 + y * 0, a * four // four))
    for expression, expected in cases:
        assert np.array_equal(rw.compile(rw.kernel(expression), device)(a, b), expected)


def test_half_is_stored_and_rounded_once(device: str) -> None:
    a, b = floats(16).astype(np.float16), floats(16, seed=1).astype(np.float16)
    program = rw.compile(rw.kernel(rw.tensor("a", (16,), "float16") * rw.tensor("b", (16,), "float16")), device)
    assert np.array_equal(program(a, b), a * b)


def test_an_output_that_is_padded_reads_nothing_outside(device: str) -> None:
    x = floats(6)
    assert np.array_equal(rw.compile(rw.kernel(rw.tensor("x", (6,)).pad([(3, 7)])), device)(x), np.pad(x, (3, 7)))


def test_the_source_is_the_same_in_every_process() -> None:
    text = (
        "import rulewright as rw; x = rw.tensor('x', (16, 32)); e = rw.exp(x - x.max(1, keepdims=True));"
        "print(rw.compile(rw.kernel(e / e.sum(1, keepdims=True)), 'llvm').source)"
    )
    sources = {
        subprocess.run(
            [sys.executable, "-c", text], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(sources) == 1


# --- random kernels ----------------------------------------------------------------------------------------------------


@st.composite
def kernels(draw: st.DrawFn) -> rw.Kernel:
    """Random views, operators and reductions over small shapes."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 8)))
    value: rw.Tensor = rw.tensor("x", shape)
    for _ in range(draw(st.integers(1, 6))):
        match draw(st.sampled_from(["flip", "T", "pad", "slice", "reshape", "add", "mul", "max", "relu", "where"])):
            case "flip":
                value = value.flip(draw(st.integers(0, value.ndim - 1)))
            case "T":
                value = value.T
            case "pad":
                value = value.pad([draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in value.shape])
            case "slice":
                value = value[draw(st.integers(0, len(value) - 1)) :: draw(st.sampled_from([1, 2, -1]))]
            case "reshape":
                value = value.reshape(-1, len(value))
            case "add":
                value = value + rw.tensor("y", (1, 1))
            case "mul":
                value = value * 1.5
            case "max":
                value = rw.maximum(value, value.flip(0))
            case "relu":
                value = rw.relu(value)
            case "where":
                value = rw.where(value > 0.25, value, -value)
    match draw(st.sampled_from(["none", "sum", "max", "softmax"])):
        case "sum":
            return rw.kernel(value.sum(draw(st.integers(0, 1))))
        case "max":
            return rw.kernel(value.max(0, keepdims=True) + value)
        case "softmax":
            return rw.kernel(softmax(value))
    return rw.kernel(value)


@settings(max_examples=60, deadline=None)
@given(kernels())
def test_random_kernels_equal_the_reference(kernel: rw.Kernel) -> None:
    buffers = make_buffers(kernel, {})
    for name in ("llvm", "interpreter"):
        for schedule in ("default", "none"):
            program = rw.compile(kernel, name, schedule)
            got = [buffer.copy() for buffer in buffers]
            program.run_in_place(got)
            problems = list(differences(kernel, buffers, got, {}))
            assert not problems, f"{name}, {schedule}: {problems}\n{rw.write_kernel(kernel)}\n{program.source}"
