"""Resolves the names of all modules that are loaded together: declarations, families, groups, pipelines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from lark import Token

from .blocks import Block
from .changes import Changes, insert_groups
from .diagnostics import Report, did_you_mean, known
from .externs import EXTERNS
from .families import resolve_families
from .formulas import FormulaReader
from .modules import GroupText, Module, Statement
from .names import CALLABLE, Declared, Extern, ModuleNames, Scope
from .pipelines import resolve_pipelines
from .rules import RuleReader
from .shadowing import report_shadowed
from .syntax import Group, Rule, RuleBook, Span, Var, VarKind, Wildcard
from .terms import Side, TermReader, walk
from .views import View, is_view_term


def resolve(modules: Sequence[Module], report: Report) -> RuleBook:
    """The rule book of these modules; complete only if no error was reported."""
    return _Resolver(modules, report).book()


class _Resolver:
    def __init__(self, modules: Sequence[Module], report: Report) -> None:
        self.modules, self.report = modules, report
        self.by_name: dict[str, Module] = {}
        self.names: dict[str, ModuleNames] = {}

    def book(self) -> RuleBook:
        for module in self.modules:
            self._register(module)
        for module in self.by_name.values():
            self._declare(module, self.names[module.name])
        modules = list(self.by_name.values())
        uses = {module.name: self._uses(module) for module in modules}
        families = resolve_families(modules, uses, self.report)
        functions = {module.name: self.names[module.name].externs for module in modules}
        for module in modules:
            names = self.names[module.name]
            names.families |= families[module.name]
            for used in uses[module.name]:
                names.externs = {**functions[used.name], **names.externs}
        for module in modules:
            self._views(module, self.names[module.name])
        views = {module.name: self.names[module.name].views for module in modules}
        for module in modules:
            for used in uses[module.name]:
                self.names[module.name].views = {**views[used.name], **self.names[module.name].views}
        groups: dict[str, Group] = {}
        for module in modules:
            for text in module.groups:
                if not text.extends:
                    self._group(text, self.names[module.name], groups)
        self._change(modules, groups)
        statements = [statement for module in modules for statement in module.pipelines]
        inserts = [one for module in modules for one in module.changes if one.block.keyword == "insert"]
        pipelines = resolve_pipelines(statements, groups, self.report)
        for group in groups.values() if not self.report.errors else ():
            report_shadowed(group, self.report)
        book = RuleBook(groups, insert_groups(inserts, groups, pipelines, self.report))
        for module in modules:
            self._unused(module)
        return book

    def _change(self, modules: Sequence[Module], groups: dict[str, Group]) -> None:
        """What modules change in the groups of others."""
        changes = Changes(groups, self.report)
        for module in modules:
            read = partial(self._rule, names=self.names[module.name])
            for text in module.groups:
                if text.extends:
                    changes.extend(text, read)
            for statement in module.changes:
                if statement.block.keyword == "replace":
                    changes.replace(statement, read)
                elif statement.block.keyword == "disable":
                    changes.disable(statement)

    def _rule(self, statement: Statement, group: str, names: ModuleNames) -> Rule:
        return RuleReader(statement, group, names, self.report).read()

    def _register(self, module: Module) -> None:
        other = self.by_name.get(module.name)
        if other is not None:
            here = module.named or Span(module.source.name, 1, 1, 1, 1)
            there = other.named or Span(other.source.name, 1, 1, 1, 1)
            self.report.error(
                "E054",
                f"there are two modules `{module.name}`",
                here,
                related=("the other", there),
            )
            return
        self.by_name[module.name] = module
        self.names[module.name] = ModuleNames()

    # --- declarations ------------------------------------------------------------------------------------------------

    def _declare(self, module: Module, names: ModuleNames) -> None:
        for statement in module.names:
            keyword, *tokens = statement.tree.children
            for token in tokens:
                assert isinstance(token, Token)
                self._declare_name(
                    str(token),
                    Declared(VarKind(str(keyword)), statement.span(token)),
                    names,
                )
        for statement in module.externs:
            self._extern(statement, names)
        for block in module.broken:
            self._guess(block, names)

    def _guess(self, block: Block, names: ModuleNames) -> None:
        """What a broken declaration probably declares, so that its error is the only one."""
        words = re.findall(r"[A-Za-z_]\w*", block.text)[1:]
        if block.keyword == "family":
            names.families.update((word, ()) for word in words[:1])
        elif block.keyword in ("vars", "consts", "types", "args"):
            for word in words:
                names.declared.setdefault(word, Declared(VarKind(block.keyword), block.head))

    def _declare_name(self, name: str, declared: Declared, names: ModuleNames) -> None:
        first = names.declared.get(name)
        if first is not None:
            self.report.error("E052", f"`{name}` is already declared", declared.span,
                              related=("the first declaration", first.span))  # fmt: skip
        elif name == "_":
            self.report.error("E052", "`_` matches anything and cannot be declared", declared.span)
        else:
            names.declared[name] = declared

    def _extern(self, statement: Statement, names: ModuleNames) -> None:
        kind, token, parameters, *means = statement.tree.children
        assert isinstance(token, Token) and parameters is not None and not isinstance(parameters, Token)
        name, span = str(token), statement.span(token)
        words = tuple(str(part) for part in parameters.children if part is not None)
        if name in names.externs:
            self.report.error("E052", f"`{name}` is already declared", span,
                              related=("the first declaration", names.externs[name].span))  # fmt: skip
        if name not in EXTERNS and not means:
            hint = did_you_mean(name, EXTERNS) or "register the Python function with `@extern`, or say what it means"
            self.report.error("E018", f"no Python function is registered for `{name}`", span, hint)
        meaning = None
        for clause in means:
            assert clause is not None and not isinstance(clause, Token)
            formula = clause.children[0]
            assert not isinstance(formula, Token)
            scope = Scope(ModuleNames(externs=names.externs), formal=frozenset(words))
            meaning = FormulaReader(statement, scope, self.report).formula(formula)
        names.externs.setdefault(name, Extern(words, str(kind) == "pred", span, meaning))

    def _views(self, module: Module, names: ModuleNames) -> None:
        """The views that a module declares; one may use those before it."""
        for statement in module.views:
            token, *parameters, body = statement.tree.children
            assert isinstance(token, Token) and body is not None and not isinstance(body, Token)
            name, span = str(token), statement.span(token)
            words = tuple(map(str, parameters))
            before = self.report.errors
            if name in names.views or name in CALLABLE:
                self.report.error("E052", f"`{name}` is already declared", span)
                continue
            reader = TermReader(statement, Scope(names, bound=set(words)), self.report, Side.RIGHT)
            term = reader.term(body)
            for parameter in parameters:
                assert isinstance(parameter, Token)
                if names.declared.get(str(parameter)) is None:
                    reader.formulas.unknown(str(parameter), statement.span(parameter))
                elif not any(isinstance(part, Var) and part.name == parameter for part in walk(term)):
                    self.report.error("E040", f"the view does not use `{parameter}`", statement.span(parameter))
            if self.report.errors == before and not is_view_term(term):
                self.report.error("E041", "a view is made of operators, names and numbers", statement.span(body))
            elif self.report.errors == before:
                names.views[name] = View(words, term, span)
            else:
                names.views[name] = View(words, Wildcard(span), span)

    def _uses(self, module: Module) -> list[Module]:
        """The modules whose families and functions this one sees."""
        found = []
        for statement in module.uses:
            for token in statement.tree.children:
                assert isinstance(token, Token)
                used = self.by_name.get(str(token))
                if used is None:
                    others = set(self.by_name) - {module.name}
                    hint = did_you_mean(str(token), others) or known(others)
                    self.report.error("E017", f"unknown module `{token}`", statement.span(token), hint)
                elif used is not module:
                    found.append(used)
        return found

    def _unused(self, module: Module) -> None:
        """Warns of names that no rule uses; said of a broken file that might be wrong."""
        names = self.names[module.name]
        for name, declared in names.declared.items() if not self.report.errors else ():
            if name not in names.used:
                self.report.warning("W001", f"`{name}` is declared but never used", declared.span)

    # --- groups ------------------------------------------------------------------------------------------------------

    def _group(self, text: GroupText, names: ModuleNames, groups: dict[str, Group]) -> None:
        name, span = str(text.statement.name), text.statement.span(text.statement.name)
        if name in groups:
            self.report.error(
                "E051",
                f"there are two groups `{name}`",
                span,
                related=("the first", groups[name].span),
            )
            return
        rules: dict[str, Rule] = {}
        for statement in text.rules:
            word = str(statement.name)
            rule = self._rule(statement, name, names)
            if word in rules:
                self.report.error("E050", f"the group `{name}` has two rules `{word}`", statement.span(statement.name),
                                  related=("the first", rules[word].span))  # fmt: skip
            else:
                rules[word] = rule
        groups[name] = Group(name, text.statement.block.doc, tuple(rules.values()), span)
