"""`rulewright show --timings`: where the time of code generation goes, stage by stage."""

from __future__ import annotations

from time import perf_counter

from rich.table import Table

from ..engine.rewriting import RuleSet
from ..kernels.kernel import Kernel
from ..program import compile_kernel
from .console import console


def timings_command(kernel: Kernel, device: str, schedule: str, math: str, rules: RuleSet) -> int:
    """Compiles the kernel twice and prints the times of the second: a warm process, as when many kernels follow."""
    compile_kernel(kernel, device, schedule, math, rules)
    marks: list[tuple[str, float]] = []
    start = perf_counter()
    program = compile_kernel(
        kernel, device, schedule, math, rules, lambda name, graph: marks.append((name, perf_counter()))
    )
    end = perf_counter()
    table = Table("stage", "ms", "nodes visited", "rewrites", title=f"{program.name} on {device}")
    reports = [("lower", None), *program.trace.stages]
    before = start
    for (name, report), (_, at) in zip(reports, marks, strict=True):
        visited, fires = (str(report.visited), str(sum(report.fires.values()))) if report is not None else ("", "")
        table.add_row(name, f"{(at - before) * 1e3:.2f}", visited, fires)
        before = at
    table.add_row("linearize, render, build", f"{(end - before) * 1e3:.2f}", "", "")
    table.add_row("all", f"{(end - start) * 1e3:.2f}", "", "")
    console().print(table)
    return 0
