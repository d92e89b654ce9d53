"""`rulewright check --mutate`: would a missing or weaker guard be found, for each guard and each way to weaken it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from ..engine.language.parser import RuleSource, load_rules
from ..engine.rewriting import RuleSet
from ..verify.mutation.judge import Fate, Judgement
from ..verify.mutation.mutants import Mutant
from ..verify.mutation.runner import Explanation, judge_mutants, mutants_in, read_explained, stale, write_explained
from .console import InputError, console
from .rule_files import sources_with_builtin

SHARE = 0.95
"""Of the mutants that are not right, so many must be refuted."""


def mutate_command(paths: list[str], only: list[str], *, jobs: int, seed: int, renew: bool, report: Path | None) -> int:
    """Prints the mutants that survive, then how many became what; 1 if one survives that is not explained.

    `renew` writes those that are proven right to the package's file, in which reasons for the others stand.
    """
    own, others = sources_with_builtin(paths) if paths else (list(RuleSet.builtin().sources), [])
    sources = [*others, *own]
    book = load_rules(sources)
    mutants = _chosen(list(mutants_in(book, {source.name for source in own})), only)
    judged = _with_progress(sources, mutants, jobs, seed)
    explained = read_explained()
    if renew and not paths and not only:
        write_explained(judged, explained)
        explained = read_explained()
    if report is not None:
        report.write_text(as_json(judged, explained), encoding="utf-8")
    out_of_date = [] if paths else stale(book, explained)
    for name in out_of_date:
        console().print(
            Text(f"stale: {name}: its rule has changed; `--mutate --renew` renews the list"), soft_wrap=True
        )
    return _print(judged, explained) or (1 if out_of_date else 0)


def _chosen(mutants: Sequence[Mutant], only: Sequence[str]) -> list[Mutant]:
    found = [one for one in mutants if not only or one.rule.id in only or one.rule.id.split(".")[0] in only]
    if only and not found:
        raise InputError(f"no rule of {', '.join(only)} has a guard to be weakened; `rulewright rules` lists ours")
    return found


def _with_progress(sources: Sequence[RuleSource], mutants: list[Mutant], jobs: int, seed: int) -> list[Judgement]:
    out = console()
    columns = (
        TextColumn("mutants"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[at]}"),
    )
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("", total=None, at="")

        def step(one: Judgement, done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, at=one.mutant)

        return judge_mutants(sources, mutants, jobs, seed=seed, step=step)


def _reason(one: Judgement, explained: dict[str, Explanation]) -> str:
    known = explained.get(one.mutant)
    return known.because if known is not None and known.key == one.key else ""


def _print(judged: Sequence[Judgement], explained: dict[str, Explanation]) -> int:
    """The survivors, those without an explanation in red; 1 if there are too many of these."""
    out = console()
    unexplained = 0
    for one in judged:
        if one.fate is Fate.SURVIVED:
            reason = _reason(one, explained)
            unexplained += not reason
            said = f"explained: {reason}" if reason else one.how
            out.print(Text(f"survived: {one.mutant}\n  {said}", style="" if reason else "red"), soft_wrap=True)
    counts = Counter(one.fate for one in judged)
    refuted, survived = counts[Fate.REFUTED], counts[Fate.SURVIVED]
    by_proof = sum(one.by_proof for one in judged if one.fate is Fate.REFUTED)
    share = refuted / max(1, refuted + unexplained)
    out.print(
        Text(
            f"mutants: {len(judged)}; refuted {refuted} ({by_proof} by proof), right without the guard "
            f"{counts[Fate.RIGHT]}, survived {survived}, of which {survived - unexplained} are explained: "
            f"{100 * share:.1f} % of those that may change a meaning are refuted"
        ),
        soft_wrap=True,
    )
    return 1 if share < SHARE else 0


def as_json(judged: Sequence[Judgement], explained: dict[str, Explanation]) -> str:
    """One object a mutant."""
    rows = [{**one.row(), "because": _reason(one, explained)} for one in judged]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
