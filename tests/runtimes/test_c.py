"""The C runtime: which compiler it takes, what it caches, how it fails, and what it passes to the kernel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rulewright.engine import ops
from rulewright.engine.dtypes import float32, int32
from rulewright.engine.errors import DeviceError
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.ops import VarArg
from rulewright.engine.uop import buffer, const, make
from rulewright.runtimes import compiler
from rulewright.runtimes.c import CRuntime
from rulewright.runtimes.devices import probe_kernel

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
pytestmark = pytest.mark.skipif(not COMPILERS, reason="neither gcc nor clang is installed")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RULEWRIGHT_CACHE", str(tmp_path))
    return tmp_path / "c"


@pytest.fixture(params=COMPILERS)
def runtime(request: pytest.FixtureRequest) -> CRuntime:
    return CRuntime(compiler.probe((request.param,)))


def run_probe(runtime: CRuntime) -> list[int]:
    kernel = probe_kernel()
    result = np.zeros(16, np.int32)
    runtime.build(kernel, runtime.renderer.render(kernel))([result, np.arange(16, dtype=np.int32)], {})
    return [int(v) for v in result]


def test_each_compiler_runs_a_kernel(runtime: CRuntime) -> None:
    assert run_probe(runtime) == list(range(1, 17))
    assert runtime.description == runtime._compiler.version


@pytest.mark.parametrize(("macros", "lanes"), [
    ("#define __SSE2__ 1", 4), ("#define __AVX__ 1", 8), ("#define __AVX__ 1\n#define __AVX512F__ 1", 16),
    ("#define __AVX__ 1\n#define __clang__ 1", 16),
])  # fmt: skip
def test_vectors_are_as_long_as_the_compiler_handles_well(macros: str, lanes: int) -> None:
    assert compiler._lanes(macros) == lanes


def test_the_second_build_takes_the_first_ones_library(
    runtime: CRuntime, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_probe(runtime)
    (library,) = cache.iterdir()
    monkeypatch.setattr(compiler, "_run", None)  # no compiler is called any more
    assert run_probe(runtime) == list(range(1, 17))
    assert list(cache.iterdir()) == [library]


def test_another_source_or_flag_is_another_library(runtime: CRuntime, cache: Path) -> None:
    found = runtime._compiler
    paths = {
        found.shared_object("void f(void) {}"),
        found.shared_object("void g(void) {}"),
        found.shared_object("void f(void) {}", ("-g",)),
    }
    assert len(paths) == len(list(cache.iterdir())) == 3


BUILD_IN_CHILD = """
import sys
import numpy as np
from rulewright.runtimes import compiler
from rulewright.runtimes.c import CRuntime
from rulewright.runtimes.devices import probe_kernel
runtime, kernel, result = CRuntime(compiler.probe((sys.argv[1],))), probe_kernel(), np.zeros(16, np.int32)
runtime.build(kernel, runtime.renderer.render(kernel))([result, np.arange(16, dtype=np.int32)], {})
print(result.tolist())
"""


def test_processes_that_build_at_once_do_not_disturb_each_other(runtime: CRuntime, cache: Path) -> None:
    command = [sys.executable, "-c", BUILD_IN_CHILD, runtime._compiler.command[0]]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    printed = [child.communicate(timeout=60)[0].strip() for child in children]
    assert printed == [str(list(range(1, 17)))] * 4
    assert all(path.suffix == ".so" for path in cache.iterdir())


def test_the_compilers_message_is_in_the_error(runtime: CRuntime, cache: Path) -> None:
    with pytest.raises(DeviceError, match=r"did not compile the kernel:\n(.|\n)*nonsense"):
        runtime.build(probe_kernel(), "void probe(void) { nonsense; }")
    assert list(cache.iterdir()) == []


def test_the_environment_names_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{COMPILERS[-1]} -DSOMETHING=1")
    assert compiler.find().command == (COMPILERS[-1], "-DSOMETHING=1")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(DeviceError, match="the C compiler no-such-compiler is not there: install it, or name another"):
        compiler.find()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DeviceError, match="there is no C compiler: install gcc or clang, or name one"):
        compiler.find()


def test_what_is_no_compiler_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="false does not compile C"):
        compiler.probe(("false",))


@pytest.mark.parametrize(("variable", "value", "expected"), [
    ("RULEWRIGHT_CACHE", "/some/where", "/some/where"), ("XDG_CACHE_HOME", "/xdg", "/xdg/rulewright"),
    ("HOME", "/home/me", "/home/me/.cache/rulewright"),
])  # fmt: skip
def test_where_the_cache_lies(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str) -> None:
    for name in ("RULEWRIGHT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    assert compiler.cache_directory() == Path(expected)


def test_variables_and_the_thread_come_after_the_buffers(runtime: CRuntime) -> None:
    """data0[thread] = n - m * 10, by three threads."""
    out = buffer(0, int32, 3)
    m, n = (make(ops.VAR, dtype=int32, arg=VarArg(name, 0, 9)) for name in "mn")
    thread = make(ops.SPECIAL, const(int32, 3), arg=ops.SpecialArg(ops.ThreadKind.THREAD, 0))
    tens = make(ops.MUL, m, const(int32, 10))
    value = make(ops.SUB, n, tens)
    nodes = (out, m, n, const(int32, 3), thread, const(int32, 10), tens, value, make(ops.STORE, out, thread, value))
    variables = (VarArg("m", 0, 9), VarArg("n", 0, 9))
    kernel = LinearKernel("threads", nodes, (BufferParam(0, int32, 3, True),), variables, (), (), 3)
    source = runtime.renderer.render(kernel)
    assert "void threads(int *restrict data0, int m, int n, int thread) {" in source
    result = np.zeros(3, np.int32)
    runtime.build(kernel, source)([result], {"n": 7, "m": 2})
    assert result.tolist() == [-13, -13, -13]


@pytest.mark.parametrize("contracted", [True, False])
def test_a_product_and_a_sum_are_fused_only_where_the_kernel_grants_it(runtime: CRuntime, contracted: bool) -> None:
    """(1 + 2^-12)^2 - 1: the last bits of the square are lost if it is rounded before the sum."""
    if "__FMA__" not in (compiler._macros(runtime._compiler.command, runtime._compiler.options) or ""):
        pytest.skip("the processor has no fused multiply-add")
    out, x = buffer(0, float32, 1), buffer(1, float32, 2)
    zero, one = const(int32, 0), const(int32, 1)
    a, b = make(ops.LOAD, x, zero), make(ops.LOAD, x, one)
    product = make(ops.MUL, a, a)
    total = make(ops.MULACC, a, a, b) if contracted else make(ops.ADD, product, b)
    nodes = (out, x, zero, one, a, b, *(() if contracted else (product,)), total, make(ops.STORE, out, zero, total))
    buffers = (BufferParam(0, float32, 1, True), BufferParam(1, float32, 2, False))
    kernel = LinearKernel("fused", nodes, buffers, (), (), (), 1)
    result = np.zeros(1, np.float32)
    source = np.array([1 + 2.0**-12, -1], np.float32)
    runtime.build(kernel, runtime.renderer.render(kernel))([result, source], {})
    assert result[0] == 2.0**-11 + (2.0**-24 if contracted else 0.0)


def test_integers_wrap_at_every_level_of_optimisation(runtime: CRuntime) -> None:
    """x + 1 > x is false for the greatest x; a compiler that assumes no overflow would say true."""
    out, x = buffer(0, int32, 1), buffer(1, int32, 1)
    zero, one = const(int32, 0), const(int32, 1)
    value = make(ops.LOAD, x, zero)
    more = make(ops.ADD, value, one)
    larger = make(ops.GT, more, value)
    result = make(ops.WHERE, larger, one, zero)
    nodes = (out, x, zero, one, value, more, larger, result, make(ops.STORE, out, zero, result))
    buffers = (BufferParam(0, int32, 1, True), BufferParam(1, int32, 1, False))
    kernel = LinearKernel("wraps", nodes, buffers, (), (), (), 1)
    got = np.full(1, 5, np.int32)
    runtime.build(kernel, runtime.renderer.render(kernel))([got, np.array([2**31 - 1], np.int32)], {})
    assert got.tolist() == [0]


def test_what_a_killed_build_left_behind_does_not_matter(runtime: CRuntime, cache: Path) -> None:
    (cache / "build-left-behind").mkdir(parents=True)
    assert run_probe(runtime) == list(range(1, 17))


def test_a_cache_that_cannot_be_written_is_named(
    runtime: CRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("RULEWRIGHT_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        DeviceError, match=r"cannot keep the built kernel in .*file.*: name another folder in RULEWRIGHT_CACHE"
    ):
        run_probe(runtime)
