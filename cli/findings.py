"""`rulewright check --format`: everything that is wrong with rule files, for programs."""

from __future__ import annotations

from ..engine.language.diagnostics import Diagnostic, Severity
from ..engine.language.output import FORMATS
from ..engine.language.parser import analyse
from ..engine.rewriting import RuleSet
from ..verify.cases import run_cases
from .console import InputError, console
from .rule_files import sources_with_builtin


def findings_command(paths: list[str], style: str) -> int:
    """Prints the findings of the static checks and of the lines beside the rules; 1 if one is an error."""
    if style not in FORMATS:
        raise InputError(f"there is no format {style!r}: text, {', '.join(FORMATS)}")
    found = findings(paths)
    text = FORMATS[style](found)
    if text:
        console().print(text, markup=False, soft_wrap=True)
    return int(any(one.severity is Severity.ERROR for one in found))


def findings(paths: list[str]) -> list[Diagnostic]:
    """What is wrong in the user's files, or without paths in ours."""
    own, others = sources_with_builtin(paths) if paths else (list(RuleSet.builtin().sources), [])
    files = {source.name for source in own}
    analysis = analyse([*others, *own])
    found = [one for one in analysis.diagnostics if one.span.file in files or one.severity is Severity.ERROR]
    if analysis.book is not None:
        ruleset = RuleSet.of_book([*others, *own], analysis.book)
        found += [case.finding for case in run_cases(ruleset, analysis.book, files) if case.finding is not None]
    return found
