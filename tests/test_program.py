"""Programs as callers use them: what they accept, what they refuse, and buffers that stay on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rulewright as rw
from rulewright.engine import dtypes
from rulewright.engine.errors import KernelError, LaunchError
from rulewright.kernels.kernel import Kernel, Load, Store
from rulewright.kernels.view import View
from rulewright.runtimes import devices

N = rw.var("n", 1, 8)
ROWS = rw.compile(rw.kernel(rw.tensor("a", (N, 4)) + rw.tensor("b", (4,))), "interpreter")
a, b = np.arange(12, dtype=np.float32).reshape(3, 4), np.ones(4, np.float32)


@pytest.fixture(params=list(devices.DEVICES))
def device(request: pytest.FixtureRequest) -> str:
    status = devices.probe(request.param)
    if not status.present:
        pytest.skip(f"device {request.param} is absent: {status.reason}")
    return str(request.param)


# --- calls -----------------------------------------------------------------------------------------------------------


def test_inputs_by_position_and_by_name() -> None:
    for result in (ROWS(a, b, n=3), ROWS(a, b=b, n=3), ROWS(b=b, a=a, n=3), ROWS(a.T.copy().T, b, n=np.int64(3))):
        np.testing.assert_array_equal(result, a + b)


@pytest.mark.parametrize(("call", "problem"), [
    (lambda: ROWS(a, b), r"pass the variable n=… as a whole number in 1\.\.8"),
    (lambda: ROWS(a, b, n=True), "as a whole number"), (lambda: ROWS(a, b, n=9), r"n = 9 is outside its bounds 1\.\.8"),
    (lambda: ROWS(a, n=3), "missing input b"), (lambda: ROWS(a, b, a, n=3), r"takes 2 inputs \(a, b\), got 3"),
    (lambda: ROWS(a, b, a=a, n=3), "a was passed twice"), (lambda: ROWS(a, b, c=b, n=3), "has no argument c; it has out, a, b"),
    (lambda: ROWS(a, b, n=2), r"a must have the shape \(2, 4\), got \(3, 4\)"),
    (lambda: ROWS(a.astype(np.float64), b, n=3), "a must be float32, got float64; convert it with .astype"),
])  # fmt: skip
def test_what_does_not_fit_is_named(call: Callable[[], object], problem: str) -> None:
    with pytest.raises(LaunchError, match=problem):
        call()


def test_flat_buffers_are_checked_before_they_are_run_on() -> None:
    out, x = np.zeros(12, np.float32), a.reshape(-1)
    ROWS.run_in_place([out, x, b], {"n": 3})
    np.testing.assert_array_equal(out.reshape(3, 4), a + b)
    locked = out.copy()
    locked.flags.writeable = False
    wrong: list[tuple[list[Any], str]] = [
        ([out, x], "has 3 buffers, got 2"),
        ([out, x[:11], b], "a needs 12 elements, got 11"),
        ([out, a, b], "a must be a flat contiguous array of float32"),
        ([out, np.arange(24, dtype=np.float32)[::2], b], "a must be a flat contiguous"),
        ([out, x.astype(np.int32), b], "a must be a flat contiguous array of float32"),
        ([locked, x, b], "out is written, and this array is read-only"),
    ]
    for buffers, problem in wrong:
        with pytest.raises(LaunchError, match=problem):
            ROWS.run_in_place(buffers, {"n": 3})


def shifted(low: int) -> Kernel:
    """out[i] = data1[i * 2 + n + low], without declared shapes."""
    n = rw.var("n", 0, 8)
    source = Load(1, dtypes.int32, (View((4,), (2,), n + low),))
    return Kernel((source, Store(0, dtypes.int32, (View((4,), (1,)),), 0)))


def test_a_buffer_with_a_symbolic_end_must_be_long_enough() -> None:
    program = rw.compile(shifted(0), "interpreter")
    data = np.arange(12, dtype=np.int32)
    np.testing.assert_array_equal(program(data, n=5), data[5::2])
    with pytest.raises(LaunchError, match=r"data1 needs 13 elements for \{'n': 6\}, got 12"):
        program(data, n=6)
    with pytest.raises(LaunchError, match="data1 needs 13 elements, got 12"):
        program.run_in_place([np.zeros(4, np.int32), data], {"n": 6})


def test_a_symbolic_start_before_the_buffer_is_refused_at_launch() -> None:
    program = rw.compile(shifted(-2), "interpreter")
    with pytest.raises(KernelError, match=r"nodes\[0\]: with \{'n': 1\} views\[0\] reaches element -1"):
        program(np.arange(12, dtype=np.int32), n=1)


# --- bound buffers ---------------------------------------------------------------------------------------------------


def test_a_bound_program_runs_again_on_its_buffers(device: str) -> None:
    program = rw.compile(rw.kernel(rw.tensor("a", (3, 4)) + rw.tensor("b", (4,))), device)
    launch = program.bind(a, b=b)
    launch()
    np.testing.assert_array_equal(launch["out"], a + b)
    launch["a"] = a * 2
    launch()
    np.testing.assert_array_equal(launch["out"], a * 2 + b)
    np.testing.assert_array_equal(launch["a"], a * 2)


def test_a_bound_program_with_threads_and_variables(device: str) -> None:
    n = rw.var("n", 1, 4096)
    program = rw.compile(rw.kernel(rw.tensor("x", (n, 64)).sum(1)), device)
    x = np.random.default_rng(1).integers(-8, 9, (1000, 64)).astype(np.float32)
    launch = program.bind(x, n=1000)
    launch()
    np.testing.assert_array_equal(launch["out"], x.sum(1))


@pytest.mark.parametrize(("name", "value", "problem"), [
    ("c", b, "has no argument c; it has out, a, b"), ("b", b[:3], "b holds 4 elements of float32, got 3 of float32"),
    ("b", b.astype(np.int32), "got 4 of int32"),
])  # fmt: skip
def test_a_bound_buffer_takes_only_what_fits(name: str, value: Any, problem: str) -> None:
    launch = ROWS.bind(a, b, n=3)
    with pytest.raises(LaunchError, match=problem):
        launch[name] = value
