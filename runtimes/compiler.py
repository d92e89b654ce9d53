"""The C compiler of this machine: which it is, what it accepts, and a cache of what it has built."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..engine.errors import DeviceError

_TUNING = (("-march=native",), ("-mcpu=native",), ())
"""How to ask for this processor's instructions, in the order in which they are tried."""

_OPTIONS = ("-O3", "-fno-math-errno", "-fno-trapping-math")
"""Options that change no result: kernels look at neither errno nor the floating-point exceptions."""

_ROUND_HALF = ("-fexcess-precision=16", "-ffloat16-excess-precision=none")
"""Options, of GCC and of Clang, that make each float16 operator round; else they keep more precision in between."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler. `identity` changes with its version and with the instructions that it generates.

    `lanes` are the float32 in the longest vector that it keeps in registers: Clang splits longer ones well, GCC moves
    them through memory.
    """

    command: tuple[str, ...]
    version: str
    options: tuple[str, ...]
    identity: str
    lanes: int
    registers: tuple[int, int]  # of the processor: the float32 lanes of one, and how many there are

    def shared_object(self, source: str, flags: Sequence[str] = ()) -> Path:
        """A shared library built from C text, from the cache if it is there. Raises DeviceError with the messages."""
        options = (*self.options, *flags)
        key = hashlib.sha256("\0".join((self.identity, *options, source)).encode()).hexdigest()
        path = cache_directory() / "c" / f"{key[:32]}.so"
        if not path.exists():
            try:
                self._build(source, options, path)
            except OSError as problem:
                raise DeviceError(
                    f"cannot keep the built kernel in {path.parent}: name another folder in RULEWRIGHT_CACHE ({problem})"
                ) from problem
        return path

    def _build(self, source: str, options: Sequence[str], path: Path) -> None:
        """Builds under a name of its own, then renames: another process sees nothing or the whole file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=path.parent) as folder:
            made = Path(folder) / "kernel.so"
            done = _run([*self.command, *options, "-fPIC", "-shared", "-x", "c", "-", "-o", str(made), "-lm"], source)
            if done.returncode != 0:
                raise DeviceError(f"{self.command[0]} did not compile the kernel:\n{done.stderr.strip()}")
            made.replace(path)

    def confirms(self, source: str) -> bool:
        """Whether C text with a function `int works(double tiny)` compiles, loads, and says so for 2^-11.

        The argument keeps the compiler from computing the answer; running it shows what compiling can't, such as
        library functions that the compiler calls in another way than they were built.
        """
        try:
            works = ctypes.CDLL(str(self.shared_object(source)))["works"]
        except (DeviceError, OSError):
            return False
        return bool(works(ctypes.c_double(2.0**-11)))


def cache_directory() -> Path:
    """Where built kernels are kept: $RULEWRIGHT_CACHE, else `rulewright` in the user's cache directory."""
    named = os.environ.get("RULEWRIGHT_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rulewright"


def find() -> Compiler:
    """The compiler that $CC names, else the first of cc, gcc and clang. Raises DeviceError if there is none."""
    named = os.environ.get("CC")
    if named:
        return probe(tuple(shlex.split(named)))
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return probe((name,))
    raise DeviceError("there is no C compiler: install gcc or clang, or name one in the environment variable CC")


@cache
def probe(command: tuple[str, ...]) -> Compiler:
    """The compiler behind a command, with the options that it accepts. Raises DeviceError if it is none."""
    if shutil.which(command[0]) is None:
        raise DeviceError(f"the C compiler {command[0]} is not there: install it, or name another in CC")
    version = _run([*command, "--version"]).stdout.partition("\n")[0].strip()
    for tuning in _TUNING:
        base = (*_OPTIONS, *tuning)
        macros = _macros(command, base)
        if macros is not None:
            rounding = next((option for option in _ROUND_HALF if _macros(command, (option,)) is not None), None)
            identity = hashlib.sha256(f"{version}\0{macros}".encode()).hexdigest()
            options = (*base, rounding) if rounding else base
            return Compiler(command, version, options, identity, _lanes(macros), _registers(macros))
    raise DeviceError(f"{command[0]} does not compile C: {_run([*command, '-E', '-x', 'c', '-']).stderr.strip()}")


def _lanes(macros: str) -> int:
    if " __clang__ " in macros or " __AVX512F__ " in macros:
        return 16
    return 8 if " __AVX__ " in macros else 4


def _registers(macros: str) -> tuple[int, int]:
    if " __AVX512F__ " in macros:
        return 16, 32
    if " __aarch64__ " in macros:
        return 4, 32
    return (8 if " __AVX__ " in macros else 4), 16


def _macros(command: Sequence[str], options: Sequence[str]) -> str | None:
    """What the compiler predefines with these options, the processor's instructions among it; None if it refuses."""
    done = _run([*command, "-Werror", *options, "-dM", "-E", "-x", "c", "-"])
    return done.stdout if done.returncode == 0 else None


def _run(command: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise DeviceError(f"cannot run the C compiler {command[0]}: {problem}") from problem
