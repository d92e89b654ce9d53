"""`max` and `min` of integers of every type, of operands that C would promote to another: each device computes them."""

from __future__ import annotations

import itertools

import pytest
from rulewright.cli.fuzz import Case
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import DType
from rulewright.kernels.kernel import Const, Elementwise, Kernel, Load, Node, Store
from rulewright.kernels.schedule import parse_schedule
from rulewright.kernels.view import View
from rulewright.runtimes import devices

INTEGERS = [dtype for dtype in dtypes.DATA_TYPES if dtype.is_int]
WHOLE = (View((8,), (1,)),)
PADDED = (View((8,), (1,), -2, ((2, 7),)),)
MASKED = (View((8,), (0,), 0, ((1, 7),)),)


def extrema(dtype: DType) -> Kernel:
    """The extremum of every two of: loads with and without a gate, results of operators, a choice, a cast, constants."""
    forms: list[Node] = [
        Load(100, dtype, PADDED),
        Load(101, dtype, WHOLE),
        Load(102, dtypes.bool_, WHOLE),
        Elementwise(ops.NEG, (0,)),
        Elementwise(ops.NOT, (1,)),
        Elementwise(ops.MUL, (0, 1)),
        Elementwise(ops.WHERE, (2, 0, 1)),
        Elementwise(ops.CAST, (2,), dtype),
        Const(3, dtype, MASKED),
        Const(dtype.lowest, dtype, (View((8,), (0,)),)),
    ]
    nodes = list(forms)
    results = []
    numbers = [place for place in range(len(forms)) if place != 2]
    for op, (a, b) in itertools.product((ops.MAX, ops.MIN), itertools.combinations(numbers, 2)):
        results.append(len(nodes))
        nodes.append(Elementwise(op, (a, b)))
    slots = {100: len(results), 101: len(results) + 1, 102: len(results) + 2}
    for slot, result in enumerate(results):
        nodes.append(Store(slot, dtype, WHOLE, result))
    return Kernel(
        tuple(Load(slots[n.buffer], n.dtype, n.views) if isinstance(n, Load) else n for n in nodes), f"extrema_{dtype}"
    )


@pytest.mark.parametrize("schedule", ["", "UPCAST(0, 4)"], ids=["scalars", "lanes"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("device", ["opencl", "c", "llvm", "interpreter"])
def test_extrema_of_operands_of_every_form(device: str, dtype: DType, schedule: str) -> None:
    if not devices.probe(device).present:
        pytest.skip(devices.probe(device).reason)
    assert Case(extrema(dtype), device, parse_schedule(schedule)).problems() == []
