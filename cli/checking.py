"""`rulewright check`: are rule files well formed, and do their `test` and `keep` lines hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from rich.text import Text

from ..engine.language.diagnostics import Diagnostic, Severity, format_text
from ..engine.language.parser import RuleSource, analyse
from ..engine.language.syntax import RuleBook
from ..engine.rewriting import RuleSet
from ..verify.cases import run_cases
from .console import console
from .rule_files import sources_with_builtin

SETTLES = "lanes"
"""The group that the comparison of cases needs, whatever file they stand in."""


def check_command(paths: list[str], prove: Prover | None = None) -> int:
    """Prints every finding with its place, then a summary; 1 if anything is wrong.

    Without paths our own rules are checked. A user's files are read together with ours, which they may use and
    replace; only what is found in theirs is reported, unless it is an error.
    """
    own, others = sources_with_builtin(paths) if paths else (list(RuleSet.builtin().sources), [])
    return check_sources([*others, *own], {source.name for source in own}, prove)


Prover = Callable[[Sequence[RuleSource], RuleBook, set[str]], int]
"""Proves the rules of these sources that stand in these files; gives an exit status."""


def check_sources(sources: Sequence[RuleSource], files: set[str], prove: Prover | None = None) -> int:
    """Checks those of the sources that stand in `files`, and prints as `check_command` does."""
    analysis = analyse(sources)
    found = [one for one in analysis.diagnostics if one.span.file in files or one.severity is Severity.ERROR]
    _print(found, sources)
    if analysis.book is None:
        return _summary(files, _counted(len(analysis.errors), "error"), failed=True)
    refuted = prove(sources, analysis.book, files) if prove is not None else 0
    wrong, lines = _run_cases(sources, analysis.book, files)
    rules = _counted(_rules(analysis.book, files), "rule")
    verdict = f"{wrong} of {lines} test and keep lines fail" if wrong else f"{lines} test and keep lines hold"
    return _summary(files, f"{rules}, {verdict}", failed=wrong > 0 or refuted > 0)


def _print(found: Iterable[Diagnostic], sources: Iterable[RuleSource]) -> None:
    texts = {source.name: source for source in sources}
    out = console()
    for one in found:
        out.print(Text(format_text(one, texts)), soft_wrap=True)
        out.print()


def _run_cases(sources: Sequence[RuleSource], book: RuleBook, files: set[str]) -> tuple[int, int]:
    """How many lines of these files fail, each printed, and how many there are."""
    out = console()
    texts = {source.name: source for source in sources}
    wrong = lines = 0
    for case in run_cases(RuleSet.of_book(sources, _part(book, files)), book, files):
        lines += 1
        if case.finding is not None:
            wrong += 1
            out.print(Text(format_text(case.finding, texts)), soft_wrap=True)
    return wrong, lines


def _part(book: RuleBook, files: set[str]) -> RuleBook:
    """Only what the cases of these files need: to compile all rules would take most of the time."""
    groups = {
        name: group
        for name, group in book.groups.items()
        if name == SETTLES or any(rule.span.file in files for rule in group.rules)
    }
    return replace(book, groups=groups, pipelines={})


def _rules(book: RuleBook, files: set[str]) -> int:
    return sum(rule.span.file in files for group in book.groups.values() for rule in group.rules)


def _summary(files: set[str], text: str, *, failed: bool) -> int:
    style, verdict = ("bold red", "failed") if failed else ("bold green", "ok")
    console().print(Text.assemble((verdict, style), f": {_counted(len(files), 'file')}, {text}"))
    return 1 if failed else 0


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
