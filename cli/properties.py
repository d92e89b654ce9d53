"""The property checks of `rulewright check`: progress while they run, the counterexamples, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ..engine.language.parser import RuleSource
from ..engine.language.syntax import Rule
from ..engine.rewriting import RuleSet
from .console import console

if TYPE_CHECKING:
    from ..verify.properties import PropertyResult

ROWS = 60
"""A table of more rules than this has one row a group."""


@dataclass(frozen=True, slots=True)
class PropertyOptions:
    """How thoroughly the properties are checked; `examples` 0: not at all."""

    examples: int
    seed: int
    table: bool


def check_properties(ruleset: RuleSet, rules: list[Rule], options: PropertyOptions) -> list[PropertyResult]:
    """Checks the rules and prints what is wrong with them; what they found, to be counted and reported."""
    try:
        from ..verify.properties import check_properties as run
    except ImportError:
        console().print('The property checks need hypothesis: pip install "rulewright\\[verify]"')
        return []
    results = []
    for result in _with_progress(run(ruleset, rules, examples=options.examples, seed=options.seed), len(rules)):
        results.append(result)
        if result.counterexample is not None:
            console().print(Text(f"{result.place}: {result.rule} is wrong", style="bold red"), soft_wrap=True)
            console().print(Text(f"{result.counterexample}\n"), soft_wrap=True)
        elif not result.fired:
            console().print(Text(f"{result.place}: {result.rule}: not checked, no instance of it can be evaluated"))
    if options.table:
        console().print(_table(results))
    return results


def check_pipelines(sources: Sequence[RuleSource], names: list[str], options: PropertyOptions) -> int:
    """Runs these pipelines on random graphs; prints where one changes a value, and counts those."""
    if not names:
        return 0
    try:
        from ..verify.pipelines import check_pipeline
    except ImportError:
        return 0
    ruleset = RuleSet.from_sources(sources)
    changed = 0
    for name in names:
        found = check_pipeline(ruleset, name, examples=options.examples, start=options.seed).counterexample
        if found is not None:
            changed += 1
            console().print(Text(f"the pipeline {name} changes a value", style="bold red"))
            console().print(Text(f"{found}\n"), soft_wrap=True)
    return changed


def _with_progress(results: Iterator[PropertyResult], total: int) -> Iterator[PropertyResult]:
    """A bar on a terminal, nothing in a file."""
    columns = (
        TextColumn("checking"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} rules"),
        TimeElapsedColumn(),
    )
    out = console()
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("", total=total)
        for result in results:
            progress.advance(task)
            yield result


def _table(results: list[PropertyResult]) -> Table:
    """Each rule, or of many rules each group: instances on which it fired, of those drawn; the time."""
    rows: dict[str, list[PropertyResult]] = {}
    for result in results:
        name = result.rule if len(results) <= ROWS else result.rule.split(".")[0]
        rows.setdefault(name, []).append(result)
    table = Table("rule" if len(results) <= ROWS else "group", box=None, pad_edge=False)
    for heading in ("types", "checks", "acceptance", "seconds", "verdict"):
        table.add_column(heading, justify="left" if heading == "verdict" else "right")
    for name, some in rows.items():
        drawn, fired = sum(r.drawn for r in some), sum(r.fired for r in some)
        wrong = sum(r.refuted for r in some)
        verdict = ("ok" if fired else "not checked") if not wrong else "wrong" if len(some) == 1 else f"{wrong} wrong"
        accepted = f"{100 * fired // drawn} %" if drawn else "-"
        seconds = f"{sum(r.seconds for r in some):.2f}"
        table.add_row(name, str(sum(r.cases for r in some)), str(fired), accepted, seconds, verdict)
    return table


def as_json(results: list[PropertyResult]) -> list[dict[str, object]]:
    """The results for a report."""
    return [
        {
            "rule": result.rule, "place": result.place, "types": result.cases, "drawn": result.drawn,
            "checks": result.fired, "acceptance": round(result.acceptance, 3), "seconds": round(result.seconds, 4),
            "verdict": "refuted" if result.refuted else "passed" if result.fired else "not checked",
            "counterexample": None if result.counterexample is None else str(result.counterexample),
            "keep": None if result.counterexample is None else result.counterexample.keep,
        }
        for result in results
    ]  # fmt: skip
