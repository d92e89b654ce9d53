"""`rulewright corpus`: every kernel of a file on one device, in child processes that may crash or hang."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, TextIO

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..workers import Answer, answers
from .choices import check_choices
from .console import InputError, console, reading
from .rule_files import with_builtin

OUTCOMES = {
    "matched": "compiled, ran, and agrees with NumPy",
    "ran": "compiled and ran",
    "compiled": "compiled; too large to be run here",
    "differs": "ran, but does not agree with NumPy",
    "failed": "refused with an error",
    "crashed": "a defect: the process died, or an unexpected exception",
    "timeout": "no answer in time",
}
"""What can become of a kernel, with what it means."""

GOOD = frozenset({"matched", "ran", "compiled"})

Result = dict[str, Any]


def corpus_command(
    path: Path,
    device: str,
    schedule: str,
    math: str,
    *,
    check: bool,
    limit: int | None,
    jobs: int,
    seconds: float,
    report: Path | None,
    rules: Sequence[str] = (),
) -> int:
    """Prints a progress bar, the kernels that went wrong, and a count of outcomes; 1 if any went wrong."""
    lines = _lines(path)[:limit]
    check_choices(device, schedule)
    if rules:
        with_builtin(rules)  # a broken file is told once, and compiled for all workers
    options = [device, schedule, math, "check" if check else "", *rules]
    command = [sys.executable, "-m", f"{__package__}.corpus_worker", *options]
    begin = time.perf_counter()
    results: dict[int, Result] = {}
    with _written(report) as file, closing(answers(command, lines, jobs, seconds)) as found:
        for position, result in _shown(found, lines, device):
            results[position] = result
            if file is not None:
                file.write(json.dumps(result) + "\n")
    _summary([results[position] for position in sorted(results)], time.perf_counter() - begin)
    return 0 if all(result["outcome"] in GOOD for result in results.values()) else 1


def _lines(path: Path) -> list[str]:
    with reading(str(path)):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines:
        raise InputError(f"{path} holds no kernel: it needs one JSON object a line")
    return lines


def _written(report: Path | None) -> AbstractContextManager[TextIO | None]:
    if report is None:
        return nullcontext()
    try:
        return report.open("w", encoding="utf-8")
    except OSError as problem:
        raise InputError(f"cannot write {report}: {problem.strerror}") from None


def _shown(found: Iterator[Answer], lines: list[str], device: str) -> Iterator[tuple[int, Result]]:
    """The results as they come, with a progress bar and a line for each that is not good."""
    columns = (
        TextColumn(device),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[bad]}"),
    )
    out = console()
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("", total=len(lines), bad="")
        bad = 0
        for one in found:
            result = _result(one, lines[one.position])
            if result["outcome"] not in GOOD:
                bad += 1
                progress.print(Text(f"{result['id']}: {result['outcome']}: {result['error']}"), soft_wrap=True)
            progress.update(task, advance=1, bad=f"{bad} not good" if bad else "")
            yield one.position, result


def _result(answer: Answer, line: str) -> Result:
    if answer.said:
        result: Result = json.loads(answer.said)
    else:
        outcome = "timeout" if answer.timed_out else "crashed"
        result = {"id": _identity(line), "outcome": outcome, "seconds": 0.0, "error": answer.failure}
    result["id"] = result["id"] or f"line {answer.position + 1}"
    return result


def _identity(line: str) -> str:
    try:
        return str(json.loads(line).get("id", ""))
    except (ValueError, AttributeError):
        return ""


def _summary(results: list[Result], elapsed: float) -> None:
    counts = Counter(result["outcome"] for result in results)
    table = Table("outcome", "kernels", "share", "meaning", show_edge=False, pad_edge=False)
    for outcome, meaning in OUTCOMES.items():
        if counts[outcome]:
            style = "green" if outcome in GOOD else "red"
            table.add_row(Text(outcome, style), str(counts[outcome]), f"{counts[outcome] / len(results):.1%}", meaning)
    out = console()
    out.print(table)
    compiling = sorted(result["seconds"] for result in results)
    out.print(
        f"{len(results)} kernels in {elapsed:.1f} s; compiling took {sum(compiling):.1f} s, "
        f"half of them below {compiling[len(compiling) // 2]:.3f} s, the slowest {compiling[-1]:.2f} s"
    )
