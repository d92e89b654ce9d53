"""The device `llvm`: kernels as LLVM IR, compiled in the process by llvmlite for this machine's CPU.

It needs no compiler and no driver, only the package llvmlite, so it is present wherever Rulewright is installed.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import RLock
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]  # the package has no type information
from llvmlite.binding.newpassmanagers import NewPassManager  # type: ignore[import-untyped]  # the same

from ..engine.errors import DeviceError
from ..engine.linear import LinearKernel
from ..renderers.llvm import LlvmRenderer
from .llvm_half import HALF_CONVERSIONS
from .native import NativeKernel
from .threads import cores

_OLDEST = 20  # LLVM's major version in llvmlite 0.45, the first whose pointers are opaque by default

_WINDOWS = os.name == "nt"

_lock = RLock()
"""LLVM's objects are not to be used by two threads at once."""

_numbers = count()  # a library's name cannot be used twice in one JIT


class LlvmRuntime:
    """Compiles for the CPU that it runs on, or for a less able one named by LLVM's `cpu` and `features`.

    Raises DeviceError where llvmlite is too old or does not know the machine.
    """

    name = "llvm"

    def __init__(self, cpu: str | None = None, features: str | None = None) -> None:
        if llvm.llvm_version_info[0] < _OLDEST:
            raise DeviceError(
                f"llvmlite is too old: it has LLVM {_version()}, {_OLDEST} is needed; pip install --upgrade llvmlite"
            )
        with _lock, _reported("LLVM does not know this machine"):
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            self._cpu = llvm.get_host_cpu_name() if cpu is None else cpu
            self._features = _host_features() if features is None else features
            self._target = llvm.Target.from_default_triple()
            self.renderer = LlvmRenderer(_registers(self._features, self._target.triple))
            self._machine = self._new_machine()
            self._jit = llvm.create_lljit_compiler(self._new_machine(), use_jit_link=not _WINDOWS, suppress_errors=True)
        self._half_conversions: bytes | None = None

    @property
    def description(self) -> str:
        return f"LLVM {_version()} for {self._cpu or platform.machine()}, {cores()} threads"

    def build(self, kernel: LinearKernel, source: str) -> NativeKernel:
        """Optimises, compiles and loads. Raises DeviceError with LLVM's own message."""
        with _lock:
            with _reported(f"LLVM refused the source of kernel {kernel.name}"):
                code = self._compile(source)
            with _reported(f"LLVM could not load kernel {kernel.name}{_needs(source)}"):
                names = [part.name for part in kernel.parts]
                library = self._load(names, source, code)
        return NativeKernel([library[name] for name in names], kernel, library)

    def optimized(self, source: str) -> str:
        """The IR after LLVM's passes: what the machine code is made from."""
        with _lock, _reported("LLVM refused the source"):
            return str(self._optimize(source))

    def assembly(self, source: str) -> str:
        """The machine code as text, to read."""
        with _lock, _reported("LLVM refused the source"):
            return str(self._machine.emit_assembly(self._optimize(source)))

    def _new_machine(self) -> Any:
        """Position-independent code of the small model refers to its constants by short offsets.

        The JIT's linker checks that they reach. The older linker, which Windows needs, does not: there, the large model.
        """
        model = "jitdefault" if _WINDOWS else "small"
        return self._target.create_target_machine(
            cpu=self._cpu, features=self._features, opt=3, reloc="pic", codemodel=model, jit=True
        )

    def _compile(self, source: str) -> bytes:
        return bytes(self._machine.emit_object(self._optimize(source)))

    def _optimize(self, source: str) -> Any:
        module = llvm.parse_assembly(source, llvm.create_context())
        module.triple = self._machine.triple
        module.data_layout = str(self._machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        options.loop_interleaving = options.loop_unrolling = True
        builder = llvm.create_pass_builder(self._machine, options)
        passes = builder.getModulePassManager()
        passes.run(module, builder)
        _free(passes)
        return module

    def _load(self, names: list[str], source: str, code: bytes) -> Any:
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name in names:
            builder.export_symbol(name)
        if "half" in source and not self._has_half():
            if self._half_conversions is None:
                self._half_conversions = self._compile(HALF_CONVERSIONS)
            builder.add_object_img(self._half_conversions)
        for function, address in _library_functions(source).items():
            builder.import_symbol(function, address)
        return builder.link(self._jit, f"{names[0]}-{next(_numbers)}")

    def _has_half(self) -> bool:
        """Whether the CPU converts float16 itself; elsewhere LLVM calls functions that may not be in the process."""
        if self._target.triple.startswith(("aarch64", "arm64")):
            return True
        return "+f16c" in self._features.split(",")


@contextmanager
def _reported(doing: str) -> Iterator[None]:
    """Turns llvmlite's RuntimeError into a DeviceError that says what was being done."""
    try:
        yield
    except RuntimeError as problem:
        raise DeviceError(f"{doing}:\n{problem}") from problem


def _free(passes: Any) -> None:
    """Frees a pass manager where llvmlite (0.50) does not: its class inherits an empty `_dispose` before the real one.

    Without this each kernel that is compiled would leave 0.1 MB behind.
    """
    dispose = NewPassManager._dispose
    if type(passes)._dispose is not dispose:
        dispose(passes)
        passes.detach()


def _version() -> str:
    return ".".join(str(part) for part in llvm.llvm_version_info)


def _host_features() -> str:
    """All that the CPU has; empty where LLVM cannot tell, which means what its name implies."""
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:
        return ""


def _registers(features: str, triple: str) -> tuple[int, int]:
    """The float32 lanes of the processor's vector registers, and how many it has."""
    if triple.startswith(("aarch64", "arm64")):
        return 4, 32
    has = features.split(",")
    return (16, 32) if "+avx512f" in has else (8 if "+avx" in has else 4, 16)


_LIBRARY_FUNCTIONS = ("exp2", "log2", "sin")
"""The C library's functions that rendered kernels call, for float64."""


def _called(source: str) -> list[str]:
    return [name for name in _LIBRARY_FUNCTIONS if f"@llvm.{name}.f64(" in source]


def _needs(source: str) -> str:
    names = _called(source)
    return f" (it calls {', '.join(names)} of the C library)" if names else ""


def _library_functions(source: str) -> dict[str, int]:
    """The addresses of the C library's functions that the source calls; what is not found is left to the linker."""
    found = {}
    for name in _called(source):
        for library in _c_libraries():
            if hasattr(library, name):
                found[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
                break
    return found


def _c_libraries() -> list[ctypes.CDLL]:
    libraries = []
    for name in ("ucrtbase",) if _WINDOWS else (None, "libm.so.6"):
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:
            continue
    return libraries
