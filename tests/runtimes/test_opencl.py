"""The OpenCL runtime: how a device is chosen, launch sizes and limits, memory that is shared or copied."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from rulewright.engine import ops
from rulewright.engine.dtypes import float32, int32
from rulewright.engine.errors import DeviceError
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.ops import BufferArg, SpecialArg, ThreadKind, VarArg
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.runtimes import devices
from rulewright.runtimes.devices import probe_kernel

STATUS = devices.probe("opencl")
pytestmark = pytest.mark.skipif(not STATUS.present, reason=f"device opencl is absent: {STATUS.reason}")

if STATUS.present:
    import pyopencl as cl
    from rulewright.runtimes import opencl_device
    from rulewright.runtimes.opencl import OpenCLRuntime


@pytest.fixture(params=[True, False], ids=["shared", "copied"])
def runtime(request: pytest.FixtureRequest) -> OpenCLRuntime:
    found = opencl_device.find()
    if request.param and not found.shares:
        pytest.skip("the device cannot use the host's memory")
    return OpenCLRuntime(dataclasses.replace(found, shares=request.param))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The choice of a device is made anew, and forgotten afterwards."""
    for name in ("RULEWRIGHT_OPENCL", "PYOPENCL_CTX"):
        monkeypatch.delenv(name, raising=False)
    kept = opencl_device.find
    monkeypatch.setattr(opencl_device, "find", kept.__wrapped__)
    return monkeypatch


def number(value: int) -> UOp:
    return const(int32, value)


def numbered(groups: tuple[UOp, ...], local: tuple[int, ...], *, variables: tuple[VarArg, ...] = ()) -> LinearKernel:
    """data0[i] = i + 1 for i the number of the thread in dimension 0."""
    out = buffer(0, int32, None)
    group = make(ops.SPECIAL, groups[0], arg=SpecialArg(ThreadKind.GROUP, 0))
    nodes = [out, *groups[0].src, groups[0], group]
    place = group
    if local:
        thread = make(ops.SPECIAL, number(local[0]), arg=SpecialArg(ThreadKind.LOCAL, 0))
        scaled = make(ops.MUL, group, number(local[0]))
        place = make(ops.ADD, scaled, thread)
        nodes += [number(local[0]), thread, scaled, place]
    value = make(ops.ADD, place, number(1))
    nodes += [number(1), value, make(ops.STORE, out, place, value)]
    return LinearKernel("numbered", tuple(nodes), (BufferParam(0, int32, None, True),), variables, groups, local, 1)


def launch(runtime: OpenCLRuntime, kernel: LinearKernel, size: int, **variables: int) -> list[int]:
    result = np.zeros(size, np.int32)
    runtime.build(kernel, runtime.renderer.render(kernel))([result], variables)
    return [int(v) for v in result]


def test_the_description_names_device_and_driver(runtime: OpenCLRuntime) -> None:
    device = runtime._found.device
    assert device.name.strip() in runtime.description
    assert device.driver_version in runtime.description


def test_groups_and_threads_cover_all_places(runtime: OpenCLRuntime) -> None:
    assert launch(runtime, numbered((number(3),), (4,)), 13) == [*range(1, 13), 0]


def test_without_local_sizes_the_device_chooses_the_groups(runtime: OpenCLRuntime) -> None:
    assert launch(runtime, numbered((number(100),), ()), 101) == [*range(1, 101), 0]


def test_the_number_of_groups_may_depend_on_variables(runtime: OpenCLRuntime) -> None:
    n = VarArg("n", 0, 10)
    size = make(ops.MUL, make(ops.VAR, dtype=int32, arg=n), number(2))
    kernel = numbered((size,), (2,), variables=(n,))
    assert launch(runtime, kernel, 13, n=3) == [*range(1, 13), 0]
    assert launch(runtime, kernel, 4, n=1) == [1, 2, 3, 4]


def test_a_launch_of_no_thread_does_nothing(runtime: OpenCLRuntime) -> None:
    n = VarArg("n", 0, 10)
    kernel = numbered((make(ops.VAR, dtype=int32, arg=n),), (2,), variables=(n,))
    assert launch(runtime, kernel, 2, n=0) == [0, 0]


def test_places_that_are_not_stored_keep_their_values(runtime: OpenCLRuntime) -> None:
    kernel = numbered((number(2),), ())
    result = np.arange(100, 106, dtype=np.int32)
    runtime.build(kernel, runtime.renderer.render(kernel))([result], {})
    assert result.tolist() == [1, 2, 102, 103, 104, 105]


def test_arrays_that_are_read_may_be_read_only_and_unaligned(runtime: OpenCLRuntime) -> None:
    kernel = probe_kernel()
    source = np.frombuffer(b"\1\2\3\4" + np.arange(16, dtype=np.int32).tobytes(), np.int32, offset=4)
    assert not source.flags.writeable
    result = np.zeros(16, np.int32)
    runtime.build(kernel, runtime.renderer.render(kernel))([result, source], {})
    assert result.tolist() == list(range(1, 17))


def test_too_many_threads_in_a_group_are_refused(runtime: OpenCLRuntime) -> None:
    most = runtime._found.device.max_work_group_size
    kernel = numbered((number(1),), (most * 2,))
    with pytest.raises(DeviceError) as caught:
        runtime.build(kernel, runtime.renderer.render(kernel))
    assert str(caught.value) == (
        f"kernel numbered has groups of {most * 2} threads, but the device has at most {most} threads a group: "
        "choose smaller groups"
    )


def test_too_much_local_memory_is_refused(runtime: OpenCLRuntime) -> None:
    size = runtime._found.device.local_mem_size
    memory = make(ops.LOCAL, dtype=float32.ptr("local"), arg=BufferArg(0, size))
    kernel = numbered((number(1),), (1,))
    kernel = dataclasses.replace(kernel, uops=(memory, *kernel.uops))
    with pytest.raises(DeviceError) as caught:
        runtime.build(kernel, runtime.renderer.render(kernel))
    assert str(caught.value) == (
        f"kernel numbered needs {size * 4} bytes of local memory, the device has {size}: choose smaller groups"
    )


def test_the_drivers_message_is_in_the_error(runtime: OpenCLRuntime) -> None:
    with pytest.raises(DeviceError, match=r"did not build the kernel:\n(.|\n)*nonsense"):
        runtime.build(probe_kernel(), "__kernel void probe() { nonsense; }")


@pytest.mark.parametrize("variable", ["RULEWRIGHT_OPENCL", "PYOPENCL_CTX"])
def test_the_environment_names_the_device(fresh: pytest.MonkeyPatch, variable: str) -> None:
    fresh.setenv(variable, "0:0")
    assert opencl_device.find().device == cl.get_platforms()[0].get_devices()[0]
    fresh.setenv(variable, "no such platform")
    with pytest.raises(DeviceError, match="is 'no such platform', which names no OpenCL device"):
        opencl_device.find()


def test_a_device_that_fails_its_trial_is_passed_over_and_remembered(fresh: pytest.MonkeyPatch) -> None:
    good = opencl_device.find().device
    trials: list[int] = []
    works = opencl_device._works

    def fail_first(context: object, device: object, *, shares: bool) -> bool:
        trials.append(1)
        if len(trials) == 1:
            raise cl.RuntimeError("clBuildProgram failed:\n\n  unknown target CPU")
        return works(context, device, shares=shares)

    fresh.setattr(opencl_device, "_all", lambda broken: iter([good, good]))
    fresh.setattr(opencl_device, "_works", fail_first)
    found = opencl_device.find()
    assert found.device == good
    assert found.broken == (f"{good.platform.name}, {good.name.strip()}: clBuildProgram failed:; unknown target CPU",)


def test_where_no_device_works_every_reason_is_shown(fresh: pytest.MonkeyPatch) -> None:
    good = opencl_device.find().device
    fresh.setattr(opencl_device, "_all", lambda broken: iter([good]))
    fresh.setattr(opencl_device, "_works", lambda context, device, *, shares: False)
    with pytest.raises(DeviceError) as caught:
        opencl_device.find()
    assert str(caught.value) == (
        "no OpenCL device works; install a driver (for CPUs: PoCL):\n"
        f"  {good.platform.name}, {good.name.strip()}: a trial kernel gave a wrong result"
    )


def test_without_any_platform_the_error_says_what_to_install(fresh: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    fresh.setattr(cl, "get_platforms", none)
    with pytest.raises(DeviceError, match=r"no OpenCL platform; install a driver .* PLATFORM_NOT_FOUND_KHR"):
        opencl_device.find()
