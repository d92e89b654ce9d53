"""What `benchmarks/kernels.py` runs: each workload as a Rulewright kernel and with NumPy, and what it costs at least."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import rulewright as rw
from rulewright.kernels.kernel import Kernel

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Workload:
    """`arrays` makes the inputs, in the kernel's order; `bytes` and `operations` are the least that it must do."""

    name: str
    text: str
    arrays: Callable[[], dict[str, npt.NDArray[Any]]]
    kernel: Callable[[], Kernel]
    numpy: Callable[..., npt.NDArray[Any]]
    bytes: int
    operations: int


def workloads(quick: bool) -> list[Workload]:
    """All of them, at full size or at one that takes milliseconds."""
    small = 16 if quick else 1
    return [
        _muladd((1 << 24) // small**2),
        _sum((1 << 24) // small**2),
        _softmax(4096 // small, 1024),
        _matmul(1024 // small),
        _conv(8 // min(small, 8), 32, 64, 56),
        _transpose(4096 // small),
    ]


def _random(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def _muladd(n: int) -> Workload:
    return Workload(
        "a*b+c", f"{n} elements",
        lambda: {name: _random(n, seed=seed) for seed, name in enumerate("abc")},
        lambda: rw.kernel(rw.tensor("a", (n,)) * rw.tensor("b", (n,)) + rw.tensor("c", (n,))),
        lambda a, b, c: np.asarray(a * b + c),
        16 * n, 2 * n,
    )  # fmt: skip


def _sum(n: int) -> Workload:
    return Workload(
        "sum", f"{n} elements",
        lambda: {"x": _random(n)},
        lambda: rw.kernel(rw.tensor("x", (n,)).sum(0)),
        lambda x: np.asarray(x.sum()),
        4 * n, n,
    )  # fmt: skip


def _softmax(rows: int, columns: int) -> Workload:
    def build() -> Kernel:
        x = rw.tensor("x", (rows, columns))
        powers = rw.exp(x - x.max(1, keepdims=True))
        return rw.kernel(powers / powers.sum(1, keepdims=True))

    def numpy(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        powers = np.exp(x - x.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))

    arrays = 8 * rows * columns
    return Workload("softmax", f"{rows} x {columns}", lambda: {"x": _random(rows, columns)}, build, numpy, arrays, 0)


def _matmul(n: int) -> Workload:
    return Workload(
        "matmul", f"{n} x {n} x {n}",
        lambda: {"a": _random(n, n), "b": _random(n, n, seed=1)},
        lambda: rw.kernel((rw.tensor("a", (n, n))[:, :, None] * rw.tensor("b", (n, n))[None]).sum(1)),
        lambda a, b: np.asarray(a @ b),
        12 * n * n, 2 * n**3,
    )  # fmt: skip


def _conv(batch: int, channels: int, filters: int, size: int) -> Workload:
    """Without padding: the pictures are two larger than the result."""
    pictures, weights = (batch, channels, size + 2, size + 2), (filters, channels, 3, 3)

    def build() -> Kernel:
        x, w = rw.tensor("x", pictures), rw.tensor("w", weights)
        terms = [
            x[:, None, :, dy : dy + size, dx : dx + size] * w[None, :, :, dy, dx, None, None]
            for dy in range(3)
            for dx in range(3)
        ]
        return rw.kernel(sum(terms[1:], terms[0]).sum(2))

    def numpy(x: npt.NDArray[Any], w: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As one product of matrices, the pictures' windows copied."""
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
        columns = np.ascontiguousarray(windows.transpose(0, 1, 4, 5, 2, 3)).reshape(batch, channels * 9, size * size)
        return np.asarray((w.reshape(filters, channels * 9) @ columns).reshape(batch, filters, size, size))

    outputs = batch * filters * size * size
    return Workload(
        "conv 3x3", f"{batch} pictures of {size} x {size}, {channels} to {filters} channels",
        lambda: {"x": _random(*pictures), "w": _random(*weights, seed=1)},
        build, numpy,
        4 * (int(np.prod(pictures)) + int(np.prod(weights)) + outputs), outputs * channels * 18,
    )  # fmt: skip


def _transpose(n: int) -> Workload:
    return Workload(
        "transpose", f"{n} x {n}",
        lambda: {"x": _random(n, n)},
        lambda: rw.kernel(rw.tensor("x", (n, n)).T),
        lambda x: np.ascontiguousarray(x.T),
        8 * n * n, 0,
    )  # fmt: skip
