"""How long code generation takes: from a kernel to its source, the default schedule, a warm process, beside tinygrad 0.14.0.

    python benchmarks/codegen.py                    # all kernels, device llvm
    python benchmarks/codegen.py --device opencl --only matmul,softmax

Times are user CPU milliseconds, the least of several runs; the peers take turns. Ours start at the description of the
kernel; tinygrad's at the scheduled kernel (its scheduling is not counted), for its CPU device. Neither compiles.
tinygrad is an optional peer: `pip install tinygrad==0.14.0`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from time import process_time
from typing import Any

import rulewright as rw
from rulewright.kernels.heuristic import default_schedule
from rulewright.program import generate
from rulewright.runtimes import devices

# --- the kernels ------------------------------------------------------------------------------------------------------


def matmul() -> rw.Kernel:
    a, b = rw.tensor("a", (1024, 1024), "float32"), rw.tensor("b", (1024, 1024), "float32")
    return rw.kernel((a[:, :, None] * b[None]).sum(1))


def conv() -> rw.Kernel:
    """3x3, a batch of 8, 32 to 64 channels, 56x56 results: the windows are strided views."""
    batch, inputs, outputs, size = 8, 32, 64, 56
    row, plane = size + 2, (size + 2) * (size + 2)
    shape = [batch, outputs, size, size, inputs, 3, 3]
    windows = {"shape": shape, "strides": [inputs * plane, 0, row, 1, plane, row, 1], "offset": 0, "mask": None}
    weights = {"shape": shape, "strides": [0, inputs * 9, 0, 0, 9, 3, 1], "offset": 0, "mask": None}
    result = {"shape": [*shape[:4], 1, 1, 1], "offset": 0, "mask": None,
              "strides": [outputs * size * size, size * size, size, 1, 0, 0, 0]}  # fmt: skip
    nodes = [
        {"op": "load", "buffer": 1, "dtype": "float32", "views": [windows]},
        {"op": "load", "buffer": 2, "dtype": "float32", "views": [weights]},
        {"op": "mul", "src": [0, 1], "dtype": "float32"},
        {"op": "reduce_sum", "src": [2], "axes": [4, 5, 6]},
        {"op": "store", "buffer": 0, "dtype": "float32", "views": [result], "src": [3]},
    ]
    return rw.read_kernel({"id": "conv", "nodes": nodes})


def softmax() -> rw.Kernel:
    x = rw.tensor("x", (4096, 4096), "float32")
    powers = rw.exp(x - x.max(1, keepdims=True))
    return rw.kernel(powers / powers.sum(1, keepdims=True))


def total() -> rw.Kernel:
    return rw.kernel(rw.tensor("x", (1 << 24,), "float32").sum(0))


def layernorm() -> rw.Kernel:
    x = rw.tensor("x", (4096, 1024), "float32")
    away = x - x.mean(1, keepdims=True)
    return rw.kernel(away / rw.sqrt((away * away).mean(1, keepdims=True) + 1e-5))


KERNELS: dict[str, Callable[[], rw.Kernel]] = {
    "matmul": matmul, "conv": conv, "softmax": softmax, "sum": total, "layernorm": layernorm,
}  # fmt: skip


def ours(name: str, device: str) -> Callable[[], object]:
    """Generates the source of a kernel once."""
    runtime = devices.get(device)

    def run() -> object:
        kernel = KERNELS[name]()
        schedule = default_schedule(kernel, runtime.renderer.target, devices.default_threads())
        linear, _ = generate(kernel, runtime, schedule)
        return runtime.renderer.render(linear)

    return run


# --- the peer --------------------------------------------------------------------------------------------------------


def theirs(name: str) -> Callable[[], object]:
    """The same with tinygrad: every kernel that the tensor expression is scheduled as, through its code generator."""
    tensor = importlib.import_module("tinygrad").Tensor
    codegen = importlib.import_module("tinygrad.codegen")
    renderer = importlib.import_module("tinygrad").Device["CPU"].renderer
    scheduled = _peer_expression(tensor, name).schedule_linear()
    asts = [call.src[0] for call in scheduled.src if call.src[0].op.name == "SINK"]

    def run() -> object:
        sources = []
        for ast in asts:
            sink = codegen.full_rewrite_to_sink(ast, renderer)
            lines = codegen.line_rewrite(codegen.linearize(sink), codegen.pm_linearize_cleanups)
            sources.append(renderer.render(lines))
        return sources

    return run


def _peer_expression(tensor: Any, name: str) -> Any:
    def full(*shape: int) -> Any:
        return tensor.empty(*shape, device="CPU")

    match name:
        case "matmul":
            return full(1024, 1024) @ full(1024, 1024)
        case "conv":
            return full(8, 32, 58, 58).conv2d(full(64, 32, 3, 3))
        case "softmax":
            return full(4096, 4096).softmax(-1)
        case "sum":
            return full(1 << 24).sum()
        case _:
            return full(4096, 1024).layernorm()


# --- the table -------------------------------------------------------------------------------------------------------


def least(runs: int, *candidates: Callable[[], object]) -> list[float]:
    """The least time of each in milliseconds, taking turns."""
    best = [float("inf")] * len(candidates)
    for turn in range(runs + 1):
        for number, candidate in enumerate(candidates):
            start = process_time()
            candidate()
            if turn:  # the first warms up
                best[number] = min(best[number], (process_time() - start) * 1e3)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="llvm")
    parser.add_argument("--only", default="", help="kernels, with commas")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-peer", action="store_true", help="without tinygrad")
    options = parser.parse_args()
    for name in options.only.split(",") if options.only else KERNELS:
        candidates = [ours(name, options.device)]
        if not options.no_peer:
            try:
                candidates.append(theirs(name))
            except ImportError as missing:
                print(f"without tinygrad: {missing}")
        times = least(options.runs, *candidates)
        peer = f"   tinygrad {times[1]:8.1f} ms   ratio {times[1] / times[0]:5.1f}" if len(times) > 1 else ""
        print(f"{name:10} {times[0]:8.1f} ms{peer}", flush=True)


if __name__ == "__main__":
    main()
