"""The devices by name: which there are, whether one works here, and the reason if it does not.

A device counts as present only when a trivial kernel, printed by its own renderer, has been built and run on it and
gave the right numbers: an installed driver is no proof. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from threading import RLock

import numpy as np

from ..engine import ops
from ..engine.dtypes import int32
from ..engine.errors import DeviceError
from ..engine.linear import BufferParam, LinearKernel
from ..engine.ops import AxisKind, RangeArg
from ..engine.uop import buffer, const, make
from .base import Runtime
from .threads import cores


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """What a probe found: `description` of a device that is present, else the `reason` and the next step."""

    name: str
    present: bool
    description: str
    reason: str


def _factory(module: str, cls: str, package: str, install: str) -> Callable[[], Runtime]:
    """Makes the runtime `cls` of `runtimes.module`, which needs the Python package `package`."""

    def create() -> Runtime:
        if package and importlib.util.find_spec(package) is None:
            raise DeviceError(f"{package} is not installed: pip install {install}")
        runtime: Runtime = getattr(importlib.import_module(f".{module}", __package__), cls)()
        return runtime

    return create


DEVICES: dict[str, Callable[[], Runtime]] = {
    "llvm": _factory("llvm", "LlvmRuntime", "llvmlite", "llvmlite"),
    "c": _factory("c", "CRuntime", "", ""),
    "opencl": _factory("opencl", "OpenCLRuntime", "pyopencl", "'rulewright[opencl]'"),
    "interpreter": _factory("interpreter", "Interpreter", "", ""),
}
"""How each device's runtime is made, the preferred device first."""

_lock = RLock()
_runtimes: dict[str, Runtime] = {}
_statuses: dict[str, DeviceStatus] = {}


def get(name: str) -> Runtime:
    """The device's runtime, one for the process.

    Raises DeviceError if there is no device of that name, or if it does not work here, with the reason.
    """
    status = probe(name)
    if not status.present:
        raise DeviceError(f"device {name!r} is not available: {status.reason}" if name in DEVICES else status.reason)
    return _runtimes[name]


def probe(name: str) -> DeviceStatus:
    """Builds and runs a trivial kernel, once for the process. Never raises: a failure is the status's `reason`."""
    if name not in DEVICES:
        return DeviceStatus(name, False, "", _unknown(name))
    with _lock:
        status = _statuses.get(name)
        if status is None:
            status = _statuses[name] = _try(name)
        return status


def present() -> list[str]:
    """The names of the devices that work here, the preferred one first."""
    return [name for name in DEVICES if probe(name).present]


def default_threads() -> int:
    """How many threads a CPU kernel should be shared out over: the cores that this process may use."""
    return cores()


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), DEVICES, n=1)
    hint = f": did you mean {close[0]!r}?" if close else "."
    return f"there is no device {name!r}{hint} The devices are {', '.join(DEVICES)}"


def _try(name: str) -> DeviceStatus:
    try:
        runtime = DEVICES[name]()
        _check(runtime)
        _runtimes[name] = runtime
        return DeviceStatus(name, True, runtime.description, "")
    except DeviceError as problem:
        return DeviceStatus(name, False, "", str(problem))
    except Exception as problem:  # noqa: BLE001 - drivers and their wrappers raise anything
        return DeviceStatus(name, False, "", f"{type(problem).__name__}: {problem}")


_SIZE = 16


@cache
def probe_kernel() -> LinearKernel:
    """data0[i] = data1[i] + 1 for 16 values of int32."""
    target, source = buffer(0, int32, _SIZE), buffer(1, int32, _SIZE)
    end, one = const(int32, _SIZE), const(int32, 1)
    i = make(ops.RANGE, end, arg=RangeArg(0, AxisKind.LOOP))
    value = make(ops.LOAD, source, i)
    result = make(ops.ADD, value, one)
    stored = make(ops.STORE, target, i, result)
    nodes = (target, source, end, one, i, value, result, stored, make(ops.ENDRANGE, i))
    buffers = (BufferParam(0, int32, _SIZE, True), BufferParam(1, int32, _SIZE, False))
    return LinearKernel("probe", nodes, buffers, (), (), (), 1)


def _check(runtime: Runtime) -> None:
    """Raises DeviceError unless the device computes what it should."""
    kernel = probe_kernel()
    executable = runtime.build(kernel, runtime.renderer.render(kernel))
    source = np.arange(_SIZE, dtype=np.int32) * 1000
    result = np.zeros(_SIZE, dtype=np.int32)
    executable([result, source], {})
    if not np.array_equal(result, source + 1):
        raise DeviceError(f"it computes wrong results: a test kernel gave {result.tolist()}")
