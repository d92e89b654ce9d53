"""Resolves pipelines: the stages that they name, other pipelines spelled out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lark import Token

from .diagnostics import Report, did_you_mean, known
from .modules import Statement
from .syntax import Group, Pipeline, Stage


def resolve_pipelines(
    statements: Sequence[Statement], groups: Mapping[str, Group], report: Report
) -> dict[str, Pipeline]:
    """The pipelines by name, in the order in which they stand; they may name each other in any order."""
    texts: dict[str, Statement] = {}
    for statement in statements:
        name, span = str(statement.name), statement.span(statement.name)
        if name in texts:
            first = texts[name].span(texts[name].name)
            report.error(
                "E051",
                f"there are two pipelines `{name}`",
                span,
                related=("the first", first),
            )
        elif name in groups:
            report.error(
                "E051",
                f"`{name}` is already a group",
                span,
                related=("the group", groups[name].span),
            )
        else:
            texts[name] = statement
    resolver = _Resolver(texts, groups, report)
    return {
        name: Pipeline(
            name,
            statement.block.doc,
            resolver.stages(name),
            statement.span(statement.name),
        )
        for name, statement in texts.items()
    }


class _Resolver:
    def __init__(
        self,
        texts: Mapping[str, Statement],
        groups: Mapping[str, Group],
        report: Report,
    ) -> None:
        self.texts, self.groups, self.report = texts, groups, report
        self.done: dict[str, tuple[Stage, ...]] = {}
        self.open: list[str] = []

    def stages(self, name: str) -> tuple[Stage, ...]:
        """The stages of a pipeline, with those of the pipelines that it names in their place."""
        if name in self.done:
            return self.done[name]
        statement = self.texts[name]
        if name in self.open:
            circle = " -> ".join([*self.open[self.open.index(name) :], name])
            self.report.error(
                "E070",
                f"pipelines name each other in a circle: {circle}",
                statement.span(statement.name),
            )
            return ()
        self.open.append(name)
        found: list[Stage] = []
        for part in statement.tree.children[1:]:
            assert part is not None and not isinstance(part, Token)
            if part.data == "stages":
                found += self._named(part.children[0], statement)
            else:
                mode, *words = part.children
                names = [group for word in words for group in self._groups(word, statement)]
                found.append(Stage(str(mode), tuple(dict.fromkeys(names))))
        self.open.pop()
        self.done[name] = tuple(found)
        return self.done[name]

    def _named(self, word: object, statement: Statement) -> tuple[Stage, ...]:
        """A bare name is a pipeline."""
        assert isinstance(word, Token)
        if str(word) in self.texts:
            return self.stages(str(word))
        if str(word) in self.groups:
            self.report.error("E015", f"`{word}` is a group: say how to apply it", statement.span(word),
                              f"`fix({word})` or `once({word})`")  # fmt: skip
        else:
            hint = did_you_mean(str(word), self.texts) or known(self.texts)
            self.report.error("E015", f"unknown pipeline `{word}`", statement.span(word), hint)
        return ()

    def _groups(self, word: object, statement: Statement) -> tuple[str, ...]:
        """A name in `fix(…)`: a group, or all groups of a pipeline."""
        assert isinstance(word, Token)
        if str(word) in self.groups:
            return (str(word),)
        if str(word) in self.texts:
            return tuple(group for stage in self.stages(str(word)) for group in stage.groups)
        names = [*self.groups, *self.texts]
        hint = did_you_mean(str(word), names) or known(names)
        self.report.error("E015", f"unknown group or pipeline `{word}`", statement.span(word), hint)
        return ()
