"""`rulewright check --prove`: a verdict on each rule, from the cache where it is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from ..engine.cache import cache_directory
from ..engine.language.parser import RuleSource
from ..engine.language.syntax import RuleBook
from ..verify.proofs.cache import COMMITTED, Cache
from ..verify.proofs.runner import Run, prove_rules, rules_of
from ..verify.proofs.verdicts import RuleVerdict, Verdict, as_json, summary
from .console import console

_STYLE = {
    Verdict.PROVED: "green",
    Verdict.SAMPLED: "green",
    Verdict.BOUNDED: "green",
    Verdict.TRUSTED: "yellow",
    Verdict.UNDECIDED: "yellow",
    Verdict.REFUTED: "bold red",
}


def prove_command(
    sources: Sequence[RuleSource], book: RuleBook, files: set[str], *, jobs: int, renew: bool, report: Path | None
) -> int:
    """Prints the rules that are not simply proved, then how many have which verdict; 1 if a rule is refuted.

    `renew` writes the package's file of verdicts. Other new verdicts are kept in the user's cache.
    """
    committed, own = Cache.read(COMMITTED), Cache.read(_own_file())
    if committed.problem is not None:
        console().print(Text(f"note: {committed.problem}"), soft_wrap=True)
    cache = Cache({**own.verdicts, **committed.verdicts})
    rules = rules_of(book, files)
    unknown = [rule.id for rule in rules if committed.of(rule) is None and not renew]
    run = _prove(sources, book, files, cache, jobs)
    if renew:
        cache.write(COMMITTED, rules)
    elif run.fresh:
        _own_file().parent.mkdir(parents=True, exist_ok=True)
        cache.write(_own_file(), rules)
    if report is not None:
        report.write_text(as_json(run.verdicts), encoding="utf-8")
    _print(run.verdicts)
    if unknown and all(source.name in files for source in sources):
        console().print(Text(_stale(unknown)), soft_wrap=True)
    console().print(Text(f"proofs: {summary(run.verdicts)}"), soft_wrap=True)
    return 1 if any(one.verdict is Verdict.REFUTED for one in run.verdicts) else 0


def _own_file() -> Path:
    return cache_directory() / "proofs.json"


def _stale(rules: Sequence[str]) -> str:
    some = ", ".join(rules[:4]) + (", …" if len(rules) > 4 else "")
    return (
        f"note: the verdicts that come with the package do not know {len(rules)} of these rules as they are now "
        f"({some}); `rulewright check --prove --renew` renews {COMMITTED.name}"
    )


def _prove(sources: Sequence[RuleSource], book: RuleBook, files: set[str], cache: Cache, jobs: int) -> Run:
    out = console()
    with Progress(console=out, transient=True, disable=not out.is_terminal) as progress:
        task = progress.add_task("proving", total=None)

        def step(rule: str, done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, description=f"proving {rule}")

        return prove_rules(sources, rules_of(book, files), cache, jobs, step)


def _print(verdicts: Sequence[RuleVerdict]) -> None:
    """A row for each rule that is not simply proved."""
    rows = [one for one in verdicts if one.verdict is not Verdict.PROVED]
    if not rows:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("rule", "verdict", "questions", "seconds", ""):
        table.add_column(name, justify="right" if name in ("questions", "seconds") else "left", overflow="fold")
    for one in rows:
        verdict = Text(one.verdict.value, _STYLE[one.verdict])
        table.add_row(one.rule, verdict, str(one.questions), f"{one.seconds:.2f}", Text(one.detail))
    console().print(table)
