"""Estimates of operations and bytes, against numbers counted by hand."""

from __future__ import annotations

import pytest
import rulewright as rw
from rulewright.engine.errors import LaunchError
from rulewright.engine.estimates import Estimates

A = rw.tensor("a", (64, 32))
FLOAT = 4

SCHEDULES = ["none", "default"]


def estimates(value: rw.Tensor, schedule: str = "default", device: str = "interpreter") -> Estimates:
    return rw.compile(rw.kernel(value), device, schedule).estimates()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_matrix_product_counts_two_operations_a_term(schedule: str) -> None:
    found = estimates(A @ rw.tensor("b", (32, 48)), schedule)
    assert found == Estimates(2 * 64 * 32 * 48, (64 * 32 + 32 * 48) * FLOAT, 64 * 48 * FLOAT)
    assert found.bytes == found.bytes_read + found.bytes_written


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("device", ["interpreter", "llvm"])
def test_the_device_and_the_schedule_change_nothing_for_an_elementwise_kernel(schedule: str, device: str) -> None:
    size = 64 * 32
    assert estimates(A * 2.0 + 1.0, schedule, device) == Estimates(2 * size, size * FLOAT, size * FLOAT)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_repeated_element_is_read_once(schedule: str) -> None:
    found = estimates(A + rw.tensor("row", (32,)), schedule)
    assert found.bytes_read == (64 * 32 + 32) * FLOAT


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_windows_that_overlap_are_read_once(schedule: str) -> None:
    x = rw.tensor("x", (34,))
    found = estimates(x[:-2] + x[1:-1] + x[2:], schedule)
    assert found == Estimates(2 * 32, 34 * FLOAT, 32 * FLOAT)


def test_every_other_element_is_half_of_them() -> None:
    assert estimates(rw.tensor("x", (64,))[::2] * 2.0, "none").bytes_read == 32 * FLOAT


@pytest.mark.parametrize("value", [A.T, A.pad([(1, 2), (0, 3)]), A.flip(0), A.cast("int32")])
def test_moving_and_converting_is_no_arithmetic(value: rw.Tensor) -> None:
    assert estimates(value).operations == 0


def test_a_sum_is_an_operation_an_element_and_one_result() -> None:
    assert estimates(A.sum()) == Estimates(64 * 32, 64 * 32 * FLOAT, FLOAT)


def test_a_fused_step_counts_twice() -> None:
    kernel = rw.kernel(A * A + A)
    assert rw.compile(kernel, "llvm", math="fast").estimates().operations == 2 * 64 * 32


def test_narrow_types_are_narrow() -> None:
    assert estimates(rw.tensor("h", (8,), "float16") * 2).bytes == 2 * 8 * 2


def test_symbolic_sizes_are_given() -> None:
    n = rw.var("n", 1, 100)
    program = rw.compile(rw.kernel(rw.tensor("x", (n, 4)) * 2.0), "interpreter")
    assert program.estimates(n=7) == Estimates(28, 28 * FLOAT, 28 * FLOAT)
    with pytest.raises(LaunchError, match="pass the variable n"):
        program.estimates()
