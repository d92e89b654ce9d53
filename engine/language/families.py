"""Resolves families of operators: a family names operators and other families, of its module or of one that it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ops import Op
from .diagnostics import Report, did_you_mean
from .grammar import Node, nodes
from .modules import Module, Statement
from .names import CALLABLE

Family = tuple[Op, ...]
_Key = tuple[str, str]  # module and family


def resolve_families(
    modules: Sequence[Module], uses: Mapping[str, Sequence[Module]], report: Report
) -> dict[str, dict[str, Family]]:
    """For each module the families that it sees: those of the modules that it uses, hidden by its own."""
    resolver = _Resolver(report)
    for module in modules:
        resolver.register(module)
    for module in modules:
        resolver.sees[module.name] = {
            name: (seen.name, name)
            for seen in (*uses[module.name], module)
            for name in map(str, (statement.name for statement in seen.families))
        }
    return {
        module.name: {name: resolver.family(key) for name, key in resolver.sees[module.name].items()}
        for module in modules
    }


class _Resolver:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.texts: dict[_Key, Statement] = {}
        self.sees: dict[str, dict[str, _Key]] = {}
        self.done: dict[_Key, Family] = {}
        self.open: list[_Key] = []

    def register(self, module: Module) -> None:
        for statement in module.families:
            name, span = str(statement.name), statement.span(statement.name)
            first = self.texts.get((module.name, name))
            if first is not None:
                related = ("the first declaration", first.span(first.name))
                self.report.error("E052", f"the family `{name}` is already declared", span, related=related)
                continue
            if name in CALLABLE:
                self.report.error("E052", f"`{name}` is an operator, a family needs another name", span)
            self.texts[module.name, name] = statement

    def family(self, key: _Key) -> Family:
        """The operators of a family, in the order in which they are named, each once."""
        if key in self.done:
            return self.done[key]
        statement = self.texts[key]
        if key in self.open:
            circle = " -> ".join(name for _, name in [*self.open[self.open.index(key) :], key])
            place = statement.span(statement.name)
            self.report.error("E070", f"families name each other in a circle: {circle}", place)
            return ()
        self.open.append(key)
        found = [op for part in nodes(statement.tree) for op in self._member(part, key[0], statement)]
        self.open.pop()
        self.done[key] = tuple(dict.fromkeys(found))
        return self.done[key]

    def _member(self, part: Node, module: str, statement: Statement) -> Family:
        word = str(part.children[0])
        if word in CALLABLE:
            return (CALLABLE[word],)
        key = self.sees[module].get(word)
        if key is not None:
            return self.family(key)
        hint = did_you_mean(word, [*CALLABLE, *self.sees[module]])
        self.report.error("E011", f"unknown operator or family `{word}`", statement.span(part), hint)
        return ()
