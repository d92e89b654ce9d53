"""Random kernels with random schedules: every device equals NumPy. `--hypothesis-profile=nightly` tries 20,000."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from rulewright.cli.app import app
from rulewright.cli.fuzz import Case, search
from rulewright.engine import dtypes, ops
from rulewright.kernels.json_form import read_kernel, write_kernel
from rulewright.kernels.kernel import Elementwise, Kernel, Load, Reduce, Store
from rulewright.kernels.schedule import parse_schedule
from rulewright.kernels.view import View
from rulewright.runtimes import devices
from typer.testing import CliRunner

EXAMPLES = 20_000 if settings.default is not None and settings.default.max_examples >= 1000 else 300
"""Each on one of the devices, drawn with the kernel: compiling for all of them takes too long for every day."""


def test_random_kernels_on_every_device() -> None:
    present = [name for name in ("interpreter", "llvm", "c", "opencl") if devices.probe(name).present]
    seen: set[str] = set()

    def check(case: Case) -> None:
        seen.update(_kinds(case))
        problems = case.problems()
        assert not problems, "\n".join([*problems, json.dumps(write_kernel(case.kernel)), case.command("kernel.json")])

    search(present, EXAMPLES, 0, check)
    assert seen >= {*present, "reduce", "two outputs", "several views", "mask", "UPCAST", "UNROLL", "PADTO", "GROUP"}


def _kinds(case: Case) -> set[str]:
    """What a case is an example of: a strategy that stops making something would otherwise go unnoticed."""
    kernel = case.kernel
    assert read_kernel(write_kernel(kernel)).nodes == kernel.nodes
    views = [node.views for node in kernel.nodes if isinstance(node, Load | Store)]
    found = {case.device, *(option.kind.value for option in case.schedule)}
    found |= {"reduce"} if any(isinstance(node, Reduce) for node in kernel.nodes) else set()
    found |= {"two outputs"} if len(kernel.stores) > 1 else set()
    found |= {"several views"} if any(len(chain) > 1 for chain in views) else set()
    found |= {"mask"} if any(view.mask is not None for chain in views for view in chain) else set()
    return found


def test_a_failure_becomes_a_small_kernel_that_run_reproduces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that stores 77 everywhere."""

    def build(self: object, kernel: object, source: str) -> Callable[..., None]:
        return lambda buffers, variables: buffers[0].fill(77)

    monkeypatch.setattr(type(devices.get("interpreter")), "build", build)
    path = tmp_path / "found.json"
    arguments = ["fuzz", "--device", "interpreter", "--examples", "20", "--seed", "1", "--output", str(path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    command = next(line for line in result.output.splitlines() if "reproduce it with" in line)
    assert f"rulewright run {path} --device interpreter" in command
    kernel = read_kernel(json.loads(path.read_text()))
    assert len(kernel.nodes) <= 5
    again = CliRunner().invoke(app, ["run", str(path), "--device", "interpreter", "--schedule", "none", "--check"])
    assert again.exit_code == 1 and "differs from NumPy" in again.output


def test_a_case_reports_errors_and_differences() -> None:
    view = (View((4,), (1,)),)
    kernel = Kernel((Load(1, dtypes.float32, view), Elementwise(ops.NEG, (0,)), Store(0, dtypes.float32, view, 1)))
    assert Case(kernel, "interpreter", ()).problems() == []
    (problem,) = Case(kernel, "interpreter", parse_schedule("UPCAST(0, 3)")).problems()
    assert problem.startswith("KernelError: UPCAST(0, 3): 3 does not divide")
