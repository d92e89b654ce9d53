"""Runs the `test` and `keep` lines that stand beside the rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..engine.errors import RulewrightError
from ..engine.language.expressions import build_term, case_context, default_type, free_names
from ..engine.language.syntax import Case, Rule
from ..engine.printing import expression
from ..engine.rewriting import RuleSet
from ..engine.rewriting.fixed_point import run_stage
from ..engine.uop import UOp


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One line: its rule, where it stands, and what is wrong with it (None: it holds)."""

    rule: str
    place: str
    problem: str | None


def run_cases(ruleset: RuleSet) -> Iterator[CaseResult]:
    """Every `test` and `keep` line, in the order of the files."""
    for group in ruleset.book().groups.values():
        for rule in group.rules:
            for case in rule.cases:
                yield CaseResult(rule.id, str(case.span), _problem(ruleset, rule, case))


def _problem(ruleset: RuleSet, rule: Rule, case: Case) -> str | None:
    try:
        before, after = case_graphs(rule, case)
        matcher = ruleset.rule_matcher(rule.id, case_context(case))
        found = matcher.match(before)
        if case.after is None:
            return None if found is None else f"the rule fires on {expression(before)} and gives {expression(found[0])}"
        if found is None:
            return f"the rule does not fire on {expression(before)}; expected {expression(after or before)}"
        result = found[0]
        if result is after or after is None:
            return None
        settled = (
            run_stage(result, ruleset.matcher(_CLEAN, case_context(case))).graph if _has_clean(ruleset) else result
        )
        expected = run_stage(after, ruleset.matcher(_CLEAN, case_context(case))).graph if _has_clean(ruleset) else after
        if settled is expected:
            return None
        return f"before {expression(before)}, expected {expression(after)}, got {expression(result)}"
    except RulewrightError as problem:
        return str(problem)


_CLEAN = ("lanes",)
"""Picks of builds cancel before results are compared: how lanes are spelt is not what a rule says."""


def _has_clean(ruleset: RuleSet) -> bool:
    return all(group in ruleset.compiled.groups for group in _CLEAN)


def case_graphs(rule: Rule, case: Case) -> tuple[UOp, UOp | None]:
    """The graphs of a case: what the rule sees, and what it must make of it (None for a `keep`)."""
    terms = [case.before] if case.after is None else [case.before, case.after]
    names = free_names(case.given, terms, default_type(rule))
    before = build_term(case.before, names)
    after = build_term(case.after, names, before.dtype) if case.after is not None else None
    return before, after
