"""Loads rule files: text to a rule book, or one error with everything that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .diagnostics import Diagnostic, Report, RuleSyntaxError, Severity
from .modules import Module, read_module
from .resolve import resolve
from .sources import RuleSource, read_sources
from .syntax import RuleBook

__all__ = ["Analysis", "RuleSource", "analyse", "analyse_syntax", "load_rules", "read_sources"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What rule files say and what is wrong with them. `book` is None if there is an error."""

    book: RuleBook | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)


def analyse(sources: Sequence[RuleSource]) -> Analysis:
    """Reads files that belong together; all findings in the order of files and places, warnings included.

    Remembered, the latest few by their texts, and so is each file's reading: whoever reads a set of files again after
    one of them changed pays for that file.
    """
    return _analyse(tuple(sources))


@lru_cache(maxsize=4)
def _analyse(sources: tuple[RuleSource, ...]) -> Analysis:
    report = Report()
    modules = []
    for source in sources:
        module, own = _read(source)
        modules.append(module)
        report.add(own)
    book = resolve(modules, report)
    found = report.sorted([source.name for source in sources])
    return Analysis(None if report.errors else book, found)


@lru_cache(maxsize=64)
def _read(source: RuleSource) -> tuple[Module, Report]:
    report = Report()
    return read_module(source, report), report


def analyse_syntax(source: RuleSource) -> Report:
    """What is wrong with a file by itself: its words and statements, no names."""
    return _read(source)[1]


def load_rules(sources: Sequence[RuleSource]) -> RuleBook:
    """The rule book of files that belong together. Raises RuleSyntaxError with all errors of all files."""
    analysis = analyse(sources)
    if analysis.book is None:
        raise RuleSyntaxError(analysis.errors, sources)
    return analysis.book
