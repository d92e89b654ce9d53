"""A photograph is blurred by a separable Gaussian: one kernel along the rows, one along the columns.

Every device that is present must agree with a NumPy evaluation in double precision, to one grey level of 255 where
rounding decides. The result is written as a PNG file.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import rulewright as rw
from PIL import Image
from rulewright.runtimes import devices
from sklearn.datasets import load_sample_image

Pixels = npt.NDArray[np.uint8]
Weights = npt.NDArray[np.float64]


def gaussian(sigma: float) -> Weights:
    """The weights from -3 sigma to 3 sigma."""
    radius = max(1, round(3 * sigma))
    weights: Weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights /= weights.sum()
    return weights


def scale(size: int, weights: Weights) -> Weights:
    """What makes up for the weights that fall outside of the picture, for each position of an axis."""
    return 1 / np.convolve(np.ones(size), weights, "same")


def blur_kernel(shape: tuple[int, ...], axis: int, dtype: str, weights: Weights) -> rw.Kernel:
    """The weighted sum along one axis of a picture; what is outside counts nothing."""
    picture, factor = rw.tensor("picture", shape, dtype), rw.tensor("factor", (shape[axis],))
    radius = len(weights) // 2
    padded = picture.pad([(radius, radius) if a == axis else (0, 0) for a in range(3)]).cast("float32")
    terms = []
    for position, weight in enumerate(weights):
        window = [slice(position, position + size) if a == axis else slice(None) for a, size in enumerate(shape)]
        terms.append(padded[tuple(window)] * float(weight))
    total = sum(terms[1:], terms[0]) * factor[tuple(slice(None) if a == axis else None for a in range(3))]
    return rw.kernel(total if axis == 1 else rw.round(total).cast("uint8"))


class Blur:
    """Both kernels, compiled for one device."""

    def __init__(self, device: str, shape: tuple[int, ...], weights: Weights) -> None:
        self.factors = [scale(shape[axis], weights).astype(np.float32) for axis in (0, 1)]
        self.rows = rw.compile(blur_kernel(shape, 1, "uint8", weights), device=device)
        self.columns = rw.compile(blur_kernel(shape, 0, "float32", weights), device=device)

    def __call__(self, picture: Pixels) -> Pixels:
        along_rows = self.rows(picture=picture, factor=self.factors[1])
        return np.asarray(self.columns(picture=along_rows, factor=self.factors[0]), np.uint8)


def reference(picture: Pixels, weights: Weights) -> Weights:
    """The same in double precision, before rounding."""
    result = picture.astype(np.float64)
    for axis in (1, 0):
        factor = scale(picture.shape[axis], weights)
        result = np.apply_along_axis(lambda line, f=factor: np.convolve(line, weights, "same") * f, axis, result)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sigma", type=float, default=3.0, help="the blur's width in pixels (default: 3)")
    parser.add_argument(
        "--output", type=Path, default=Path("blurred.png"), help="the file written (default: blurred.png)"
    )
    options = parser.parse_args()
    picture = load_sample_image("china.jpg")
    weights = gaussian(options.sigma)
    expected = reference(picture, weights)
    print(f"a picture of {picture.shape[1]} x {picture.shape[0]} pixels, sigma {options.sigma:g}")
    failed = False
    for device in devices.present():
        blur = Blur(device, picture.shape, weights)
        blur(picture)  # some drivers compile only when a kernel first runs
        begin = time.perf_counter()
        result = blur(picture)
        elapsed = time.perf_counter() - begin
        error = float(np.abs(result - expected).max())
        failed |= error > 0.51  # half a level is what rounding to whole levels costs
        print(f"{device:12} {elapsed * 1e3:8.2f} ms  at most {error:.3f} levels of 255 from the exact blur")
        Image.fromarray(result).save(options.output)
    print(f"written: {options.output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
