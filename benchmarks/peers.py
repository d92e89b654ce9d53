"""The same workloads by other systems, as each is best used: Numba, Halide and tinygrad, where they are installed.

A peer is a function from a workload's name and its inputs to a function without arguments that runs it once and
returns the result, or None where it has no such workload.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Run = Callable[[], Array]
Peer = Callable[[str, Arrays], Run | None]


def peers() -> dict[str, Peer]:
    """Those that are installed, by name."""
    found: dict[str, Peer] = {}
    if importlib.util.find_spec("numba"):
        found["numba"] = numba
    if importlib.util.find_spec("halide"):
        found["Halide"] = halide
    if importlib.util.find_spec("tinygrad"):
        for device in ("CPU", "CL"):
            found[f"tinygrad {device}"] = _on(device)
    return found


# --- Numba -----------------------------------------------------------------------------------------------------------


def numba(name: str, arrays: Arrays) -> Run | None:
    """Loops as a user writes them, compiled with `parallel` and `fastmath`."""
    import numba as nb

    made = _NUMBA.get(name)
    if made is None:
        return None
    inputs = list(arrays.values())
    compiled = nb.njit(parallel=True, fastmath=True)(made)
    if name == "sum":
        return lambda: np.asarray(compiled(*inputs), np.float32)
    out = np.empty(_shape(name, arrays), np.float32)

    def run() -> Array:
        compiled(out, *inputs)
        return out

    return run


def _shape(name: str, arrays: Arrays) -> tuple[int, ...]:
    """The shape of the result."""
    first, *others = arrays.values()
    if name == "matmul":
        return first.shape[0], others[0].shape[1]
    if name == "conv 3x3":
        return first.shape[0], others[0].shape[0], first.shape[2] - 2, first.shape[3] - 2
    return first.shape[::-1] if name == "transpose" else first.shape


def _muladd(out: Any, a: Any, b: Any, c: Any) -> None:
    for i in _prange(out.size):
        out[i] = a[i] * b[i] + c[i]


def _sum(x: Any) -> Any:
    total = np.float32(0)
    for i in _prange(x.size):
        total += x[i]
    return total


def _softmax(out: Any, x: Any) -> None:
    for i in _prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            out[i, j] = np.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total


def _matmul(out: Any, a: Any, b: Any) -> None:
    for i in _prange(out.shape[0]):
        out[i, :] = 0
        for k in range(a.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


def _conv(out: Any, x: Any, w: Any) -> None:
    for n in _prange(out.shape[0] * out.shape[1]):
        picture, filter_ = n // out.shape[1], n % out.shape[1]
        for y in range(out.shape[2]):
            out[picture, filter_, y, :] = 0
            for c in range(x.shape[1]):
                for dy in range(3):
                    for dx in range(3):
                        for col in range(out.shape[3]):
                            out[picture, filter_, y, col] += x[picture, c, y + dy, col + dx] * w[filter_, c, dy, dx]


def _transpose(out: Any, x: Any) -> None:
    for block in _prange(x.shape[0] // 16):
        for j in range(0, x.shape[1], 16):
            for r in range(j, j + 16):
                for k in range(block * 16, block * 16 + 16):
                    out[r, k] = x[k, r]


_NUMBA: dict[str, Callable[..., Any]] = {
    "a*b+c": _muladd, "sum": _sum, "softmax": _softmax, "matmul": _matmul, "conv 3x3": _conv,
    "transpose": _transpose,
}  # fmt: skip

_prange: Any = importlib.import_module("numba").prange if importlib.util.find_spec("numba") else range


# --- Halide ----------------------------------------------------------------------------------------------------------


def halide(name: str, arrays: Arrays) -> Run | None:
    """Schedules by hand: vectors, register tiles, parallel outer loops."""
    import halide as hl

    made = {
        "a*b+c": _halide_muladd, "sum": _halide_sum, "softmax": _halide_softmax, "matmul": _halide_matmul,
        "conv 3x3": _halide_conv, "transpose": _halide_transpose,
    }.get(name)  # fmt: skip
    if made is None:
        return None
    target = hl.get_jit_target_from_environment().with_feature(hl.TargetFeature.NoAsserts)
    lanes = 16 if target.has_feature(hl.TargetFeature.AVX512) else 8
    pipeline = made(hl, [hl.Buffer(array) for array in arrays.values()], lanes)
    out = np.empty((1,) if name == "sum" else _shape(name, arrays), np.float32)
    buffer = hl.Buffer(out)
    pipeline.compile_jit(target)

    def run() -> Array:
        pipeline.realize(buffer, target)
        return out.reshape(()) if name == "sum" else out

    return run


def _halide_muladd(hl: Any, inputs: list[Any], lanes: int) -> Any:
    a, b, c = inputs
    x, outer = hl.Var("x"), hl.Var("outer")
    f = hl.Func("f")
    f[x] = a[x] * b[x] + c[x]
    f.vectorize(x, lanes).split(x, outer, x, a.width() // lanes // 8).parallel(outer)
    return f


def _halide_sum(hl: Any, inputs: list[Any], lanes: int) -> Any:
    (a,) = inputs
    parts, wide = 8, 8 * lanes
    each = a.width() // parts // wide
    x, u, v = hl.Var("x"), hl.Var("u"), hl.Var("v")
    r = hl.RDom([hl.Range(0, each)])
    lane, part = hl.Func("lane"), hl.Func("part")
    lane[v, u] = 0.0
    lane[v, u] += a[(u * each + r) * wide + v]
    lane.compute_root().vectorize(v, lanes).parallel(u)
    lane.update().reorder(v, r, u).vectorize(v, lanes).unroll(v).parallel(u)
    lane.bound(v, 0, wide)
    part[x] = 0.0
    all_ = hl.RDom([hl.Range(0, wide), hl.Range(0, parts)])
    part[x] += lane[all_.x, all_.y]
    return part


def _halide_softmax(hl: Any, inputs: list[Any], lanes: int) -> Any:
    (a,) = inputs
    x, y = hl.Var("x"), hl.Var("y")
    r = hl.RDom([hl.Range(0, a.width())])
    top, power, total, f = hl.Func("top"), hl.Func("power"), hl.Func("total"), hl.Func("f")
    top[y] = hl.maximum(a[r, y])
    power[x, y] = hl.fast_exp(a[x, y] - top[y])
    total[y] = hl.sum(power[r, y])
    f[x, y] = power[x, y] / total[y]
    f.vectorize(x, lanes).parallel(y, 16)
    power.compute_at(f, y).vectorize(x, lanes)
    top.compute_at(f, y)
    total.compute_at(f, y)
    return f


def _halide_matmul(hl: Any, inputs: list[Any], lanes: int) -> Any:
    a, b = inputs
    x, y, xo, yo, xi, yi = (hl.Var(n) for n in ("x", "y", "xo", "yo", "xi", "yi"))
    k = hl.RDom([hl.Range(0, a.width())])
    product, f = hl.Func("product"), hl.Func("f")
    product[x, y] = 0.0
    product[x, y] += a[k, y] * b[x, k]
    f[x, y] = product[x, y]
    f.tile(x, y, xo, yo, xi, yi, 2 * lanes, 4).reorder(xi, yi, yo, xo).vectorize(xi, lanes).unroll(xi).unroll(yi)
    f.parallel(xo)
    product.compute_at(f, yo).vectorize(x, lanes).unroll(x).unroll(y)
    product.update().reorder(x, y, k).vectorize(x, lanes).unroll(x).unroll(y)
    return f


def _halide_conv(hl: Any, inputs: list[Any], lanes: int) -> Any:
    a, w = inputs
    x, y, c, n, xo, xi, co, ci = (hl.Var(name) for name in ("x", "y", "c", "n", "xo", "xi", "co", "ci"))
    r = hl.RDom([hl.Range(0, 3), hl.Range(0, 3), hl.Range(0, a.dim(2).extent())])
    total, f = hl.Func("total"), hl.Func("f")
    total[x, y, c, n] = 0.0
    total[x, y, c, n] += a[x + r.x, y + r.y, r.z, n] * w[r.x, r.y, r.z, c]
    f[x, y, c, n] = total[x, y, c, n]
    f.split(x, xo, xi, lanes).split(c, co, ci, 8).reorder(xi, ci, xo, y, co, n).vectorize(xi).unroll(ci)
    f.parallel(n)
    total.compute_at(f, xo).vectorize(x, lanes).unroll(c)
    total.update().reorder(x, c, r.x, r.y, r.z).vectorize(x, lanes).unroll(c).unroll(r.x).unroll(r.y)
    return f


def _halide_transpose(hl: Any, inputs: list[Any], lanes: int) -> Any:
    (a,) = inputs
    x, y, xo, yo, xi, yi = (hl.Var(n) for n in ("x", "y", "xo", "yo", "xi", "yi"))
    block, f = hl.Func("block"), hl.Func("f")
    block[x, y] = a[y, x]
    f[x, y] = block[x, y]
    f.tile(x, y, xo, yo, xi, yi, 16, 16).vectorize(xi, lanes).unroll(yi).parallel(yo)
    block.compute_at(f, xo).vectorize(y, lanes).unroll(x)
    return f


# --- tinygrad --------------------------------------------------------------------------------------------------------


def _on(device: str) -> Peer:
    def peer(name: str, arrays: Arrays) -> Run | None:
        return _tinygrad(device, name, arrays)

    return peer


def _tinygrad(device: str, name: str, arrays: Arrays) -> Run | None:
    """As a captured graph of kernels on one of its devices, its own schedules; inputs and result stay in its buffers."""
    from tinygrad import Device, Tensor, TinyJit

    def compute(*inputs: Any) -> Any:
        match name:
            case "a*b+c":
                return (inputs[0] * inputs[1] + inputs[2]).realize()
            case "sum":
                return inputs[0].sum().realize()
            case "softmax":
                return inputs[0].softmax(1).realize()
            case "matmul":
                return (inputs[0] @ inputs[1]).realize()
            case "conv 3x3":
                return inputs[0].conv2d(inputs[1]).realize()
            case "transpose":
                return inputs[0].T.contiguous().realize()
        return None

    tensors = [Tensor(array, device=device).realize() for array in arrays.values()]
    if compute(*tensors) is None:
        return None
    jitted = TinyJit(compute)

    def run() -> Array:
        result = jitted(*tensors)
        Device[device].synchronize()
        return _Later(result)  # type: ignore[return-value] # fetched only when the result is compared

    run(), run()
    return run


class _Later:
    """A result that is copied out of its device when it is looked at."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.tensor.numpy(), dtype)
