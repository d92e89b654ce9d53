"""A reduction shared out by threads, of vectors with lane counts that no single vector of the target holds."""

from __future__ import annotations

import pytest
from rulewright.cli.fuzz import Case
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import DType
from rulewright.kernels.kernel import Elementwise, Kernel, Load, Reduce, Store
from rulewright.kernels.schedule import parse_schedule
from rulewright.kernels.view import View
from rulewright.runtimes import devices

SCHEDULES = [
    "UPCAST(0,3) GROUP(2,4)",
    "UPCAST(0,3) UPCAST(1,3) GROUPTOP(2,4)",
    "UPCAST(0,0) UPCAST(1,5) GROUP(2,2) PARTIAL(2,3)",
    "UPCAST(0,2) UPCAST(1,5) GROUP(2,4) UNROLL(2,3)",
    "UPCAST(0,6) UPCAST(1,5) GROUP(2,4)",
]


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bool_, dtypes.int8], ids=str)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("device", ["opencl", "interpreter"])
def test_the_barrier_waits_for_every_store_of_the_lanes(
    device: str, schedule: str, dtype: DType, *, padded: bool
) -> None:
    if not devices.probe(device).present:
        pytest.skip(devices.probe(device).reason)
    shape, strides = (6, 15, 24), (360, 24, 1)
    view = View(shape, strides, -360, ((1, 6), (0, 15), (0, 24))) if padded else View(shape, strides)
    result = View((6, 15, 1), (15, 1, 0))
    nodes = (
        Load(1, dtype, (view,)),
        Reduce(ops.ADD, 0, (2,)),
        Elementwise(ops.ADD, (1, 1)),
        Store(0, dtype, (result,), 2),
    )
    assert Case(Kernel(nodes), device, parse_schedule(schedule)).problems() == []
