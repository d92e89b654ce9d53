"""Every schedule option on whole kernels: the same results as NumPy, on every device that takes it."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
import rulewright as rw
from rulewright.engine import ops
from rulewright.engine.errors import KernelError
from rulewright.engine.validate import validate
from rulewright.kernels.kernel import Kernel
from rulewright.kernels.reference import differences, make_buffers
from rulewright.program import Program
from rulewright.runtimes import devices

ALL = ("llvm", "c", "opencl", "interpreter")
GROUPS = ("opencl", "interpreter")


def required(name: str) -> None:
    """Skips, with the reason, where a device is absent; fails where the environment requires it."""
    status = devices.probe(name)
    if not status.present:
        if name in os.environ.get("RULEWRIGHT_REQUIRE_DEVICES", "").split(","):
            pytest.fail(f"device {name} is required here and absent: {status.reason}")
        pytest.skip(f"device {name} is absent: {status.reason}")


def checked(kernel: Kernel, device: str, schedule: str) -> Program:
    """Compiles, runs, compares with NumPy, and compiles the recorded schedule again to the same source."""
    required(device)
    program = rw.compile(kernel, device, schedule)
    before = make_buffers(kernel, {})
    after = [buffer.copy() for buffer in before]
    program.run_in_place(after)
    assert list(differences(kernel, before, after, {})) == [], f"{schedule}\n{program.source}"
    assert rw.compile(kernel, device, program.schedule).source == program.source
    return program


def count(program: Program, op: ops.Op) -> int:
    return sum(node.op is op for node in program.uops)


def softmax(rows: int = 6, columns: int = 32, axis: int = 1) -> Kernel:
    x = rw.tensor("x", (rows, columns))
    powers = rw.exp(x - x.max(axis, keepdims=True))
    return rw.kernel(powers / powers.sum(axis, keepdims=True))


def log_softmax() -> Kernel:
    x = rw.tensor("x", (4, 24))
    moved = x - x.max(1, keepdims=True)
    return rw.kernel(moved - rw.log(rw.exp(moved).sum(1, keepdims=True)))


def layer_norm() -> Kernel:
    x = rw.tensor("x", (4, 24))
    centred = x - x.mean(1, keepdims=True)
    return rw.kernel(centred / rw.sqrt((centred * centred).mean(1, keepdims=True) + 1e-5))


def variance() -> Kernel:
    x = rw.tensor("x", (6, 40))
    centred = x - x.mean(1, keepdims=True)
    return rw.kernel([(centred * centred).mean(1), x.max(1)])


def argmax() -> Kernel:
    """The first place of the maximum, as a minimum over places."""
    x = rw.tensor("x", (5, 24))
    places = rw.tensor("places", (24,), "int32")
    return rw.kernel(rw.where(x == x.max(1, keepdims=True), places[None], 99).min(1))


def matmul(rows: int = 12, inner: int = 20, columns: int = 16) -> Kernel:
    return rw.kernel(rw.tensor("a", (rows, inner)) @ rw.tensor("b", (inner, columns)))


MULTI = {
    "softmax": softmax,
    "log-softmax": log_softmax,
    "layer-norm": layer_norm,
    "variance": variance,
    "argmax": argmax,
}


@pytest.mark.parametrize("device", ALL)
@pytest.mark.parametrize("name", ["softmax", "log-softmax", "layer-norm"])
def test_axes_that_are_reduced_and_stored_become_lanes(name: str, device: str) -> None:
    program = checked(MULTI[name](), device, "UPCAST(1, 8) UNROLL(1, 4)")
    assert any(node.op is ops.STORE and node.src[2].dtype.lanes > 1 for node in program.uops)


@pytest.mark.parametrize("device", ALL)
@pytest.mark.parametrize(
    "schedule", ["UPCAST(0, 2)", "UPCAST(1, 4)", "UPCAST(0, 6) UPCAST(1, 2)", "UNROLL(0, 3) UPCAST(0, 2)"]
)
def test_softmax_along_the_first_axis(schedule: str, device: str) -> None:
    checked(softmax(axis=0), device, schedule)


@pytest.mark.parametrize("device", GROUPS)
@pytest.mark.parametrize("name", MULTI)
@pytest.mark.parametrize("schedule", ["GROUP(1, 8)", "GROUPTOP(1, 4) UNROLL(1, 2)"])
def test_threads_share_out_every_reduction_of_a_kernel(name: str, schedule: str, device: str) -> None:
    program = checked(MULTI[name](), device, schedule)
    assert count(program, ops.LOCAL) == count(program, ops.BARRIER) == (2 if name != "variance" else 3)


def test_stores_share_the_threads_too() -> None:
    """No thread is idle in the last loop of a softmax: none stores under a gate."""
    assert count(checked(softmax(), "interpreter", "GROUP(1, 8)"), ops.IF) == 0
    assert count(checked(softmax(), "interpreter", "UPCAST(1, 8) GROUP(1, 8)"), ops.IF) == 1
    assert count(checked(variance(), "interpreter", "GROUP(1, 8)"), ops.IF) >= 1


@pytest.mark.parametrize("device", GROUPS)
@pytest.mark.parametrize("schedule", [
    "GROUP(2, 5) UPCAST(1, 4)", "GROUP(2, 10) UPCAST(0, 4) UPCAST(1, 4)", "UNROLL(2, 2) GROUP(2, 5) UPCAST(1, 4)",
    "LOCAL(0, 4) GROUP(2, 5)", "GROUPTOP(2, 0)", "LOCAL(0, 3) LOCAL(1, 4) GROUPTOP(2, 2) UNROLL(2, 5) UPCAST(1, 2)",
    "PADTO(2, 8) GROUP(2, 8)",
])  # fmt: skip
def test_grouped_product_with_lanes_inside_and_outside(schedule: str, device: str) -> None:
    checked(matmul(), device, schedule)


@pytest.mark.parametrize("device", GROUPS)
@pytest.mark.parametrize(
    "schedule", ["GROUP(1, 4)", "GROUP(2, 3)", "GROUP(1, 2) GROUP(2, 3)", "GROUPTOP(2, 2) GROUP(1, 4)"]
)
def test_two_grouped_axes(schedule: str, device: str) -> None:
    """One sum over both, and a maximum over sums of one."""
    x = rw.tensor("x", (3, 8, 6))
    checked(rw.kernel([x.sum((1, 2)), x.sum(2).max(1)]), device, schedule)


@pytest.mark.parametrize("device", GROUPS)
def test_shares_in_a_loop_have_a_barrier_before_the_next_step(device: str) -> None:
    """The sums vary in the loop of the maximum, which is not shared out."""
    x = rw.tensor("x", (3, 8, 6))
    program = checked(rw.kernel(x.sum(2).max(1)), device, "GROUP(2, 3)")
    assert count(program, ops.BARRIER) == 2


@pytest.mark.parametrize("device", GROUPS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "uint64"])
def test_grouped_maximum_of_each_type(dtype: str, device: str) -> None:
    checked(rw.kernel(rw.tensor("x", (4, 24), dtype).max(1)), device, "GROUP(1, 4) UPCAST(0, 2)")


PADDED: dict[str, Callable[[rw.Tensor], rw.Tensor]] = {
    "sum": lambda x: x.sum(1),
    "exp": lambda x: rw.exp(x).sum(1),
    "reciprocal": lambda x: (1 / x).sum(1),
    "max": lambda x: (-x * x - 1).max(1),
    "min": lambda x: (x * x + 1).min(1),
    "prod": lambda x: (x + 1).prod(1),
    "where": lambda x: rw.where(x > 0, 0.0, x + 2).sum(1),
    "softmax": lambda x: (
        rw.exp(x - x.max(1, keepdims=True)) / rw.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    "elementwise": lambda x: rw.exp(x) + 1,
}


@pytest.mark.parametrize("device", ALL)
@pytest.mark.parametrize("name", PADDED)
def test_padding_reads_the_identity(name: str, device: str) -> None:
    x = rw.tensor("x", (3, 13))
    kernel = rw.kernel(PADDED[name](x))
    unrolled = "UNROLL(1, 4)" if name != "elementwise" else "UPCAST(1, 4)"
    checked(kernel, device, f"PADTO(1, 8) {unrolled} PADTO(0, 4) UPCAST(0, 2)")


@pytest.mark.parametrize("device", ALL)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
def test_padding_reads_the_identity_of_each_type(op: str, dtype: str, device: str) -> None:
    reduced = getattr(rw.tensor("x", (3, 7), dtype), op)(1)
    checked(rw.kernel(reduced), device, "PADTO(1, 4) UNROLL(1, 4)")


@pytest.mark.parametrize("device", ALL)
def test_padding_divides_by_nothing(device: str) -> None:
    """What a padded place reads is 0, and a quotient by it is not to trap."""
    a, b = rw.tensor("a", (3, 7), "int32"), rw.tensor("b", (3, 7), "int32")
    kernel = rw.kernel((a // rw.maximum(b, 1)).sum(1))
    checked(kernel, device, "PADTO(1, 4) UNROLL(1, 4)")
    trapping = rw.kernel((a // b).sum(1))
    required(device)
    program = rw.compile(trapping, device, "PADTO(1, 8) UNROLL(1, 4)")
    x, y = np.arange(21, dtype=np.int32).reshape(3, 7), np.arange(1, 22, dtype=np.int32).reshape(3, 7)
    assert np.array_equal(program(x, y), (x // y).sum(1, dtype=np.int32))


@pytest.mark.parametrize("device", ALL)
def test_swapped_axes(device: str) -> None:
    program = checked(rw.kernel(rw.tensor("x", (4, 6, 10)).permute(2, 0, 1) * 2), device, "SWAP(0, 2) UPCAST(0, 2)")
    assert program.source != rw.compile(program.kernel, device, "UPCAST(0, 2)").source


@pytest.mark.parametrize("device", ALL)
def test_no_locals(device: str) -> None:
    program = checked(matmul(), device, "NOLOCALS UPCAST(1, 4)")
    assert "get_local_id" not in program.source
    with pytest.raises(KernelError, match="cannot have group threads"):
        rw.compile(program.kernel, device, "NOLOCALS LOCAL(0, 2)")


@pytest.mark.parametrize("device", ["llvm", "c"])
@pytest.mark.parametrize(
    "schedule", ["THREAD(0, 3) UPCAST(1, 4)", "PADTO(0, 8) THREAD(0, 4)", "THREAD(1, 2) UNROLL(2, 4)"]
)
def test_cpu_threads(schedule: str, device: str) -> None:
    checked(matmul(), device, schedule)


def sums(axis: int | tuple[int, ...]) -> Kernel:
    return rw.kernel(rw.tensor("x", (6, 48)).sum(axis))


@pytest.mark.parametrize("device", ALL)
@pytest.mark.parametrize(("build", "schedule", "parts"), [
    (lambda: sums((0, 1)), "SHARE(1, 4) PARTIAL(1, 4)", 2),
    (lambda: sums((0, 1)), "SHARE(0, 0)", 2),
    (lambda: sums(1), "SHARE(1, 4)", 2),
    (lambda: sums(1), "UPCAST(0, 2) PADTO(1, 10) SHARE(1, 2) UNROLL(1, 5)", 2),
    (lambda: sums(0), "UPCAST(0, 16) UPCAST(0, 3) SHARE(1, 3) PARTIAL(1, 2)", 2),
    (softmax, "SHARE(1, 4)", 3),
    (softmax, "SHARE(1, 4) UPCAST(1, 4) PARTIAL(1, 8) UPCAST(0, 3)", 3),
    (lambda: softmax(axis=0), "UPCAST(1, 4) SHARE(0, 2)", 3),
    (log_softmax, "SHARE(1, 2) PARTIAL(1, 4)", 3),
    (variance, "UPCAST(0, 2) SHARE(1, 5)", 3),
    (argmax, "SHARE(1, 3)", 3),
])  # fmt: skip
def test_reductions_are_shared_out_and_combined(
    build: Callable[[], Kernel], schedule: str, parts: int, device: str
) -> None:
    program = checked(build(), device, schedule)
    assert len(program.linear.parts) == parts
    assert validate(program.linear) == []
    plain = rw.compile(program.kernel, device, "none").estimates()
    assert program.estimates().bytes_written == plain.bytes_written


@pytest.mark.parametrize("device", ALL)
def test_a_shared_sum_has_the_same_bits_each_time(device: str) -> None:
    required(device)
    program = rw.compile(rw.kernel(rw.tensor("x", (1 << 14,)).sum(0)), device, "SHARE(0, 4) PARTIAL(0, 8)")
    x = np.random.default_rng(0).random(1 << 14, np.float32)
    first = program(x).tobytes()
    launch = program.bind(x)
    for _ in range(50):
        launch()
        assert launch["out"].tobytes() == first


@pytest.mark.parametrize("device", ["llvm", "c"])
def test_a_call_keeps_what_it_works_on(device: str) -> None:
    """Of all that was bound only the call is left; the memory of the others could be given to somebody else."""
    required(device)
    x = np.ones(1 << 16, np.float32)
    program = rw.compile(rw.kernel(rw.tensor("x", (1 << 16,)).sum(0)), device, "SHARE(0, 4)")
    bound = program.bind(x).bound
    out, run = bound.read(0), bound.run
    out[...] = 0
    del program, bound
    others = [np.full(1 << 16, np.nan, np.float32) for _ in range(8)]
    run()
    assert out == 1 << 16 and len(others) == 8
