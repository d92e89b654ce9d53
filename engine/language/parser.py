"""Loads rule files: text to a rule book, or one error with everything that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .diagnostics import Diagnostic, Report, RuleSyntaxError, Severity
from .modules import read_module
from .resolve import resolve
from .sources import RuleSource, read_sources
from .syntax import RuleBook

__all__ = ["Analysis", "RuleSource", "analyse", "load_rules", "read_sources"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What rule files say and what is wrong with them. `book` is None if there is an error."""

    book: RuleBook | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)


def analyse(sources: Sequence[RuleSource]) -> Analysis:
    """Reads files that belong together; all findings in the order of files and places, warnings included."""
    report = Report()
    modules = [read_module(source, report) for source in sources]
    book = resolve(modules, report)
    found = report.sorted([source.name for source in sources])
    return Analysis(None if report.errors else book, found)


def load_rules(sources: Sequence[RuleSource]) -> RuleBook:
    """The rule book of files that belong together. Raises RuleSyntaxError with all errors of all files."""
    analysis = analyse(sources)
    if analysis.book is None:
        raise RuleSyntaxError(analysis.errors, sources)
    return analysis.book
