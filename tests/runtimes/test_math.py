"""Functions that rules make arithmetic of: right over the whole range, in vectors and alone, strict and fused."""

from __future__ import annotations

import numpy as np
import pytest
import rulewright as rw
from rulewright.runtimes import devices

ULPS = 4.0
"""What the meaning of the operators grants, in units in the last place."""

EDGES = [
    0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 127.99999, 128.0, 129.5, 1e30, -1e30, 1e-40, 3.4e38,
    -125.9, -126.0, -126.5, -148.9, -149.0, -149.5, -150.0, -150.5, -152.5,
]  # fmt: skip


@pytest.fixture(params=["llvm", "c", "opencl", "interpreter"])
def device(request: pytest.FixtureRequest) -> str:
    status = devices.probe(request.param)
    if not status.present:
        pytest.skip(f"device {request.param} is absent: {status.reason}")
    return str(request.param)


@pytest.mark.parametrize("math", ["strict", "fast"])
@pytest.mark.parametrize("schedule", ["default", "none"])
def test_exp2_is_within_its_bound_over_the_whole_range(device: str, schedule: str, math: str) -> None:
    random = np.random.default_rng(0)
    parts = [np.asarray(EDGES), np.linspace(-155, 130, 1 << 14), random.uniform(-1, 1, 1 << 12)]
    x = np.concatenate(parts).astype(np.float32)
    x = np.resize(x, len(x) // 16 * 16)
    got = rw.compile(rw.kernel(rw.exp2(rw.tensor("x", x.shape))), device, schedule, math)(x)
    with np.errstate(over="ignore"):
        exact = np.exp2(x.astype(np.float64))
        rounded = exact.astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(x))
    finite = np.isfinite(rounded) & np.isfinite(got)
    assert np.array_equal(got[~finite], rounded[~finite], equal_nan=True)
    error = np.abs(got[finite] - exact[finite]) / np.spacing(rounded[finite])
    assert error.max() <= ULPS, (x[finite][error.argmax()], error.max())
