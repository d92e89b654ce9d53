"""Symbolic kernels: compiled once for a device, run for several values of their variables."""

from __future__ import annotations

import pytest
import rulewright as rw
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.errors import KernelError
from rulewright.kernels.kernel import Const, Elementwise, Kernel, Load, Reduce, Store
from rulewright.kernels.reference import differences, make_buffers
from rulewright.kernels.sizes import var
from rulewright.kernels.view import View
from rulewright.runtimes import devices

N, START = var("n", 0, 9), var("start", 0, 4)
BOUND = var("m", 1, 12)


def matmul() -> Kernel:
    """A product whose rows and whose inner axis are symbolic."""
    a = View((N, 4, BOUND), (BOUND, 0, 1))
    b = View((N, 4, BOUND), (0, 1, 4))
    out = View((N, 4, 1), (4, 1, 0))
    loads = (Load(1, d.float32, (a,)), Load(2, d.float32, (b,)))
    return Kernel((*loads, Elementwise(ops.MUL, (0, 1)), Reduce(ops.ADD, 2, (2,)), Store(0, d.float32, (out,), 3)))


def window() -> Kernel:
    """Eight elements from a symbolic offset, those beyond a symbolic bound zero, times a symbolic number."""
    view = View((8,), (1,), START, ((0, BOUND % 8 + 1),))
    plain = View((8,), (1,))
    one = View((1,), (0,))
    factor = Const(N, d.float32, (one,))
    return Kernel((Load(1, d.float32, (view,)), factor, Elementwise(ops.MUL, (0, 1)), Store(0, d.float32, (plain,), 2)))


def softmax() -> Kernel:
    """Over a symbolic axis; 8 columns beside each other."""
    view, row = View((BOUND, 8), (8, 1)), Load(1, d.float32, (View((BOUND, 8), (8, 1)),))
    nodes = (row, Reduce(ops.MAX, 0, (0,)), Elementwise(ops.SUB, (0, 1)), Elementwise(ops.EXP2, (2,)),
             Reduce(ops.ADD, 3, (0,)), Elementwise(ops.DIV, (3, 4)), Store(0, d.float32, (view,), 5))  # fmt: skip
    return Kernel(nodes)


def two_outputs() -> Kernel:
    """One output has a row for each of n, the other none of them: it is there with n = 0 as well."""
    n = var("n", 0, 9)
    rows, row = (View((n, 4), (4, 1)),), (View((1, 4), (0, 1)),)
    nodes = (Load(2, d.float32, rows), Elementwise(ops.NEG, (0,)), Load(3, d.float32, row), Elementwise(ops.NEG, (2,)),
             Store(0, d.float32, rows, 1), Store(1, d.float32, row, 3))  # fmt: skip
    return Kernel(nodes)


def total_and_rest() -> Kernel:
    """A sum over an axis that may be empty, and what each of its elements adds to it."""
    n = var("n", 0, 9)
    rows, row = (View((n, 4), (4, 1)),), (View((1, 4), (0, 1)),)
    nodes = (Load(2, d.float32, rows), Reduce(ops.ADD, 0, (0,)), Elementwise(ops.ADD, (0, 1)),
             Store(0, d.float32, rows, 2), Store(1, d.float32, row, 1))  # fmt: skip
    return Kernel(nodes)


CASES = {
    "two outputs": (two_outputs, ["", "UPCAST(1, 4)"]),
    "total and rest": (total_and_rest, ["", "UPCAST(1, 4)"]),
    "matmul": (matmul, ["", "UPCAST(1, 4)", "PADTO(1, 3) UPCAST(1, 3)"]),
    "window": (window, ["", "UPCAST(0, 4)", "UPCAST(0, 0)"]),
    "softmax": (softmax, ["", "UPCAST(1, 4)"]),
}
VALUES = [
    {"n": 0, "m": 1, "start": 0},
    {"n": 1, "m": 3, "start": 2},
    {"n": 5, "m": 8, "start": 3},
    {"n": 9, "m": 12, "start": 4},
]


@pytest.mark.parametrize("device", ["llvm", "c", "opencl", "interpreter"])
@pytest.mark.parametrize("name", CASES)
def test_one_program_for_all_values(name: str, device: str) -> None:
    status = devices.probe(device)
    if not status.present:
        pytest.skip(f"device {device} is absent: {status.reason}")
    build, schedules = CASES[name]
    kernel = build()
    for schedule in [*schedules, "default"]:
        program = rw.compile(kernel, device, schedule)
        for values in VALUES:
            bound = {variable: values[variable] for variable in kernel.variables}
            before = make_buffers(kernel, bound)
            after = [buffer.copy() for buffer in before]
            program.run_in_place(after, bound)
            assert list(differences(kernel, before, after, bound)) == [], f"{schedule} {bound}\n{program.source}"


@pytest.mark.parametrize("schedule", ["UPCAST(0, 2)", "UNROLL(2, 2)", "PADTO(0, 4)", "LOCAL(0, 2)", "GROUP(2, 2)"])
def test_a_symbolic_axis_is_a_loop_or_a_group(schedule: str) -> None:
    with pytest.raises(KernelError, match=r"has the symbolic size [nm]; it can only be a loop"):
        rw.compile(matmul(), "interpreter", schedule)
