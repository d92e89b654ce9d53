"""The default schedule: what it asks for on each kind of device, and that results stay right."""

from __future__ import annotations

import numpy as np
import pytest
import rulewright as rw
from rulewright.engine.target import Target
from rulewright.kernels.heuristic import default_schedule
from rulewright.kernels.kernel import Kernel
from rulewright.runtimes import devices

AVX2 = Target("cpu", frozenset({"unaligned", "mulacc"}), (16, 8, 4, 2), lanes=8, registers=16)
AVX512 = Target("cpu", frozenset({"unaligned", "mulacc"}), (16, 8, 4, 2), lanes=16, registers=32)
POCL = Target("cl", frozenset({"threads", "local-memory", "cpu", "unaligned"}), (16, 8, 4, 2), lanes=8, registers=16)
GPU = Target("cl", frozenset({"threads", "local-memory"}), (16, 8, 4, 2))


def _elementwise() -> Kernel:
    return rw.kernel(rw.tensor("a", (4096,)) + rw.tensor("b", (4096,)))


def _total() -> Kernel:
    return rw.kernel(rw.tensor("x", (1 << 16,)).sum(0))


def _rows() -> Kernel:
    return rw.kernel(rw.tensor("x", (64, 1024)).sum(1))


def _matmul(n: int = 96) -> Kernel:
    return rw.kernel((rw.tensor("a", (n, n))[:, :, None] * rw.tensor("b", (n, n))[None]).sum(1))


def _softmax() -> Kernel:
    x = rw.tensor("x", (64, 512))
    powers = rw.exp(x - x.max(1, keepdims=True))
    return rw.kernel(powers / powers.sum(1, keepdims=True))


def _transpose() -> Kernel:
    return rw.kernel(rw.tensor("x", (256, 256)).T)


def _odd() -> Kernel:
    return rw.kernel((rw.tensor("a", (7, 11))[:, :, None] * rw.tensor("b", (11, 13))[None]).sum(1))


@pytest.mark.parametrize(("build", "target", "expected"), [
    (_elementwise, AVX2, "UPCAST(0, 16)"),
    (_elementwise, AVX512, "UPCAST(0, 16) UPCAST(0, 2)"),
    (_elementwise, POCL, "UPCAST(0, 16) NOLOCALS"),
    (_elementwise, GPU, "UPCAST(0, 4) LOCAL(0, 64)"),
    (_total, AVX2, "PARTIAL(0, 32) SHARE(0, 2)"),
    (_total, AVX512, "PARTIAL(0, 64) SHARE(0, 2)"),
    (_total, POCL, "PARTIAL(0, 32) SHARE(0, 2) NOLOCALS"),
    (_rows, POCL, "PARTIAL(1, 32) NOLOCALS"),
    (_rows, AVX2, "PARTIAL(1, 32) THREAD(0, 2)"),
    (_matmul, AVX2, "UPCAST(1, 16) UPCAST(0, 6) SWAP(0, 1) THREAD(1, 2)"),
    (_softmax, AVX2, "UPCAST(1, 8) PARTIAL(1, 16) THREAD(0, 2)"),
    (_transpose, AVX2, "UPCAST(0, 8) UPCAST(1, 8) THREAD(0, 2)"),
    (_odd, AVX2, ""),
])  # fmt: skip
def test_the_schedule_fits_the_device(build: object, target: Target, expected: str) -> None:
    assert callable(build)
    assert " ".join(map(str, default_schedule(build(), target, 2))) == expected


@pytest.fixture(params=list(devices.DEVICES))
def device(request: pytest.FixtureRequest) -> str:
    status = devices.probe(request.param)
    if not status.present:
        pytest.skip(f"device {request.param} is absent: {status.reason}")
    return str(request.param)


@pytest.mark.parametrize("build", [_elementwise, _total, _rows, _matmul, _softmax, _transpose, _odd])
def test_results_are_those_without_a_schedule(device: str, build: object) -> None:
    assert callable(build)
    kernel = build()
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(argument.shape).astype(np.float32) for argument in kernel.inputs]
    plain = rw.compile(kernel, "llvm", "none")(*inputs)
    made = rw.compile(kernel, device)
    np.testing.assert_allclose(made(*inputs), plain, rtol=1e-4, atol=1e-4, err_msg=made.source)
