# ruff: noqa: E402  # the environment must be cleared before NumPy is imported
"""Times kernels against NumPy, Numba, Halide and tinygrad, and against what the machine can do, all in one run.

    python benchmarks/kernels.py                 # every workload at full size
    python benchmarks/kernels.py --write         # and the tables into benchmarks/README.md
    python benchmarks/kernels.py --quick         # small sizes, few rounds: does it still work

A round runs each system once, in turn, so that a machine that is busy for a while slows all of them; the medians over
the rounds are compared. Results are compared with NumPy's first. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time

for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # NumPy's library is to choose for this processor itself
    os.environ.pop(_name, None)

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import rulewright as rw
from rulewright.engine.errors import RulewrightError
from rulewright.runtimes import devices
from rulewright.runtimes.threads import cores

sys.path.append(str(Path(__file__).parent.parent))
from benchmarks.limits import Limits
from benchmarks.peers import peers
from benchmarks.workloads import Workload, workloads

OURS = ("llvm", "c", "opencl")
LIMIT = "machine limit"


@dataclass
class Timed:
    """One system on one workload: how to run it once, and the seconds that each run took."""

    name: str
    run: Callable[[], Any]
    note: str = ""
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for; the exit status is 1 if a result was wrong."""
    options = _options().parse_args(arguments)
    rounds = options.rounds or (3 if options.quick else 15)
    limits = Limits()
    wrong: list[str] = []
    columns: dict[str, dict[str, Timed]] = {}
    chosen = [w for w in workloads(options.quick) if not options.only or w.name in options.only]
    for workload in chosen:
        columns[workload.name] = _measure(workload, limits, options, rounds, wrong)
        _print(_table([workload], {workload.name: columns[workload.name]}))
    launches = launch_costs(20 if options.quick else 2000)
    text = "\n\n".join([_machine(rounds), _table(chosen, columns), _schedules(chosen, columns), _launches(launches)])
    _print(text)
    if options.write:
        _write(text)
    for problem in wrong:
        print(problem, file=sys.stderr)
    return 1 if wrong else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument("--rounds", type=int, help="how often each system runs (15)")
    parser.add_argument("--only", action="append", metavar="WORKLOAD", help="only this workload; may be repeated")
    parser.add_argument("--no-peers", action="store_true", help="only NumPy and Rulewright")
    parser.add_argument("--schedule", default="default", help="for Rulewright: `default`, or `search`")
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/README.md")
    return parser


# --- measuring -------------------------------------------------------------------------------------------------------


def _measure(
    workload: Workload, limits: Limits, options: argparse.Namespace, rounds: int, wrong: list[str]
) -> dict[str, Timed]:
    arrays = workload.arrays()
    expected = workload.numpy(**arrays)
    systems = [Timed("NumPy", lambda: workload.numpy(**arrays)), Timed(LIMIT, _limit(workload, limits))]
    if not options.no_peers:
        for name, peer in peers().items():
            try:
                run = peer(workload.name, arrays)
            except Exception as problem:  # noqa: BLE001 - a peer may fail in any way; that is a line of the report
                print(f"{name} fails on {workload.name}: {type(problem).__name__}: {str(problem)[:200]}")
                continue
            if run is not None:
                systems.append(Timed(name, run))
    kernel = workload.kernel()
    for device in OURS:
        if not devices.probe(device).present:
            continue
        try:
            program = rw.compile(kernel, device, options.schedule, math="fast")
        except RulewrightError as problem:
            wrong.append(f"{device} does not compile {workload.name}: {problem}")
            continue
        launch = program.bind(*arrays.values())
        output = program.kernel.outputs[0].name
        schedule = " ".join(map(str, program.schedule))
        systems.append(Timed(f"rulewright {device}", _running(launch, output), schedule))
    for system in systems:
        result = system.run()
        if system.name != LIMIT and not _close(np.asarray(result), expected):
            wrong.append(f"{system.name} computes {workload.name} wrongly")
    for _ in range(rounds):
        for system in systems:
            begin = time.perf_counter()
            system.run()
            system.seconds.append(time.perf_counter() - begin)
    return {system.name: system for system in systems}


def _running(launch: Any, output: str) -> Callable[[], Any]:
    def run() -> Any:
        launch()
        return _Later(launch, output)

    return run


class _Later:
    """A result that is read from its device when it is looked at."""

    def __init__(self, launch: Any, output: str) -> None:
        self.launch, self.output = launch, output

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.launch[self.output], dtype)


def _close(result: Any, expected: Any) -> bool:
    if result.shape != expected.shape:
        return False
    scale = float(np.abs(expected).max())
    return bool(np.abs(result.astype(np.float64) - expected).max() <= 1e-4 * scale)


def _limit(workload: Workload, limits: Limits) -> Callable[[], Any]:
    """As many bytes or multiply-adds as the workload needs, and nothing else."""
    if workload.operations > 16 * workload.bytes:
        steps = max(1, workload.operations // (2 * 10 * limits.lanes * limits.threads))
        return lambda: limits.multiply_add(steps)
    if workload.name == "sum":
        source = np.ones(workload.bytes // 4, np.float32)
        return lambda: limits.read(source)
    arrays = [np.ones(workload.bytes // 16, np.float32) for _ in range(4)]
    return lambda: limits.move(*arrays)


def launch_costs(times: int) -> dict[str, tuple[float, float]]:
    """For each device the microseconds of a call with NumPy arrays, and of a run on buffers that were kept."""
    costs = {}
    arrays = [np.ones(16, np.float32) for _ in range(2)]
    kernel = rw.kernel(rw.tensor("a", (16,)) + rw.tensor("b", (16,)))
    for device in OURS:
        if devices.probe(device).present:
            program = rw.compile(kernel, device)
            launch = program.bind(*arrays)
            called = min(_each(partial(program, *arrays), times) for _ in range(5))
            bound = min(_each(launch, times) for _ in range(5))
            costs[device] = called * 1e6, bound * 1e6
    return costs


def _each(run: Callable[[], Any], times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - begin) / times


# --- reporting -------------------------------------------------------------------------------------------------------


def _table(chosen: list[Workload], columns: dict[str, dict[str, Timed]]) -> str:
    """Milliseconds of every system, then our best as a multiple of the best other's speed, and its share of the limit."""
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows = [["", *(f"{w.name}<br>{w.text}" for w in chosen)]]
    rows += [[name, *(_milliseconds(columns[w.name].get(name)) for w in chosen)] for name in names]
    rows.append(["**best of ours / best other**", *(_ratio(columns[w.name]) for w in chosen)])
    rows.append(["best of ours, of the limit", *(_share(columns[w.name]) for w in chosen)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def _milliseconds(timed: Timed | None) -> str:
    return "" if timed is None else f"{timed.median * 1e3:.2f} ms"


def _best(column: dict[str, Timed], ours: bool) -> Timed | None:
    found = [t for t in column.values() if t.name != LIMIT and t.name.startswith("rulewright") == ours]
    return min(found, key=lambda timed: timed.median, default=None)


def _ratio(column: dict[str, Timed]) -> str:
    ours, other = _best(column, True), _best(column, False)
    if ours is None or other is None:
        return ""
    return f"**{other.median / ours.median:.2f}** ({ours.name.split()[-1]} / {other.name})"


def _share(column: dict[str, Timed]) -> str:
    ours = _best(column, True)
    return "" if ours is None else f"{100 * column[LIMIT].median / ours.median:.0f} %"


def _schedules(chosen: list[Workload], columns: dict[str, dict[str, Timed]]) -> str:
    lines = ["Schedules:", ""]
    for w in chosen:
        found = [(t.name.split()[-1], t.note) for t in columns[w.name].values() if t.name.startswith("rulewright")]
        lines += [f"- {w.name}, {device}: `{note or 'none'}`" for device, note in found]
    return "\n".join(lines)


def _launches(costs: dict[str, tuple[float, float]]) -> str:
    lines = ["| microseconds of a launch | call with NumPy arrays | on kept buffers |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {call:.1f} | {kept:.1f} |" for name, (call, kept) in costs.items())])


def _machine(rounds: int) -> str:
    model = "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text())
        model = found[1].strip() if found else model
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    named = "; ".join(f"{name}: {devices.probe(name).description}" for name in OURS if devices.probe(name).present)
    return f"{model}, {cores()} cores{load}; NumPy {np.__version__}; medians of {rounds} rounds. {named}."


def _print(text: str) -> None:
    print(text, flush=True)


MARKS = "<!-- kernels.py begins -->", "<!-- kernels.py ends -->"


def _write(text: str) -> None:
    """Replaces what stands between the marks in the page."""
    page = Path(__file__).with_name("README.md")
    before, begin, rest = page.read_text().partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise SystemExit(f"{page} lacks the marks {' and '.join(MARKS)}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main())
