"""The sample kernels that `rulewright demo` runs and other commands know by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels.build import kernel
from ..kernels.einsum import einsum
from ..kernels.functions import exp
from ..kernels.kernel import Kernel
from ..kernels.tensor import Tensor, tensor

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A kernel, and the same by NumPy; `text` says what it computes."""

    text: str
    build: Callable[[], Tensor]
    numpy: Callable[[Arrays], npt.NDArray[Any]]

    def kernel(self) -> Kernel:
        return kernel(self.build())


def _add() -> Tensor:
    return tensor("a", (1024, 1024)) + tensor("b", (1024, 1024))


def _matmul() -> Tensor:
    return einsum("ik,kj->ij", tensor("a", (256, 256)), tensor("b", (256, 256)))


def _softmax() -> Tensor:
    x = tensor("x", (256, 512))
    powers = exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _numpy_softmax(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    powers = np.exp(x - x.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


SIZE = 64  # of the pictures of the convolution


def _conv() -> Tensor:
    """Nine shifted pictures, each times its weights; the border is zeros. All sums over channels are one loop."""
    x, w = tensor("x", (16, SIZE, SIZE)), tensor("w", (16, 16, 3, 3))
    padded = x.pad([(0, 0), (1, 1), (1, 1)])
    terms = [
        padded[None, :, dy : dy + SIZE, dx : dx + SIZE] * w[:, :, dy, dx, None, None]
        for dy in range(3)
        for dx in range(3)
    ]
    return sum(terms[1:], terms[0]).sum(1)


def _numpy_conv(x: npt.NDArray[Any], w: npt.NDArray[Any]) -> npt.NDArray[Any]:
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return np.asarray(np.einsum("iyxab,oiab->oyx", windows, w, optimize=True))


def _sum() -> Tensor:
    return tensor("x", (1024, 1024)).sum(1)


def _transpose() -> Tensor:
    return tensor("x", (1024, 1024)).T


SAMPLES: dict[str, Sample] = {
    "add": Sample("a + b, 1024x1024", _add, lambda v: v["a"] + v["b"]),
    "matmul": Sample("a @ b, 256x256", _matmul, lambda v: v["a"] @ v["b"]),
    "softmax": Sample("of each row, 256x512", _softmax, lambda v: _numpy_softmax(v["x"])),
    "conv3x3": Sample("16 to 16 channels, 64x64", _conv, lambda v: _numpy_conv(v["x"], v["w"])),
    "sum": Sample("of each row, 1024x1024", _sum, lambda v: v["x"].sum(1)),
    "transpose": Sample("1024x1024", _transpose, lambda v: np.ascontiguousarray(v["x"].T)),
}
