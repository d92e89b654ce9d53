"""The registry of devices: probing, reasons, and that nothing is loaded before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from rulewright.engine.errors import DeviceError
from rulewright.engine.linear import LinearKernel
from rulewright.renderers.llvm import LlvmRenderer
from rulewright.runtimes import devices
from rulewright.runtimes.base import Runtime


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of its own for a test that adds devices."""
    monkeypatch.setattr(devices, "DEVICES", dict(devices.DEVICES))
    monkeypatch.setattr(devices, "_runtimes", {})
    monkeypatch.setattr(devices, "_statuses", {})


class Wrong:
    """A device that builds everything and computes nothing."""

    name = "wrong"
    renderer = LlvmRenderer()
    description = "wrong"
    made = 0

    def __init__(self) -> None:
        Wrong.made += 1

    def build(self, kernel: LinearKernel, source: str) -> object:
        return lambda buffers, variables: None


def test_order_is_by_preference() -> None:
    assert list(devices.DEVICES) == ["llvm", "c", "opencl", "interpreter"]


def test_the_default_device_is_always_present() -> None:
    status = devices.probe("llvm")
    assert status.present and status.reason == "" and status.description.startswith("LLVM ")
    assert devices.present()[0] == "llvm"


def test_get_gives_one_runtime_for_the_process() -> None:
    runtime = devices.get("llvm")
    assert runtime is devices.get("llvm") and runtime.name == "llvm"


def test_the_probe_kernel_runs_on_what_is_present() -> None:
    kernel = devices.probe_kernel()
    runtime = devices.get("llvm")
    result = np.zeros(16, np.int32)
    runtime.build(kernel, runtime.renderer.render(kernel))([result, np.arange(16, dtype=np.int32)], {})
    assert result.tolist() == list(range(1, 17))


def test_unknown_device_with_a_suggestion() -> None:
    with pytest.raises(DeviceError) as problem:
        devices.get("opencil")
    assert str(problem.value) == (
        "there is no device 'opencil': did you mean 'opencl'? The devices are llvm, c, opencl, interpreter"
    )
    assert devices.probe("nonsense") == devices.DeviceStatus(
        "nonsense", False, "", "there is no device 'nonsense'. The devices are llvm, c, opencl, interpreter"
    )


def test_a_device_that_computes_wrong_numbers_is_absent(fresh: None) -> None:
    devices.DEVICES["wrong"] = Wrong  # type: ignore[assignment]
    status = devices.probe("wrong")
    assert not status.present
    assert status.reason == f"it computes wrong results: a test kernel gave {[0] * 16}"
    made = Wrong.made
    with pytest.raises(DeviceError, match="device 'wrong' is not available: it computes wrong results"):
        devices.get("wrong")
    assert Wrong.made == made  # probed once for the process


def test_a_device_that_fails_in_any_way_is_absent(fresh: None) -> None:
    def broken() -> Runtime:
        raise MemoryError("the driver is out of its mind")

    def refused() -> Runtime:
        raise DeviceError("no compiler: install one")

    devices.DEVICES.update(broken=broken, refused=refused)
    assert devices.probe("broken").reason == "MemoryError: the driver is out of its mind"
    assert devices.probe("refused").reason == "no compiler: install one"
    assert not {"broken", "refused"} & set(devices.present())


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    code = "import sys; sys.modules['pyopencl'] = None\n"
    code += "from rulewright.runtimes import devices; print(devices.probe('opencl').reason)"
    assert run_python(code).strip() == "pyopencl is not installed: pip install 'rulewright[opencl]'"


def test_importing_the_registry_loads_no_driver() -> None:
    code = "import sys, rulewright.runtimes.devices\nprint([m for m in ('llvmlite', 'pyopencl') if m in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_default_threads_is_a_positive_number() -> None:
    assert devices.default_threads() >= 1
