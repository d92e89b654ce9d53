"""What a rule file changes in the groups and pipelines of others: `extend`, `replace`, `disable`, `insert`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lark import Token

from .diagnostics import Report, did_you_mean, known
from .grammar import nodes
from .modules import GroupText, Statement
from .syntax import Group, Pipeline, Rule, Span, Stage

ReadRule = Callable[[Statement, str], Rule]
"""Reads the rule of a statement as one of the group that is named."""


class Changes:
    """Applies the changes of all files to the groups, in the order in which they stand."""

    def __init__(self, groups: dict[str, Group], report: Report) -> None:
        self.groups, self.report = groups, report
        self.changed: dict[str, Span] = {}  # where a rule was replaced or disabled, by its id

    def extend(self, text: GroupText, read: ReadRule) -> None:
        """Adds rules to the end of a group; a broken one is read too, so that all its errors are reported."""
        name = str(text.statement.name)
        group = self._group(text.statement.name, text.statement)
        rules = {rule.id: rule for rule in group.rules} if group is not None else {}
        for statement in text.rules:
            rule = read(statement, name)
            if rule.id in rules:
                self.report.error("E050", f"the group `{name}` has two rules `{statement.name}`", rule.span,
                                  f"`replace {rule.id}: …` takes the place of the other",
                                  related=("the first", rules[rule.id].span))  # fmt: skip
            else:
                rules[rule.id] = rule
        if group is not None:
            self.groups[name] = replace(group, rules=tuple(rules.values()))

    def replace(self, statement: Statement, read: ReadRule) -> None:
        """Puts a rule where another stood."""
        (rule_id, *_) = nodes(statement.tree)
        group_name, _ = rule_id.children
        new = read(statement, str(group_name))
        old = self._rule(new.id, statement, statement.span(rule_id))
        if old is not None:
            self._put(new.id, (new,))

    def disable(self, statement: Statement) -> None:
        """Takes rules out."""
        for rule_id in (part for part in nodes(statement.tree) if part.data == "rule_id"):
            name = ".".join(map(str, rule_id.children))
            if self._rule(name, statement, statement.span(rule_id)) is not None:
                self._put(name, ())

    def _put(self, name: str, instead: tuple[Rule, ...]) -> None:
        group = self.groups[name.split(".")[0]]
        rules = tuple(new for rule in group.rules for new in (instead if rule.id == name else (rule,)))
        self.groups[group.name] = replace(group, rules=rules)

    def _rule(self, name: str, statement: Statement, span: Span) -> Rule | None:
        """The rule that a statement changes; each is changed once."""
        if name in self.changed:
            related = ("the first change", self.changed[name])
            self.report.error("E055", f"the rule `{name}` is changed twice", span, related=related)
            return None
        (rule_id, *_) = (part for part in nodes(statement.tree) if ".".join(map(str, part.children)) == name)
        word = rule_id.children[0]
        assert isinstance(word, Token)
        group = self._group(word, statement)
        if group is None:
            return None
        found = next((rule for rule in group.rules if rule.id == name), None)
        if found is None:
            hint = did_you_mean(name, (rule.id for rule in group.rules)) or "`rulewright rules` lists them"
            self.report.error("E026", f"the group `{group.name}` has no rule `{name.split('.')[1]}`", span, hint)
        self.changed[name] = span
        return found

    def _group(self, word: Token, statement: Statement) -> Group | None:
        group = self.groups.get(str(word))
        if group is None:
            hint = did_you_mean(str(word), self.groups) or known(self.groups)
            self.report.error("E015", f"unknown group `{word}`", statement.span(word), hint)
        return group


def insert_groups(
    statements: Sequence[Statement], groups: dict[str, Group], pipelines: dict[str, Pipeline], report: Report
) -> dict[str, Pipeline]:
    """The pipelines after `insert a, b before c`: in every stage with `c`, the others stand beside it."""
    for statement in statements:
        *words, where, anchor = (part for part in statement.tree.children if isinstance(part, Token))
        for word in (*words, anchor):
            if str(word) not in groups:
                hint = did_you_mean(str(word), groups) or known(groups)
                report.error("E015", f"unknown group `{word}`", statement.span(word), hint)
        names = tuple(map(str, words))
        beside = (*names, str(anchor)) if where == "before" else (str(anchor), *names)
        pipelines = {
            name: replace(pipeline, stages=tuple(_inserted(stage, str(anchor), beside) for stage in pipeline.stages))
            for name, pipeline in pipelines.items()
        }
    return pipelines


def _inserted(stage: Stage, anchor: str, beside: tuple[str, ...]) -> Stage:
    groups = (new for group in stage.groups for new in (beside if group == anchor else (group,)))
    return Stage(stage.mode, tuple(dict.fromkeys(groups)))
