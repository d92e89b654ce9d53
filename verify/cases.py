"""Runs the `test` and `keep` lines that stand beside the rules."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from ..engine.errors import RulewrightError
from ..engine.language.diagnostics import Diagnostic, Severity
from ..engine.language.expressions import build_term, case_context, default_type, free_names
from ..engine.language.syntax import Case, Rule, RuleBook, Span
from ..engine.printing import expression
from ..engine.rewriting import RuleSet
from ..engine.rewriting.fixed_point import run_stage
from ..engine.target import Context
from ..engine.uop import UOp


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One line: its rule, where it stands, and what is wrong with it (None: it holds)."""

    rule: str
    place: str
    problem: str | None
    span: Span | None = None
    keeps: bool = False  # a `keep` line

    @property
    def finding(self) -> Diagnostic | None:
        """What is wrong, with its place."""
        if self.problem is None or self.span is None:
            return None
        code = "E063" if self.keeps else "E062"
        return Diagnostic(code, Severity.ERROR, f"{self.rule}: {self.problem}", self.span)


def run_cases(ruleset: RuleSet, book: RuleBook, files: Container[str]) -> Iterator[CaseResult]:
    """Every `test` and `keep` line of the rules in these files, in the order of the book that `ruleset` was made of."""
    for group in book.groups.values():
        for rule in group.rules:
            for case in rule.cases if rule.span.file in files else ():
                yield CaseResult(
                    rule.id, str(case.span), case_problem(ruleset, rule, case), case.span, case.after is None
                )


def case_problem(ruleset: RuleSet, rule: Rule, case: Case) -> str | None:
    """What is wrong with a line; None if it holds."""
    try:
        before, after = case_graphs(rule, case)
        context = case_context(case)
        matcher = ruleset.rule_matcher(rule.id, context)
        found = matcher.match(before)
        if case.after is None:
            return None if found is None else f"the rule fires on {expression(before)} and gives {expression(found[0])}"
        if found is None:
            return f"the rule does not fire on {expression(before)}; expected {expression(after or before)}"
        result = found[0]
        if result is after or after is None:
            return None
        if _settled(result, ruleset, context) is _settled(after, ruleset, context):
            return None
        return f"before {expression(before)}, expected {expression(after)}, got {expression(result)}"
    except RulewrightError as problem:
        return str(problem)


def _settled(graph: UOp, ruleset: RuleSet, context: Context) -> UOp:
    """With picks and builds of lanes cancelled, by our group for that: how lanes are spelt is not what a rule says."""
    if "lanes" not in ruleset.compiled.groups:
        return graph
    return run_stage(graph, ruleset.matcher(["lanes"], context)).graph


def case_graphs(rule: Rule, case: Case) -> tuple[UOp, UOp | None]:
    """The graphs of a case: what the rule sees, and what it must make of it (None for a `keep`)."""
    terms = [case.before] if case.after is None else [case.before, case.after]
    names = free_names(case.given, terms, default_type(rule))
    before = build_term(case.before, names)
    after = build_term(case.after, names, before.dtype) if case.after is not None else None
    return before, after
