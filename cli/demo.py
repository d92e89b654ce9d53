"""`rulewright demo`: the sample kernels on every device, compared with NumPy; then one kernel from the inside."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from ..engine.arrays import numpy_dtype
from ..engine.errors import RulewrightError
from ..engine.rewriting import RuleSet
from ..kernels.kernel import Kernel
from ..program import Program, compile_kernel
from ..runtimes import devices
from .console import InputError, console, duration
from .samples import SAMPLES

SHOWN = "matmul"
"""The kernel that is shown from the inside."""

SHOWN_ON = ("opencl", "c", "llvm")
"""Where its source is shown: the first of these that is present, the most readable first."""

LANGUAGES = {"opencl": "c", "c": "c", "llvm": "llvm"}
TOLERANCE = 1e-5
"""How far a result may be from NumPy's in double precision, as a part of the largest value."""

RUNS, PATIENCE = 10, 0.3
"""How often a kernel runs to be timed, and after how many seconds it runs no more."""

LISTED = 12
"""How many rules are listed."""

Values = npt.NDArray[Any]
Arrays = dict[str, Values]
Programs = dict[tuple[str, str], Program]


class WrongResultError(RulewrightError):
    """A device's result is not NumPy's."""


def demo_command() -> int:
    """Prints devices, times and differences, a source, and the rules that made it; 1 if anything went wrong."""
    out = console()
    names = devices.present()
    if not names:
        raise InputError("no device works here; `rulewright devices` says why")
    for name in names:
        out.print(Text.assemble((f"{name:12}", "bold"), devices.probe(name).description))
    problems, programs = _all(out, names)
    for problem in problems:
        out.print(Text(problem, "red"), soft_wrap=True)
    device = next((name for name in (*SHOWN_ON, *names) if (SHOWN, name) in programs), None)
    if device is not None:
        _show(out, programs[SHOWN, device])
    if not problems:
        out.print(
            Text.assemble(("ok", "bold green"), f": {len(SAMPLES)} kernels on {len(names)} devices agree with NumPy")
        )
    return 1 if problems else 0


def _all(out: Console, names: list[str]) -> tuple[list[str], Programs]:
    """Runs every kernel on every device and prints the times; what went wrong, and the programs."""
    problems: list[str] = []
    programs: Programs = {}
    table = Table("kernel", "", "NumPy", *names, show_edge=False, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    with out.status("compiling and running"):
        for title, sample in SAMPLES.items():
            kernel = sample.kernel()
            arrays = _inputs(kernel)
            expected = sample.numpy({name: array.astype(np.float64) for name, array in arrays.items()})
            cells = [Text(duration(_best(partial(sample.numpy, arrays))))]
            for device in names:
                try:
                    programs[title, device] = program = compile_kernel(kernel, device)
                    cells.append(Text(duration(_run(program, arrays, expected))))
                except RulewrightError as problem:
                    problems.append(f"{title} on {device}: {problem}")
                    cells.append(Text("wrong", "red"))
            table.add_row(title, sample.text, *cells)
    out.print("", table, "", sep="\n")
    return problems, programs


def _inputs(kernel: Kernel) -> Arrays:
    random = np.random.default_rng(0)
    arrays: Arrays = {}
    for argument in kernel.inputs:
        shape = [size for size in argument.shape or () if isinstance(size, int)]
        arrays[argument.name] = random.uniform(-1, 1, shape).astype(numpy_dtype(argument.dtype))
    return arrays


def _run(program: Program, arrays: Arrays, expected: Values) -> float:
    """The seconds of the best run. Raises WrongResultError if it is not NumPy's."""
    (output,) = program.kernel.outputs
    result = np.zeros(expected.shape, numpy_dtype(output.dtype))
    buffers = [result if argument.written else arrays[argument.name] for argument in program.kernel.arguments]
    seconds = _best(partial(program.run_in_place, [buffer.reshape(-1) for buffer in buffers]))
    off = float(np.abs(result - expected).max() / np.abs(expected).max())
    if not off <= TOLERANCE:  # NaN is wrong too
        raise WrongResultError(f"a value is off by {off:.1g} of the largest; NumPy has {expected.reshape(-1)[:3]}, …")
    return seconds


def _best(call: Callable[[], object]) -> float:
    """The shortest of several runs, as many as fit into a fraction of a second."""
    best, begin = float("inf"), time.perf_counter()
    for _ in range(RUNS):
        before = time.perf_counter()
        call()
        after = time.perf_counter()
        best = min(best, after - before)
        if after - begin > PATIENCE:
            break
    return best


def _show(out: Console, program: Program) -> None:
    """The source of a program, and the rules that made it, the busiest first."""
    out.rule(f"{SHOWN} for {program.device}", align="left")
    language = LANGUAGES.get(program.device, "text")
    out.print(Syntax(program.source.rstrip(), language, theme="ansi_light", background_color="default"), soft_wrap=True)
    texts = {rule.id: rule.text for group in RuleSet.builtin().book().groups.values() for rule in group.rules}
    fires = program.trace.fires
    table = Table("fired", "rule", "as written", show_edge=False, pad_edge=False)
    for rule, count in fires.most_common(LISTED):
        table.add_row(str(count), rule, Text(" ".join(texts[rule].split()), overflow="ellipsis", no_wrap=True))
    out.rule(f"the rules that made it: {len(fires)} of {len(texts)} fired, {fires.total()} times", align="left")
    out.print(table, "", sep="\n")
