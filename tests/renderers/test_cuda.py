"""CUDA: what is printed compiles, for the golden kernels and for kernels that the rules made. No GPU is needed.

The tests are skipped where neither NVRTC nor nvcc is found. Nothing here runs the code.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import rulewright as rw
from rulewright.engine import dtypes as d
from rulewright.engine.errors import DeviceError, RenderError
from rulewright.engine.linear import LinearKernel
from rulewright.engine.linearize import linearize
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.target import Context
from rulewright.kernels.heuristic import default_schedule
from rulewright.kernels.kernel import Kernel
from rulewright.kernels.lower import lower
from rulewright.kernels.schedule import parse_schedule
from rulewright.renderers.cuda import CudaRenderer
from rulewright.runtimes.cuda_compiler import MISSING, by_nvcc, compile_ptx, compiler

CUDA = CudaRenderer()
GOLDEN = Path(__file__).parent / "golden"

compiles = pytest.mark.skipif(compiler() is None, reason=MISSING)


def linear(kernel: Kernel, schedule: str = "default") -> LinearKernel:
    """The kernel's linear form for the target cuda."""
    target = CUDA.target
    options = default_schedule(kernel, target, 1) if schedule == "default" else parse_schedule(schedule)
    graph, _ = RuleSet.builtin().rewrite(lower(kernel, options, target), "kernel", Context(target))
    return linearize(graph, kernel.name)


def source_of(kernel: Kernel, schedule: str = "default") -> str:
    return CUDA.render(linear(kernel, schedule))


def assembled(source: str) -> bytes:
    """The kernel as machine code where nvcc is there, which checks each instruction; else as PTX."""
    nvcc = shutil.which("nvcc")
    return compile_ptx(source, 80) if nvcc is None else by_nvcc(nvcc, source, 80, "cubin")


@compiles
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.cu")), ids=lambda path: path.name)
def test_golden_kernel_compiles(path: Path) -> None:
    assert f".entry {path.stem}(" in compile_ptx(path.read_text(), 80).decode()
    assert assembled(path.read_text())


@compiles
def test_a_source_that_is_wrong_is_refused_with_the_compilers_message() -> None:
    with pytest.raises(DeviceError, match=r"did not compile the kernel:\n.*nothing"):
        compile_ptx("__global__ void k() { nothing(); }", 80)


a = rw.tensor("a", (64, 48))
b = rw.tensor("b", (48, 32))
h = rw.tensor("h", (64, 48), "float16")
n = rw.tensor("n", (64, 48), "int8")
KERNELS = {
    "elementwise": (rw.kernel(rw.exp2(a * 2 + 1)), "default"),
    "matmul": (rw.kernel(a @ b), "default"),
    "grouped": (rw.kernel(a.sum(1)), "GROUP(1, 16)"),
    "shared": (rw.kernel(a.sum(1)), "GROUPTOP(1, 16) UPCAST(0, 4)"),
    "softmax": (rw.kernel(rw.exp2(a) / rw.exp2(a).sum(1, keepdims=True)), "default"),
    "halves": (rw.kernel((h * h).max(1)), "default"),
    "bytes": (rw.kernel((n * n) // 3), "default"),
    "doubles": (rw.kernel(a.cast("float64").sum(0)), "UPCAST(0, 4)"),
    "truths": (rw.kernel((a > 0) & (a < 1)), "UPCAST(1, 4)"),
    "padded": (rw.kernel(rw.tensor("p", (7, 5)).max(1)), "PADTO(0, 8) LOCAL(0, 8)"),
}


@compiles
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_compiles(name: str) -> None:
    assert assembled(source_of(*KERNELS[name]))


def test_matmul_has_vectors_and_blocks() -> None:
    text = source_of(KERNELS["matmul"][0])
    assert 'extern "C" __global__ void __launch_bounds__(' in text
    assert "const float4 *" in text
    assert "threadIdx.x" in text


def test_group_threads_share_memory() -> None:
    text = source_of(*KERNELS["grouped"])
    assert "__shared__ __align__(16) float local0[" in text
    assert "__syncthreads();" in text


def test_threads_of_a_processor_are_refused() -> None:
    kernel = linear(KERNELS["matmul"][0])
    with pytest.raises(
        RenderError, match="device cuda cannot express a thread number of int32: its threads are groups"
    ):
        CUDA.render(LinearKernel("k", kernel.uops, kernel.buffers, (), (), (), 2))


def test_half_literals_are_their_bits() -> None:
    assert CUDA.literal(None, d.float16, np.float32(1.0).item()).text == "0x3c00"  # type: ignore[arg-type]
