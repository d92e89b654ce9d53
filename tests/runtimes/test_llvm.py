"""The device llvm beyond the common suite: accuracy of its functions, less able CPUs, registers, threads, memory."""

from __future__ import annotations

import gc
import math
import platform
import weakref
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.dtypes import DType
from rulewright.engine.errors import DeviceError
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.ops import AxisKind, Op, RangeArg, VarArg
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.runtimes.base import Array
from rulewright.runtimes.llvm import LlvmRuntime

X86 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.fixture(scope="module")
def runtime() -> LlvmRuntime:
    return LlvmRuntime()


@pytest.fixture(scope="module")
def plain(runtime: LlvmRuntime) -> LlvmRuntime:
    """The least able CPU of this architecture: on x86-64 without FMA, float16 or rounding instructions."""
    return LlvmRuntime(cpu="x86-64", features="") if X86 else runtime


def loop(axis: int, end: int | UOp, kind: AxisKind = AxisKind.LOOP) -> UOp:
    return make(ops.RANGE, const(d.int32, end) if isinstance(end, int) else end, arg=RangeArg(axis, kind))


def map_kernel(size: int, lanes: int, op: Op, source: DType, to: DType | None = None) -> LinearKernel:
    """data0[i] = op(data1[i]), `lanes` at a time; with `to`, a cast."""
    result = to or source
    out, x, r = buffer(0, result, size), buffer(1, source, size), loop(0, size // lanes)
    i = make(ops.MUL, r, const(d.int32, lanes))
    value = make(ops.LOAD, x, i, dtype=source.vec(lanes))
    mapped = make(op, value, dtype=result.vec(lanes) if to else None)
    nodes = (out, x, r, i, value, mapped, make(ops.STORE, out, i, mapped), make(ops.ENDRANGE, r))
    buffers = (BufferParam(0, result, size, True), BufferParam(1, source, size, False))
    return LinearKernel(f"map_{op.name}", nodes, buffers, (), (), (), 1)


def run(runtime: LlvmRuntime, kernel: LinearKernel, *buffers: Array, **variables: int) -> None:
    runtime.build(kernel, runtime.renderer.render(kernel))(buffers, variables)


# --- the functions that are ours ---------------------------------------------------------------------------------------

SAMPLES = 1 << 18


def arguments() -> list[Array]:
    """All magnitudes, the range in which exp2 is finite, the neighbourhood of 1, and multiples of pi/2."""
    random = np.random.default_rng(1)
    return [
        random.integers(0, 1 << 32, SAMPLES, dtype=np.uint32).view(np.float32),
        (random.random(SAMPLES) * 300 - 150).astype(np.float32),
        (1 + random.normal(size=SAMPLES) * 1e-3).astype(np.float32),
        (random.integers(0, 1 << 24, SAMPLES) * (np.pi / 2)).astype(np.float32),
    ]


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("op", [ops.EXP2, ops.LOG2, ops.SIN], ids=repr)
@pytest.mark.parametrize("machine", ["runtime", "plain"])
def test_functions_are_within_2_units_in_the_last_place(
    request: pytest.FixtureRequest, machine: str, op: Op, lanes: int
) -> None:
    chosen: LlvmRuntime = request.getfixturevalue(machine)
    kernel = map_kernel(SAMPLES, lanes, op, d.float32)
    executable = chosen.build(kernel, chosen.renderer.render(kernel))
    for x in arguments():
        got = np.zeros(SAMPLES, np.float32)
        executable([got, x], {})
        with np.errstate(all="ignore"):
            want = getattr(np, op.name)(x.astype(np.float64))
        assert np.array_equal(np.isnan(want), np.isnan(got))
        in_range = np.isfinite(want) & (np.abs(want) < 3.4e38)
        ulp = np.ldexp(1.0, np.maximum(np.frexp(want[in_range])[1] - 24, -149))
        assert np.max(np.abs(got[in_range] - want[in_range]) / ulp, initial=0) <= 2
        assert np.array_equal(np.sign(want[~in_range]), np.sign(got[~in_range]), equal_nan=True)


PI = Fraction("3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679")


def test_sin_of_huge_numbers_against_exact_reduction(runtime: LlvmRuntime) -> None:
    """With every exponent there is, and a reference that asks no C library."""
    x = np.array([m * 2.0**e for e in range(-10, 127, 3) for m in (1.0, -1.37, 1.9999)], np.float32)
    got = np.zeros(x.size, np.float32)
    run(runtime, map_kernel(x.size, 1, ops.SIN, d.float32), got, x)
    for value, result in zip(x, got, strict=True):
        want = exact_sine(Fraction(float(value)))
        assert abs(float(result) - want) <= 2 * math.ldexp(1.0, math.frexp(want)[1] - 24)


def exact_sine(x: Fraction) -> float:
    """Taylor's series after a reduction in integers, to 80 bits."""
    r = (x + PI) % (2 * PI) - PI
    term, total, k = r, Fraction(0), 1
    while abs(term) > Fraction(1, 1 << 80):
        total += term
        term = Fraction(round(-term * r * r / ((k + 1) * (k + 2)) * (1 << 120)), 1 << 120)
        k += 2
    return float(total)


# --- float16 on CPUs without it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 16])
def test_every_float16_converts_without_instructions_for_it(plain: LlvmRuntime, lanes: int) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    got = np.zeros(1 << 16, np.float32)
    run(plain, map_kernel(1 << 16, lanes, ops.CAST, d.float16, d.float32), got, x)
    assert np.array_equal(got, x.astype(np.float32), equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(x))
    back = np.zeros(1 << 16, np.float16)
    run(plain, map_kernel(1 << 16, lanes, ops.CAST, d.float32, d.float16), back, got)
    assert np.array_equal(back, x, equal_nan=True)


def test_rounding_to_float16_without_instructions_for_it(plain: LlvmRuntime) -> None:
    """Every half and the midpoint to its neighbour, each with the floats just above and below."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([halves, middles, np.array([65504, 65519.996, 65520, 1e9, np.inf], np.float32)])
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0)), -x]).astype(np.float32)
    got = np.zeros(x.size, np.float16)
    run(plain, map_kernel(x.size, 1, ops.CAST, d.float32, d.float16), got, x)
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    assert np.array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("source", [d.float64, d.float32, d.int64, d.uint64, d.int32], ids=repr)
def test_bfloat16_is_rounded_once(runtime: LlvmRuntime, source: DType) -> None:
    """The target does not claim bfloat16, but its conversions are there and exact."""
    random = np.random.default_rng(2)
    if source.is_float:
        ties = random.integers(0, 0x7F80, 4000).astype(np.uint32) << 16 | 0x8000
        x = (ties.view(np.float32).astype(np.float64) * (1 + random.integers(-1, 2, 4000) * 2.0**-40)).astype(
            source.name
        )
    else:
        info = np.iinfo(source.name)
        exponents = random.integers(9, source.bits - 1, 4000)
        numbers = [((1 << 9 | int(m)) << int(e) >> 9) + int(j) for m, e, j in
                   zip(random.integers(0, 512, 4000), exponents, random.integers(-1, 2, 4000), strict=True)]  # fmt: skip
        x = np.array([min(max(n, info.min), info.max) for n in numbers], source.name)
    got = np.zeros(x.size, np.uint16)
    run(runtime, map_kernel(x.size, 1, ops.CAST, source, d.bfloat16), got, x)
    want = [d.bfloat16.canonical(v.item()) for v in x]
    assert [float(v) for v in (got.astype(np.uint32) << 16).view(np.float32)] == want


# --- code, threads, memory ---------------------------------------------------------------------------------------------


def column_sums(lanes: int) -> LinearKernel:
    """Sums of `lanes` columns over n rows in one vector accumulator."""
    out, x = buffer(0, d.float32, lanes), buffer(1, d.float32, None)
    n, zero = make(ops.VAR, dtype=d.int32, arg=VarArg("n", 0, 1000)), const(d.float32.vec(lanes), 0.0)
    r = loop(0, n, AxisKind.REDUCE)
    accumulator = make(ops.DEFINE_ACC, zero, r, arg=make(ops.REDUCE, zero, r, arg=ops.ADD))
    i = make(ops.MUL, r, const(d.int32, lanes))
    value = make(ops.LOAD, x, i, dtype=d.float32.vec(lanes))
    new = make(ops.ADD, accumulator, value)
    total = make(ops.PHI, accumulator, new)
    store = make(ops.STORE, out, const(d.int32, 0), total)
    nodes = (out, x, n, accumulator, r, i, value, new, total, make(ops.ENDRANGE, r), store)
    buffers = (BufferParam(0, d.float32, lanes, True), BufferParam(1, d.float32, None, False))
    return LinearKernel("column_sums", nodes, buffers, (VarArg("n", 0, 1000),), (), (), 1)


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_vector_accumulators_end_in_registers(runtime: LlvmRuntime, lanes: int) -> None:
    text = runtime.optimized(runtime.renderer.render(column_sums(lanes)))
    assert "alloca" not in text
    assert f"phi <{lanes} x float>" in text


def test_index_arithmetic_needs_no_sign_extension_in_the_loop(runtime: LlvmRuntime) -> None:
    """The intervals' `nsw` lets LLVM count in 64 bits."""
    text = runtime.optimized(runtime.renderer.render(column_sums(8)))
    assert "sext" not in text


def test_the_functions_vectorise_with_their_loop(runtime: LlvmRuntime) -> None:
    if not X86:
        pytest.skip("asks for x86-64 vectors")
    machine = LlvmRuntime(cpu="x86-64-v3", features="")
    text = machine.optimized(machine.renderer.render(map_kernel(1024, 1, ops.EXP2, d.float32)))
    assert "@llvm.fmuladd.v8f32" in text


def test_compiling_and_running_in_many_threads(runtime: LlvmRuntime) -> None:
    def work(k: int) -> bool:
        kernel = map_kernel(64, (1, 2, 4, 8)[k % 4], ops.NEG, d.float32)
        got, x = np.zeros(64, np.float32), np.arange(64, dtype=np.float32) + k
        run(runtime, kernel, got, x)
        return bool(np.array_equal(got, -x))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(32)))


def test_code_is_freed_with_its_executable_and_not_before(runtime: LlvmRuntime) -> None:
    kernel = column_sums(4)
    executable = runtime.build(kernel, runtime.renderer.render(kernel))
    library = weakref.ref(executable._library)
    got = np.zeros(4, np.float32)
    executable([got, np.ones(12, np.float32)], {"n": 3})
    assert got.tolist() == [3.0] * 4
    del executable
    gc.collect()
    assert library() is None


def test_compiling_leaves_little_memory_behind(runtime: LlvmRuntime) -> None:
    """A search compiles thousands of kernels."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("reads the resident size from /proc")
    import resource  # not on every system

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    kernel = map_kernel(64, 8, ops.EXP2, d.float32)
    source = runtime.renderer.render(kernel)
    runtime.build(kernel, source)
    before = resident()
    for _ in range(60):
        runtime.build(kernel, source)
    assert resident() - before < 60 * 40_000


def test_refused_source_is_reported_with_llvms_message(runtime: LlvmRuntime) -> None:
    kernel = column_sums(4)
    with pytest.raises(DeviceError, match=r"LLVM refused the source of kernel column_sums:\n(.|\n)*expected type"):
        runtime.build(kernel, "define void @column_sums(nonsense) {}")


def test_a_missing_function_is_an_error_and_not_a_crash(runtime: LlvmRuntime) -> None:
    kernel = column_sums(4)
    source = runtime.renderer.render(kernel).replace("ret void", "call void @no_such_function()\n  ret void")
    with pytest.raises(DeviceError, match="LLVM could not load kernel column_sums"):
        runtime.build(kernel, source + "declare void @no_such_function()\n")
