"""Reads formulas: guards, bounds of lanes, what stands in `{…}` and in brackets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from lark import Token

from .. import ops
from ..ops import Op
from .builtins import BUILTINS, Argument
from .diagnostics import Report, did_you_mean
from .grammar import Node, first_token, nodes
from .modules import Statement
from .names import INFIX, TYPE_NAMES, Extern, Scope, number, type_named
from .syntax import (
    Attr,
    Formula,
    Function,
    InRange,
    Logic,
    Name,
    Number,
    Operation,
    Span,
    Text,
    TypeName,
    Var,
    VarKind,
)

SCALAR = {name: op for name, op in ops.OPS.items() if op.elementwise}
"""The operators that a formula may call."""


class Sort(Enum):
    """What a name in a formula is, as messages call it."""

    NUMBER = "a number"
    NODE = "an expression"
    NODES = "several expressions"
    TYPE = "a type"
    ARG = "the contents of brackets"
    OPERATOR = "an operator"


_OF_KIND = {
    VarKind.ANY: Sort.NODE,
    VarKind.CONST: Sort.NUMBER,
    VarKind.TYPE: Sort.TYPE,
    VarKind.ARG: Sort.ARG,
}


class FormulaReader:
    """Turns the trees of formulas into syntax, in the scope of one rule."""

    def __init__(self, statement: Statement, scope: Scope, report: Report) -> None:
        self.statement, self.scope, self.report = statement, scope, report

    def span(self, part: Node | Token) -> Span:
        return self.statement.span(part)

    # --- names -------------------------------------------------------------------------------------------------------

    def sort(self, name: str) -> Sort | None:
        """What `name` is here; None if it is unknown."""
        scope = self.scope
        if name in scope.counters or name in scope.numbers or name in scope.formal:
            return Sort.NUMBER
        if name in scope.parameters:
            return Sort.OPERATOR if isinstance(scope.parameters[name], Op) else Sort.NUMBER
        if name in scope.packs:
            scope.kind(name)
            return Sort.NODES
        if name in scope.nodes:
            scope.kind(name)
            return Sort.NODE
        kind = scope.kind(name)
        return None if kind is None else _OF_KIND[kind]

    def is_bound(self, name: str) -> bool:
        """Whether the name has a value when this place is reached."""
        scope = self.scope
        if name in scope.formal:
            return True
        local = name in scope.counters or name in scope.numbers or name in scope.parameters or name in scope.nodes
        return local or scope.bound is None or name in scope.bound

    def require_bound(self, name: str, span: Span) -> None:
        if not self.is_bound(name):
            self.report.error("E040", f"the left side does not bind `{name}`", span)

    def unknown(self, name: str, span: Span) -> None:
        """Reports a name that nothing declares."""
        hint = did_you_mean(name, self.scope.visible())
        self.report.error(
            "E010",
            f"unknown name `{name}`",
            span,
            hint or "declare it with `vars` or `consts`",
        )

    # --- formulas ----------------------------------------------------------------------------------------------------

    def formula(self, tree: Node) -> Formula:
        """A formula whose value is a number, a truth value or a type."""
        span = self.span(tree)
        match tree.data:
            case "name":
                return self._name(str(tree.children[0]), span)
            case "literal":
                return Number(number(first_token(tree)), span)
            case "text":
                return Text(str(tree.children[0])[1:-1], span)
            case "infix":
                return self._infix(tree)
            case "prefix":
                return self._prefix(tree)
            case "both" | "either":
                word = "and" if tree.data == "both" else "or"
                return Logic(word, tuple(self.formula(part) for part in nodes(tree)), span)
            case "negated":
                return Logic("not", (self.formula(nodes(tree)[0]),), span)
            case "in_range":
                return self._in_range(tree)
            case "method":
                return self._call(f"{tree.children[0]}.{tree.children[1]}", tree)
            case _:
                return self._call(str(tree.children[0]), tree)

    def _name(self, name: str, span: Span) -> Formula:
        sort = self.sort(name)
        if sort is None:
            dtype = type_named(name)
            if dtype is not None:
                return TypeName(dtype, span)
            self.unknown(name, span)
        elif sort in (Sort.NODE, Sort.NODES):
            self.report.error(
                "E042",
                f"`{name}` is {sort.value}, not a number",
                span,
                self._number_hint(name),
            )
        elif sort is Sort.OPERATOR:
            self.report.error(
                "E042",
                f"`{name}` is an operator, not a number",
                span,
                f"write `{name}(…)`",
            )
        else:
            self.require_bound(name, span)
        value = self.scope.parameters.get(name)
        if isinstance(value, int) and name not in self.scope.counters:
            return Number(value, span)
        return Name(name, span)

    def _number_hint(self, name: str) -> str:
        return f"`min({name})` and `max({name})` are its bounds; a constant's name is declared with `consts`"

    def _infix(self, tree: Node) -> Formula:
        left, sign, right = tree.children
        op = INFIX[str(sign)]
        assert not isinstance(left, Token) and not isinstance(right, Token)
        return Operation(op, (self.formula(left), self.formula(right)), (), self.span(tree))

    def _prefix(self, tree: Node) -> Formula:
        sign, operand = tree.children
        assert not isinstance(operand, Token)
        span = self.span(tree)
        if sign == "-" and operand.data == "literal":
            return Number(-number(first_token(operand)), span)
        return Operation(ops.NEG if sign == "-" else ops.NOT, (self.formula(operand),), (), span)

    def _in_range(self, tree: Node) -> Formula:
        """Of a name that is a node, what the facts prove; of a number, two comparisons."""
        value, low, high = nodes(tree)
        first, end, span = self.formula(low), self.formula(high), self.span(tree)
        if value.data == "name":
            name = str(value.children[0])
            if (
                self.sort(name) is Sort.NODE
                or name in self.scope.formal
                or name not in self.scope.counters
                and name not in self.scope.parameters
                and self.scope.kind(name) is VarKind.CONST
            ):
                self.require_bound(name, self.span(value))
                return InRange(Name(name, self.span(value)), first, end, span)
        inner = self.formula(value)
        above = Operation(ops.LE, (first, inner), (), span)
        return Logic("and", (above, Operation(ops.LT, (inner, end), (), span)), span)

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, name: str, tree: Node) -> Formula:
        args = next((nodes(part) for part in nodes(tree) if part.data == "arguments"), [])
        brackets = next((part for part in nodes(tree) if part.data == "brackets"), None)
        value = self.scope.parameters.get(name)
        if isinstance(value, Op):
            return self._operation(value, args, brackets, tree)
        builtin = BUILTINS.get(name)
        if builtin is not None and (name not in SCALAR or len(args) == builtin.arity):
            self._no_brackets(name, brackets)
            return self._function(name, args, builtin.arguments, tree)
        if name in SCALAR:
            return self._operation(SCALAR[name], args, brackets, tree)
        extern = self.scope.module.externs.get(name)
        if extern is not None:
            self._no_brackets(name, brackets)
            return self._extern(name, args, extern, tree)
        self._unknown_function(name, tree)
        return Number(0, self.span(tree))

    def _unknown_function(self, name: str, tree: Node) -> None:
        span = self.span(first_token(tree))
        if name in ops.OPS:
            self.report.error("E025", f"the operator `{name}` cannot be computed in a formula", span)
            return
        known = [*BUILTINS, *SCALAR, *self.scope.module.externs, *self.scope.parameters]
        hint = did_you_mean(name, known) or "declare it with `extern fn` or `extern pred`"
        self.report.error("E012", f"unknown function `{name}`", span, hint)

    def _no_brackets(self, name: str, brackets: Node | None) -> None:
        if brackets is not None:
            self.report.error("E022", f"`{name}` takes no brackets", self.span(brackets))

    def _operation(self, op: Op, args: list[Node], brackets: Node | None, tree: Node) -> Formula:
        span = self.span(tree)
        if op.arity != len(args):
            self.report.error(
                "E023",
                f"`{op.name}` takes {counted(op.arity or 0, 'argument')}, got {len(args)}",
                span,
            )
        attrs: tuple[Attr, ...] = ()
        if op in (ops.CAST, ops.BITCAST):
            if brackets is None:
                self.report.error(
                    "E021",
                    f"`{op.name}` needs its type in brackets",
                    span,
                    f"`{op.name}[float32](…)`",
                )
            else:
                attrs = tuple(self.attr(part, "type") for part in nodes(brackets))
        else:
            self._no_brackets(op.name, brackets)
        return Operation(op, tuple(self.formula(arg) for arg in args), attrs, span)

    def _function(self, name: str, args: list[Node], kinds: Sequence[Argument], tree: Node) -> Formula:
        if len(args) != len(kinds):
            got = f"`{name}` takes {counted(len(kinds), 'argument')}, got {len(args)}"
            self.report.error("E023", got, self.span(tree))
        parts = tuple(self._argument(arg, kind, name) for arg, kind in zip(args, kinds, strict=False))
        return Function(name, parts, self.span(tree))

    def _extern(self, name: str, args: list[Node], extern: Extern, tree: Node) -> Formula:
        """Arguments are nodes or numbers, as the function wants."""
        count = len(extern.parameters)
        if len(args) != count:
            self.report.error(
                "E023",
                f"`{name}` takes {counted(count, 'argument')}, got {len(args)}",
                self.span(tree),
            )
        parts = tuple(self._node(arg) or self.formula(arg) for arg in args)
        means = None
        if extern.means is not None and len(parts) == count:
            means = substitute(extern.means, dict(zip(extern.parameters, parts, strict=True)))
        return Function(name, parts, self.span(tree), means)

    def _node(self, tree: Node) -> Name | None:
        """The name of one or several nodes, or None if the formula is not that."""
        if tree.data != "name":
            return None
        name = str(tree.children[0])
        if self.sort(name) not in (Sort.NODE, Sort.NODES):
            return None
        self.require_bound(name, self.span(tree))
        return Name(name, self.span(tree))

    def _argument(self, tree: Node, kind: Argument, function: str) -> Formula:
        if kind == "value":
            return self.formula(tree)
        span = self.span(tree)
        if tree.data == "name" and self._fits(str(tree.children[0]), kind):
            name = str(tree.children[0])
            if self.sort(name) is not None:
                self.require_bound(name, span)
                return Name(name, span)
            dtype = type_named(name)
            if dtype is not None:
                return TypeName(dtype, span)
        elif kind == tree.data == "text" or kind == "type" and tree.data == "function" and tree.children[0] == "dtype":
            return self.formula(tree)
        elif (
            tree.data == "name"
            and self.sort(str(tree.children[0])) is None
            and type_named(str(tree.children[0])) is None
        ):
            self.unknown(str(tree.children[0]), span)
            return Number(0, span)
        self.report.error("E024", f"this argument of `{function}` must be {_WANTED[kind]}", span)
        return Number(0, span)

    def _fits(self, name: str, kind: Argument) -> bool:
        if name in self.scope.formal:
            return kind in ("node", "nodes", "type or node")
        sort = self.sort(name)
        if sort is None:
            return kind in ("type", "type or node") and type_named(name) is not None
        is_number = name in self.scope.counters or name in self.scope.parameters
        is_node = sort is Sort.NODE or self.scope.kind(name) is VarKind.CONST and not is_number
        match kind:
            case "node":
                return is_node
            case "nodes":
                return is_node or sort is Sort.NODES
            case "type":
                return sort is Sort.TYPE
            case "type or node":
                return is_node or sort is Sort.TYPE
            case "operator":
                return sort in (Sort.OPERATOR, Sort.ARG)
            case _:
                return False

    # --- brackets ----------------------------------------------------------------------------------------------------

    def attr(self, tree: Node, kind: str) -> Attr:
        """What stands in brackets, where a `type`, a `number`, an `operator` or any `arg` must stand."""
        if tree.data == "name":
            return self._attr_name(str(tree.children[0]), kind, self.span(tree))
        if kind == "type" and tree.data == "function" and tree.children[0] == "dtype":
            found = self._call("dtype", tree)
            assert isinstance(found, Function)
            return found
        if kind in ("number", "arg"):
            formula = self.formula(tree)
            if isinstance(formula, Number | Operation | Function):
                return formula
        self._wrong_attr(kind, self.span(tree))
        return Number(0, self.span(tree))

    def _attr_name(self, name: str, kind: str, span: Span) -> Attr:
        sort = self.sort(name)
        if sort is not None:
            return self._attr_known(name, sort, kind, span)
        dtype = type_named(name)
        if dtype is not None and kind in ("type", "arg"):
            if dtype.lanes > 1:
                self.report.error("E022", f"here stands the type of one lane: `{dtype.scalar}`", span)
            return TypeName(dtype, span)
        if name in SCALAR and kind in ("operator", "arg"):
            return SCALAR[name]
        if dtype is not None or name in SCALAR:
            self._wrong_attr(kind, span)
        else:
            self._unknown_attr(name, kind, span)
        return Number(0, span)

    def _unknown_attr(self, name: str, kind: str, span: Span) -> None:
        code, what, known = _UNKNOWN.get(kind, ("E010", "name", ()))
        hint = did_you_mean(name, [*known, *self.scope.visible()])
        self.report.error(code, f"unknown {what} `{name}`", span, hint or "declare it with `args`")

    def _attr_known(self, name: str, sort: Sort, kind: str, span: Span) -> Attr:
        self.require_bound(name, span)
        value = self.scope.parameters.get(name)
        if sort is Sort.OPERATOR and kind in ("operator", "arg") and isinstance(value, Op):
            return value
        if sort is Sort.NUMBER and kind in ("number", "arg"):
            local = name in self.scope.counters
            return Number(value, span) if isinstance(value, int) and not local else Name(name, span)
        if sort is Sort.TYPE and kind in ("type", "arg"):
            return Var(name, VarKind.TYPE, span)
        if sort is Sort.ARG:
            return Var(name, VarKind.ARG, span)
        if sort is Sort.NODE and kind == "arg":
            return Var(name, VarKind.ANY, span)
        self._wrong_attr(kind, span)
        return Number(0, span)

    def _wrong_attr(self, kind: str, span: Span) -> None:
        wanted = {
            "type": "a type",
            "number": "a number",
            "operator": "an operator",
        }.get(kind, "a name or a number")
        self.report.error("E022", f"in these brackets stands {wanted}", span)


_WANTED: dict[Argument, str] = {
    "node": "a name that stands for an expression", "nodes": "a name that stands for one or several expressions",
    "type": "a type", "type or node": "a type or a name", "text": "a string", "operator": "the name of an operator",
    "value": "a value",
}  # fmt: skip


_UNKNOWN: dict[str, tuple[str, str, Iterable[str]]] = {
    "type": ("E014", "type", TYPE_NAMES),
    "operator": ("E011", "operator", SCALAR),
}


def substitute(formula: Formula, args: Mapping[str, Formula]) -> Formula:
    """A formula with others in the place of its names; `x in a..b` of a number becomes two comparisons."""
    match formula:
        case Name():
            return args.get(formula.name, formula)
        case Operation() | Logic():
            return replace(formula, args=tuple(substitute(part, args) for part in formula.args))
        case Function():
            means = None if formula.means is None else substitute(formula.means, args)
            return replace(formula, args=tuple(substitute(part, args) for part in formula.args), means=means)
        case InRange():
            value, low, high = (substitute(part, args) for part in (formula.value, formula.low, formula.high))
            if isinstance(value, Name):
                return InRange(value, low, high, formula.span)
            above = Operation(ops.LE, (low, value), (), formula.span)
            return Logic("and", (above, Operation(ops.LT, (value, high), (), formula.span)), formula.span)
        case _:
            return formula


def counted(count: int, noun: str) -> str:
    """`1 operand`, `2 operands`."""
    return f"{count} {noun}{'s' * (count != 1)}"
