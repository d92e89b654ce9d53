"""Reads one rule: its parameters filled in, its sides, clauses and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from lark import Token

from ..ops import Op
from ..target import FLOAT_FLAGS
from .cases import read_given
from .diagnostics import Report, did_you_mean
from .drafts import TermError, build_term
from .expressions import default_type, free_names
from .formulas import FormulaReader
from .grammar import Node, nodes
from .modules import Statement
from .names import CALLABLE, TYPE_NAMES, ModuleNames, Scope, type_named
from .syntax import Bind, Case, Chain, Formula, Instance, OnType, Rule, Span, Term, Var, VarKind
from .terms import Side, TermReader, bound_names, formula_names, walk
from .types import TypeConflict, check_types
from .views import Dropped, constant_operand, operands_of, uses_in

CLASSES = ("index", "int", "uint", "sint", "bool", "float")
"""What an `on` clause may name beside the types."""


@dataclass(slots=True)
class _Clauses:
    """The clauses of a rule by kind."""

    lets: list[Node] = field(default_factory=list)
    cases: list[Node] = field(default_factory=list)
    single: dict[str, Node | Token] = field(default_factory=dict)


class RuleReader:
    """Turns the tree of a rule into a Rule."""

    def __init__(self, statement: Statement, group: str, names: ModuleNames, report: Report) -> None:
        self.statement, self.names, self.report = statement, names, report
        self.id = f"{group}.{statement.name}"
        parts = [part for part in statement.tree.children[1:] if part is not None]
        self.choices = next(
            (part for part in parts if not isinstance(part, Token) and part.data == "choices"),
            None,
        )
        self.sides = next(part for part in parts if not isinstance(part, Token) and part.data == "sides")
        self.clauses = self._sort([p for p in parts if p is not self.choices and p is not self.sides])

    def span(self, part: Node | Token) -> Span:
        return self.statement.span(part)

    def _sort(self, parts: list[Node | Token]) -> _Clauses:
        clauses = _Clauses()
        for part in parts:
            kind = str(part.data) if not isinstance(part, Token) else ""
            assert not isinstance(part, Token)
            if kind == "let":
                clauses.lets.append(part)
            elif kind in ("test", "keep"):
                clauses.cases.append(part)
            elif kind in clauses.single:
                first = self.span(clauses.single[kind])
                self.report.error(
                    "E053",
                    f"a rule has one `{kind}`",
                    self.span(part),
                    related=("the first", first),
                )
            elif kind != "close":
                clauses.single[kind] = part
        return clauses

    def read(self) -> Rule:
        """The rule; complete only if nothing was reported."""
        before = self.report.errors
        instances = tuple(
            self._instance(values, dropped)
            for values in product(*self._parameters())
            for dropped in self._view_choices(dict(values))
        )
        because = self._single("because")
        rule = Rule(
            id=self.id,
            doc=self.statement.block.doc,
            instances=instances,
            on=tuple(self._on()),
            ordered=self._single("ordered") is not None,
            cases=tuple(self._case(case) for case in self.clauses.cases),
            decreases=self._decreases(),
            because=str(because.children[0])[1:-1] if because is not None else None,
            span=self.span(self.statement.name),
            text=self.statement.text(self.sides),
        )
        if self.report.errors == before:
            self._check_types(rule)
        self._require_cases(rule.cases)
        return rule

    def _check_types(self, rule: Rule) -> None:
        for instance in rule.instances:
            try:
                check_types(instance, rule.on)
            except TypeConflict as conflict:
                values = ", ".join(f"{name} = {value}" for name, value in instance.bindings)
                hint = f"with {values}" if values else None
                self.report.error("E030", conflict.problem, conflict.span, hint)
                break
        for case in rule.cases:
            names = free_names(case.given, (term for term in (case.before, case.after) if term), default_type(rule))
            try:
                before = build_term(case.before, names)
                if case.after is not None:
                    build_term(
                        case.after, names, before.dtype if before.dtype.kind not in ("void", "pointer") else None
                    )
            except TermError as problem:
                self.report.error("E031", problem.problem, problem.span)

    def _single(self, kind: str) -> Node | None:
        part = self.clauses.single.get(kind)
        return None if part is None or isinstance(part, Token) else part

    # --- parameters --------------------------------------------------------------------------------------------------

    def _parameters(self) -> list[list[tuple[str, Op | int]]]:
        """For each parameter its values, with its name."""
        found: dict[str, list[tuple[str, Op | int]]] = {}
        for choice in nodes(self.choices) if self.choices is not None else ():
            token, *values = choice.children
            assert isinstance(token, Token)
            name = str(token)
            if name in found or name in self.names.declared:
                self.report.error("E052", f"`{name}` is already declared", self.span(token))
            options = [option for value in values if isinstance(value, type(choice)) for option in self._options(value)]
            found[name] = [(name, option) for option in options]
        return list(found.values())

    def _options(self, tree: Node) -> list[Op | int]:
        if tree.data == "integer":
            sign, digits = tree.children
            return [int(str(digits), 0) * (1 if sign is None else -1)]
        name, span = str(tree.children[0]), self.span(tree)
        if tree.data == "operator" and name in CALLABLE:
            return [CALLABLE[name]]
        if name not in self.names.families:
            code, what = ("E013", "family") if tree.data == "family" else ("E011", "operator")
            hint = did_you_mean(
                name,
                [*self.names.families, *(CALLABLE if tree.data == "operator" else ())],
            )
            self.report.error(
                code,
                f"unknown {what} `{name}`",
                span,
                hint or "declare it with `family`",
            )
        return list(self.names.families.get(name, ()))

    # --- sides -------------------------------------------------------------------------------------------------------

    def _view_choices(self, parameters: Mapping[str, Op | int]) -> list[tuple[Dropped, ...]]:
        """For each instance which constants are absent, in each view of the left side, all present first.

        A constant that is absent is then a number. The view that is the whole left side is never without its operator.
        """
        left = nodes(self.sides)[0]
        whole = left
        while whole.data == "bind":
            (whole,) = nodes(whole)
        options: list[list[Dropped]] = []
        for call in uses_in(left, self.names.views):
            view = self.names.views[str(nodes(call)[0].children[0])]
            operands = dict(zip(view.parameters, map(constant_operand, operands_of(call)), strict=False))
            choices = [one for one in view.choices() if self._can_drop(one, operands, parameters)]
            plain = {name: Var(name, VarKind.ANY, view.span) for name in view.parameters}
            if call is whole:
                choices = [one for one in choices if not isinstance(view.applied(plain, one, view.span), Var)]
            options.append(choices)
        found = list(product(*options))
        return found or [()]

    def _can_drop(
        self, dropped: Dropped, operands: Mapping[str, str | int | None], parameters: Mapping[str, Op | int]
    ) -> bool:
        """Whether what stands for the absent constants can have their neutral values."""
        for name, value in dropped.items():
            given = operands.get(name)
            declared = self.names.declared.get(str(given))
            is_constant = declared is not None and declared.kind is VarKind.CONST
            if given not in (value, "_") and not is_constant and parameters.get(str(given)) != value:
                return False
        return True

    def _absent(self, tree: Node, dropped: tuple[Dropped, ...]) -> dict[str, int]:
        """The constants of the rule that are absent, with their values."""
        found: dict[str, int] = {}
        for call, absent in zip(uses_in(tree, self.names.views), dropped, strict=False):
            view = self.names.views[str(nodes(call)[0].children[0])]
            for parameter, operand in zip(view.parameters, operands_of(call), strict=False):
                given = constant_operand(operand)
                if parameter in absent and isinstance(given, str) and given in self.names.declared:
                    found[given] = absent[parameter]
                    self.names.used.add(given)
        return found

    def _instance(self, values: tuple[tuple[str, Op | int], ...], dropped: tuple[Dropped, ...]) -> Instance:
        absent = self._absent(nodes(self.sides)[0], dropped)
        values = (*values, *absent.items())
        scope = Scope(self.names, parameters=dict(values), views=list(dropped))
        left_tree, right_tree = nodes(self.sides)
        left = self._left(left_tree, scope)
        self._check_root(left, left_tree)
        when = self._when(scope)
        lets = tuple(self._lets(scope))
        right = TermReader(self.statement, scope, self.report, Side.RIGHT).term(right_tree)
        return Instance(values, left, right, lets, when)

    def _left(self, tree: Node, scope: Scope) -> Term:
        """The left side; what it binds goes to `scope`, unless it is broken: then nobody knows."""
        before = self.report.errors
        left = TermReader(self.statement, scope, self.report, Side.LEFT).term(tree)
        scope.bound = bound_names(left) if self.report.errors == before else None
        formulas = FormulaReader(self.statement, scope, self.report)
        for part in walk(left):
            for share in part.shares if isinstance(part, Chain) else ():
                for name in formula_names(share.guard):
                    formulas.require_bound(name.name, name.span)
        return left

    def _check_root(self, left: Term, tree: Node) -> None:
        while tree.data == "bind":
            (tree,) = nodes(tree)
        while isinstance(left, Bind):
            left = left.term
        plain = isinstance(left, Var) and left.kind is VarKind.ANY
        if plain or tree.data in ("wildcard", "literal", "compute"):
            self.report.error(
                "E043",
                "the left side must be an operator on something",
                self.span(tree),
                "a rule for every node would never end",
            )

    def _when(self, scope: Scope) -> Formula | None:
        clause = self._single("when")
        if clause is None:
            return None
        return FormulaReader(self.statement, scope, self.report).formula(nodes(clause)[0])

    def _lets(self, scope: Scope) -> Iterator[tuple[str, Term]]:
        for clause in self.clauses.lets:
            token, tree = clause.children
            assert isinstance(token, Token) and not isinstance(tree, Token)
            name = str(token)
            term = TermReader(self.statement, scope, self.report, Side.RIGHT).term(tree)
            if name in scope.visible():
                self.report.error("E052", f"`{name}` is already declared", self.span(token))
            scope.nodes.add(name)
            yield name, term

    # --- clauses -----------------------------------------------------------------------------------------------------

    def _on(self) -> Iterator[OnType]:
        clause = self._single("on")
        for tree in nodes(clause) if clause is not None else ():
            token, *flags = (part for part in tree.children if part is not None)
            name = str(token)
            dtype = type_named(name)
            if name not in CLASSES and (dtype is None or dtype.lanes > 1):
                assert isinstance(token, Token)
                hint = did_you_mean(name, [*CLASSES, *TYPE_NAMES])
                self.report.error("E014", f"unknown type `{name}`", self.span(token), hint)
            for flag in flags:
                if str(flag) not in FLOAT_FLAGS:
                    hint = did_you_mean(str(flag), FLOAT_FLAGS) or f"the flags are {', '.join(sorted(FLOAT_FLAGS))}"
                    self.report.error("E016", f"unknown flag `{flag}`", self.span(flag), hint)
            yield OnType(name, tuple(str(flag) for flag in flags), self.span(tree))

    def _decreases(self) -> Formula | None:
        clause = self._single("decreases")
        if clause is None:
            return None
        values = tuple(options[0] for options in self._parameters() if options)
        scope = Scope(self.names, parameters=dict(values))
        self._left(nodes(self.sides)[0], scope)
        return FormulaReader(self.statement, scope, self.report).formula(nodes(clause)[0])

    def _case(self, clause: Node) -> Case:
        parts = nodes(clause)
        scope = Scope(ModuleNames(), free=True)
        reader = TermReader(self.statement, scope, self.report, Side.CASE)
        given = read_given(self.statement, parts[-1], self.report) if parts[-1].data == "given" else ()
        after = reader.term(parts[1]) if clause.data == "test" else None
        return Case(reader.term(parts[0]), after, given, self.span(clause))

    def _require_cases(self, cases: tuple[Case, ...]) -> None:
        if "when" not in self.clauses.single:
            return
        name = self.statement.name
        if not any(case.after is not None for case in cases):
            self.report.error("E060", f"the guarded rule `{name}` has no `test`", self.span(name),
                              "show an expression on which it fires: `test A => B`")  # fmt: skip
        if not any(case.after is None for case in cases):
            self.report.error("E061", f"the guarded rule `{name}` has no `keep`", self.span(name),
                              "show an expression on which its guard says no: `keep A`")  # fmt: skip
