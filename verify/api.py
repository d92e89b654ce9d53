"""The checks for one's own tests: of a rule file, of a single rule on drawn instances, of a pipeline on drawn graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hypothesis import strategies as st

from ..engine.errors import RulewrightError
from ..engine.language.syntax import Rule
from ..engine.rewriting import RuleSet
from ..engine.target import Context
from ..engine.uop import UOp
from .choices import Choices, decisions
from .instances import cases_of
from .pipelines import check_pipeline
from .properties import EXAMPLES, PropertyResult, check_properties, compare


class RuleRefuted(RulewrightError, AssertionError):
    """Rules or pipelines change a value: the message shows where, and gives the `keep` lines to paste."""


@dataclass(frozen=True, slots=True)
class Application:
    """A graph, and what a rule made of it."""

    before: UOp
    after: UOp
    context: Context

    def check(self, seed: int = 0) -> None:
        """Compares both sides in many worlds. Raises RuleRefuted."""
        counterexample = compare(self.before, self.after, self.context, seed)
        if counterexample is not None:
            raise RuleRefuted(str(counterexample))


def check_rules(
    rules: RuleSet | str | Path, only: Sequence[str] = (), *, examples: int = EXAMPLES, seed: int = 0
) -> list[PropertyResult]:
    """Checks the rules of a set, or of a file, and its pipelines; `only` names rules (`group.rule`) or groups.

    A file is read on top of our own rules, which are not checked again.

    What was checked comes back, one result a rule. Raises RuleRefuted with every counterexample.
    """
    ruleset = rules if isinstance(rules, RuleSet) else RuleSet.load(rules)
    book = ruleset.book()
    ours = set() if isinstance(rules, RuleSet) else {source.name for source in RuleSet.builtin().sources}
    chosen = [rule for rule in _chosen(ruleset, only) if rule.span.file not in ours]
    results = list(check_properties(ruleset, chosen, examples=examples, seed=seed))
    found = [f"{r.place}: {r.rule} is wrong\n{r.counterexample}" for r in results if r.counterexample is not None]
    for name, pipeline in () if only else book.pipelines.items():
        if pipeline.span.file not in ours:
            changed = check_pipeline(ruleset, name, examples=examples, start=seed).counterexample
            found += [f"the pipeline {name} changes a value\n{changed}"] if changed is not None else []
    if found:
        raise RuleRefuted("\n\n".join(found))
    return results


def _chosen(ruleset: RuleSet, only: Sequence[str]) -> list[Rule]:
    rules = [rule for group in ruleset.book().groups.values() for rule in group.rules]
    return [rule for rule in rules if not only or rule.id in only or rule.id.split(".")[0] in only]


def RuleStrategy(ruleset: RuleSet, rule: str) -> st.SearchStrategy[Application]:  # noqa: N802 - it reads as a type
    """Applications of one rule, by its id `group.rule`, to instances of its left side that satisfy its guard."""
    chosen = _chosen(ruleset, [rule])
    if len(chosen) != 1:
        raise RulewrightError(f"there is no rule `{rule}`; it is named as `group.rule`")
    cases = [case for case in cases_of(chosen[0]) if case.shapes]

    def applied(data: bytes) -> Application | None:
        choices = Choices(data)
        drawn = choices.pick(cases).draw(choices) if cases else None
        fired = ruleset.rule_matcher(rule, drawn.context).match(drawn.graph) if drawn is not None else None
        return Application(drawn.graph, fired[0], drawn.context) if drawn is not None and fired is not None else None

    found = decisions().map(applied).filter(lambda application: application is not None)
    return cast("st.SearchStrategy[Application]", found)
