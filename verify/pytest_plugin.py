"""A pytest plugin: `pytest --rulewright my.rules` makes each rule of a file a test.

The test of a rule runs its `test` and `keep` lines and its property checks. The plugin is loaded in every run of pytest
where Rulewright is installed, so it imports nothing of it until the option is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..engine.language.syntax import Rule
    from ..engine.rewriting import RuleSet


class RuleFailed(Exception):
    """What is wrong with a rule, for the report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rulewright")
    group.addoption("--rulewright", action="append", metavar="FILE", default=[], help="make each rule of a file a test")
    group.addoption(
        "--rulewright-examples", type=int, metavar="N", default=100, help="instances drawn for each rule (100)"
    )


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    for name in config.getoption("rulewright"):
        items.extend(_items(session, Path(name)))


def _items(session: pytest.Session, path: Path) -> Iterator[pytest.Item]:
    """A test for each rule of a file, read together with our own rules."""
    from ..cli.rule_files import sources_with_builtin
    from ..engine.errors import RulewrightError
    from ..engine.rewriting import RuleSet

    try:
        own, others = sources_with_builtin([str(path)])
        ruleset = RuleSet.from_sources([*others, *own])
        book = ruleset.book()
    except RulewrightError as problem:
        raise pytest.UsageError(str(problem)) from None
    names = {source.name for source in own}
    for group in book.groups.values():
        for rule in group.rules:
            if rule.span.file in names:
                item: RuleItem = RuleItem.from_parent(session, name=f"{path.name}::{rule.id}")
                item.rule, item.ruleset, item.file = rule, ruleset, path
                yield item


class RuleItem(pytest.Item):
    """The test of one rule."""

    rule: Rule
    ruleset: RuleSet
    file: Path

    def runtest(self) -> None:
        from .cases import case_problem
        from .properties import check_rule

        problems = [f"{case.span}: {case_problem(self.ruleset, self.rule, case)}" for case in self.rule.cases
                    if case_problem(self.ruleset, self.rule, case) is not None]  # fmt: skip
        result = check_rule(self.ruleset, self.rule, examples=self.config.getoption("rulewright_examples"))
        if result.counterexample is not None:
            problems.append(str(result.counterexample))
        elif not result.drawn:
            problems.append("no instance of its left side can be built, so nothing was checked")
        if problems:
            raise RuleFailed("\n".join(problems))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The counterexample, without a traceback."""
        if isinstance(excinfo.value, RuleFailed):
            return f"{self.rule.span}: {' '.join(self.rule.text.split())}\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.file, self.rule.span.line - 1, self.rule.id
