"""CUDA C++ to PTX: by NVRTC where its library is found, else by `nvcc`. Neither needs a GPU."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..engine.errors import DeviceError
from ..renderers.cuda import FLAGS

MISSING = (
    "no compiler for CUDA was found: pip install nvidia-cuda-nvrtc-cu12, or install the CUDA toolkit, whose `nvcc` must "
    "be on the PATH"
)


def compiler() -> str | None:
    """What compiles here: `NVRTC`, the path of `nvcc`, or None."""
    return "NVRTC" if _nvrtc() is not None else shutil.which("nvcc")


def compile_ptx(source: str, arch: int) -> bytes:
    """The PTX of a source for compute capability `arch`. Raises DeviceError with the compiler's message."""
    library = _nvrtc()
    if library is not None:
        return _by_nvrtc(library, source, arch)
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise DeviceError(MISSING)
    return by_nvcc(nvcc, source, arch, "ptx")


def by_nvcc(nvcc: str, source: str, arch: int, form: str) -> bytes:
    """What `nvcc` makes: `form` is `ptx`, or `cubin`, for which the assembler checks the instructions too."""
    with tempfile.TemporaryDirectory() as folder:
        text, made = Path(folder, "kernel.cu"), Path(folder, f"kernel.{form}")
        text.write_text(source, encoding="utf-8")
        command = [nvcc, f"-arch=sm_{arch}", f"-{form}", *FLAGS, "-o", str(made), str(text)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeviceError(f"nvcc did not compile the kernel:\n{(done.stderr or done.stdout).strip()}")
        return made.read_bytes()


def _by_nvrtc(library: ctypes.CDLL, source: str, arch: int) -> bytes:
    program = ctypes.c_void_p()
    _made(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    try:
        options = [f"--gpu-architecture=compute_{arch}".encode(), *(flag.encode() for flag in FLAGS)]
        listed = (ctypes.c_char_p * len(options))(*options)
        if library.nvrtcCompileProgram(program, len(options), listed):
            log = _text(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
            raise DeviceError(f"NVRTC did not compile the kernel:\n{log.decode(errors='replace').strip()}")
        return _text(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(measure: ctypes._NamedFuncPointer, fetch: ctypes._NamedFuncPointer, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _made(measure(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _made(fetch(program, text))
    return text.value


def _made(status: int) -> None:
    if status:
        raise DeviceError(f"NVRTC failed with status {status}; reinstall it: pip install nvidia-cuda-nvrtc-cu12")


@cache
def _nvrtc() -> ctypes.CDLL | None:
    """The library from the Python package, from where the system looks, or None."""
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _candidates() -> Iterator[str]:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for name in ("cuda_nvrtc/lib", "cuda_nvrtc/bin", "cu13/lib", "cu13/bin"):
            found = sorted([*Path(folder, name).glob("libnvrtc.so*"), *Path(folder, name).glob("nvrtc64_*_0.dll")])
            yield from map(str, reversed(found))
    system = ctypes.util.find_library("nvrtc")
    if system is not None:
        yield system
