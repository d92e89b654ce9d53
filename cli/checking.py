"""`rulewright check`: are rule files well formed, do their `test` and `keep` lines hold, do rules keep values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from ..engine.language.diagnostics import Diagnostic, Severity, did_you_mean, format_text
from ..engine.language.parser import RuleSource, analyse
from ..engine.language.syntax import Rule, RuleBook
from ..engine.rewriting import RuleSet
from ..verify.cases import run_cases
from .console import InputError, console
from .properties import PropertyOptions, as_json, check_pipelines, check_properties
from .rule_files import sources_with_builtin

SETTLES = "lanes"
"""The group that the comparison of cases needs, whatever file they stand in."""


def check_command(
    paths: list[str], only: list[str], options: PropertyOptions, report: Path | None, prove: Prover | None = None
) -> int:
    """Prints every finding with its place, then a summary; 1 if anything is wrong.

    Without paths our own rules are checked. A user's files are read together with ours, which they may use and
    replace; only what is found in theirs is reported, unless it is an error.
    """
    own, others = sources_with_builtin(paths) if paths else (list(RuleSet.builtin().sources), [])
    return check_sources([*others, *own], {source.name for source in own}, only, options, report, prove)


Prover = Callable[[Sequence[RuleSource], RuleBook, set[str]], int]
"""Proves the rules of these sources that stand in these files; gives an exit status."""


def check_sources(
    sources: Sequence[RuleSource], files: set[str], only: Sequence[str] = (), options: PropertyOptions | None = None,
    report: Path | None = None, prove: Prover | None = None,
) -> int:  # fmt: skip
    """Checks those of the sources that stand in `files`, and prints as `check_command` does.

    `only` names rules, or groups, whose properties are checked; without `options` no properties are.
    """
    analysis = analyse(sources)
    found = [one for one in analysis.diagnostics if one.span.file in files or one.severity is Severity.ERROR]
    _print(found, sources)
    if analysis.book is None:
        return _summary(files, _counted(len(analysis.errors), "error"), failed=True)
    failed = prove(sources, analysis.book, files) if prove is not None else 0
    ruleset = RuleSet.of_book(sources, _part(analysis.book, files))
    wrong, lines = _run_cases(ruleset, analysis.book, files)
    rules = _rules(analysis.book, files)
    verdict = f"{wrong} of {lines} test and keep lines fail" if wrong else f"{lines} test and keep lines hold"
    refuted = 0
    if options is not None and options.examples > 0:
        results = check_properties(ruleset, _chosen(rules, only), options)
        refuted = sum(result.refuted for result in results)
        verdict += f", {_properties(refuted, len(results))}"
        own = [] if only else [name for name, one in analysis.book.pipelines.items() if one.span.file in files]
        changed = check_pipelines(sources, own, options) if len(files) < len(sources) else 0
        verdict += f", {_counted(changed, 'pipeline')} changed a value" if changed else ""
        refuted += changed
        if report is not None:
            report.write_text(json.dumps(as_json(results), indent=1) + "\n", encoding="utf-8")
    return _summary(files, f"{_counted(len(rules), 'rule')}, {verdict}", failed=wrong + refuted + failed > 0)


def _chosen(rules: list[Rule], only: Sequence[str]) -> list[Rule]:
    """The rules with these names, or of these groups. Raises InputError for a name that is neither."""
    known = {name for rule in rules for name in (rule.id, rule.id.split(".")[0])}
    for name in only:
        if name not in known:
            hint = did_you_mean(name, known) or "`rulewright rules` lists ours"
            raise InputError(f"there is no rule or group `{name}` in these files; {hint}")
    return [rule for rule in rules if not only or rule.id in only or rule.id.split(".")[0] in only]


def _properties(refuted: int, checked: int) -> str:
    if refuted:
        return f"{_counted(refuted, 'rule')} of {checked} changed a value"
    return f"{_counted(checked, 'rule')} kept every value that was tried" if checked else "no properties checked"


def _print(found: Iterable[Diagnostic], sources: Iterable[RuleSource]) -> None:
    texts = {source.name: source for source in sources}
    out = console()
    for one in found:
        out.print(Text(format_text(one, texts)), soft_wrap=True)
        out.print()


def _run_cases(ruleset: RuleSet, book: RuleBook, files: set[str]) -> tuple[int, int]:
    """How many lines of these files fail, each printed, and how many there are."""
    out = console()
    texts = {source.name: source for source in ruleset.sources}
    wrong = lines = 0
    for case in run_cases(ruleset, book, files):
        lines += 1
        if case.finding is not None:
            wrong += 1
            out.print(Text(format_text(case.finding, texts)), soft_wrap=True)
    return wrong, lines


def _part(book: RuleBook, files: set[str]) -> RuleBook:
    """Only what the cases of these files need: to compile all rules would take most of the time.

    A rule that simplifies on the side, by `under`, needs all.
    """
    if any("under(" in rule.text for group in book.groups.values() for rule in group.rules if rule.span.file in files):
        return book
    groups = {
        name: group
        for name, group in book.groups.items()
        if name == SETTLES or any(rule.span.file in files for rule in group.rules)
    }
    return replace(book, groups=groups, pipelines={})


def _rules(book: RuleBook, files: set[str]) -> list[Rule]:
    return [rule for group in book.groups.values() for rule in group.rules if rule.span.file in files]


def _summary(files: set[str], text: str, *, failed: bool) -> int:
    style, verdict = ("bold red", "failed") if failed else ("bold green", "ok")
    console().print(Text.assemble((verdict, style), f": {_counted(len(files), 'file')}, {text}"))
    return 1 if failed else 0


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
