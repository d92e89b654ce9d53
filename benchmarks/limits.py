"""The machine's limits, measured by a small C program: memory bandwidth, and the rate of multiply-adds."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rulewright.runtimes import compiler
from rulewright.runtimes.threads import cores

Floats = npt.NDArray[np.float32]

CHAINS = 10
"""The independent multiply-adds of one step of the C program."""


class Limits:
    """The C program, loaded. Each method is one measurement's work, on all cores; the caller takes the time."""

    def __init__(self) -> None:
        found = compiler.find()
        self.lanes = found.registers[0]
        options = ("-w", "-O3", "-march=native", "-ffast-math", f"-DWIDE={self.lanes}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "limits.so"
            source = Path(__file__).with_name("limits.c")
            subprocess.run([*found.command, *options, "-shared", "-fPIC", str(source), "-o", str(path)], check=True)
            self.library = ctypes.CDLL(str(path))
        self.library.read_all.restype = self.library.multiply_add.restype = ctypes.c_float
        self.threads = cores()
        self.pool = ThreadPoolExecutor(self.threads)

    def read(self, array: Floats) -> None:
        self._share(len(array), lambda first, count: self.library.read_all(_at(array, first), ctypes.c_int64(count)))

    def move(self, result: Floats, a: Floats, b: Floats, c: Floats) -> None:
        def part(first: int, count: int) -> None:
            places = [_at(array, first) for array in (result, a, b, c)]
            self.library.read_and_write(*places, ctypes.c_int64(count))

        self._share(len(result), part)

    def multiply_add(self, steps: int) -> int:
        """Returns how many operations these were, a multiplication and an addition each counted."""
        list(self.pool.map(lambda _: self.library.multiply_add(ctypes.c_int64(steps)), range(self.threads)))
        return 2 * CHAINS * self.lanes * steps * self.threads

    def _share(self, total: int, part: Callable[[int, int], Any]) -> None:
        count = total // self.threads // 64 * 64
        list(self.pool.map(lambda number: part(number * count, count), range(self.threads)))


def _at(array: Floats, first: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data + 4 * first)
