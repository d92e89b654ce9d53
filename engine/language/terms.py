"""Reads terms: the two sides of a rule, what `let` names, and the expressions of its tests."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from lark import Token

from .. import ops
from ..ops import Op
from .builtins import BUILTINS
from .diagnostics import Report, did_you_mean
from .formulas import FormulaReader, Sort, counted
from .grammar import Node, first_token, nodes
from .modules import Statement
from .names import BRACKETS, CALLABLE, INFIX, OPERANDS, Scope, number, type_named
from .syntax import (
    Apply,
    Attr,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Formula,
    Function,
    InRange,
    Lanes,
    Literal,
    Logic,
    Name,
    Number,
    Operation,
    Pack,
    Share,
    Span,
    Term,
    TypeName,
    Var,
    VarKind,
    Wildcard,
)
from .views import View


class Side(Enum):
    """Where a term stands: what may stand in it differs."""

    LEFT = "the left side"
    RIGHT = "the right side"
    CASE = "a test"


class TermReader:
    """Turns the trees of terms into syntax, in the scope of one rule."""

    def __init__(self, statement: Statement, scope: Scope, report: Report, side: Side) -> None:
        self.statement, self.scope, self.report, self.side = (
            statement,
            scope,
            report,
            side,
        )
        self.formulas = FormulaReader(statement, scope, report)

    def span(self, part: Node | Token) -> Span:
        return self.statement.span(part)

    def term(self, tree: Node) -> Term:
        """The term that a tree says; a wildcard in place of what is wrong."""
        span = self.span(tree)
        match tree.data:
            case "name":
                return self._name(str(tree.children[0]), span)
            case "literal":
                return Literal(number(first_token(tree)), span)
            case "infix":
                return self._infix(tree)
            case "prefix":
                return self._prefix(tree)
            case "wildcard":
                self._only(Side.LEFT, "`_`", span)
                return Wildcard(span)
            case "bind":
                return self._bind(tree)
            case "call":
                return self._call(tree)
            case "chain":
                return self._chain(tree)
            case "vec":
                return Lanes(tuple(self._element(part) for part in nodes(tree)), span)
            case "compute":
                return self._compute(tree)
            case _:
                return self._pack(tree)

    # --- names -------------------------------------------------------------------------------------------------------

    def _name(self, name: str, span: Span) -> Term:
        if name in self.scope.counters:
            return Compute(Name(name, span), span)
        if self.scope.free:
            return Var(name, VarKind.ANY, span)
        sort = self.formulas.sort(name)
        match sort:
            case None:
                self._unknown(name, span)
            case Sort.NODES:
                if self.side is Side.RIGHT and not self.in_pack:
                    self.report.error(
                        "E042",
                        f"`{name}` stands for several expressions",
                        span,
                        f"write `...{name}`",
                    )
                return self._variable(name, span)
            case Sort.NODE:
                return self._variable(name, span)
            case Sort.NUMBER if self.scope.kind(name) is VarKind.CONST and name not in self.scope.numbers:
                return self._variable(name, span)
            case Sort.NUMBER:
                value = self.scope.parameters.get(name)
                return Literal(value, span) if isinstance(value, int) else Compute(Name(name, span), span)
            case Sort.OPERATOR:
                self.report.error(
                    "E042",
                    f"`{name}` is an operator",
                    span,
                    f"apply it: `{name}(x, y)`",
                )
            case _:
                hint = f"write `{{{name}}}` for its value" if sort is Sort.ARG and self.side is Side.RIGHT else None
                self.report.error(
                    "E042",
                    f"`{name}` is {sort.value}, it cannot stand for an expression",
                    span,
                    hint,
                )
        return Wildcard(span)

    def _variable(self, name: str, span: Span) -> Term:
        if self.side is Side.RIGHT:
            self.formulas.require_bound(name, span)
        return Var(name, self.scope.kind(name) or VarKind.ANY, span)

    def _unknown(self, name: str, span: Span) -> None:
        if type_named(name) is not None or name in CALLABLE:
            what = "a type" if type_named(name) is not None else "an operator"
            self.report.error("E042", f"`{name}` is {what}, it cannot stand for an expression", span)
        else:
            self.formulas.unknown(name, span)

    in_pack = False  # whether the term stands after `...`

    def _only(self, side: Side, form: str, span: Span, hint: str | None = None) -> bool:
        """Reports a form that may stand on one side only."""
        if self.side is not side:
            self.report.error("E041", f"{form} can only stand on {side.value}", span, hint)
        return self.side is side

    # --- operators ---------------------------------------------------------------------------------------------------

    def _infix(self, tree: Node) -> Term:
        """Long sums lean to the left: they are read in a loop."""
        spine = []
        while tree.data == "infix":
            spine.append(tree)
            left = tree.children[0]
            assert not isinstance(left, Token)
            tree = left
        result = self.term(tree)
        for node in reversed(spine):
            right = node.children[2]
            assert not isinstance(right, Token)
            result = Apply(
                INFIX[str(node.children[1])],
                (),
                (result, self.term(right)),
                self.span(node),
            )
        return result

    def _prefix(self, tree: Node) -> Term:
        sign, operand = tree.children
        assert not isinstance(operand, Token)
        if sign == "-" and operand.data == "literal" and operand.children[0] not in ("true", "false"):
            return Literal(-number(first_token(operand)), self.span(tree))
        return Apply(
            ops.NEG if sign == "-" else ops.NOT,
            (),
            (self.term(operand),),
            self.span(tree),
        )

    def _operator(self, tree: Node) -> Op | None:
        """The operator that a call or a chain names."""
        name, span = str(tree.children[0]), self.span(tree)
        value = self.scope.parameters.get(name)
        if value is not None:
            if isinstance(value, Op):
                return value
            self.report.error("E042", f"`{name}` is a number, not an operator", span)
            return None
        op = CALLABLE.get(name)
        if op is None:
            self._unknown_operator(name, span)
        return op

    def _unknown_operator(self, name: str, span: Span) -> None:
        hint: str | None
        if name in BUILTINS or name in self.scope.module.externs:
            hint = f"`{name}` is a function of formulas: it stands in a guard or inside `{{…}}`"
        elif name == "const":
            hint = "a constant is matched by a name declared with `consts`, and made by `{…}` or a literal"
        else:
            hint = did_you_mean(name, [*CALLABLE, *self.scope.parameters, *self.scope.module.views])
        self.report.error("E011", f"unknown operator `{name}`", span, hint)

    def _call(self, tree: Node) -> Term:
        span, parts = self.span(tree), nodes(tree)
        operands = next((nodes(part) for part in parts if part.data == "operands"), [])
        brackets = next((part for part in parts if part.data == "brackets"), None)
        view = self.scope.module.views.get(str(parts[0].children[0]))
        if view is not None:
            return self._view(view, tree, operands)
        dtype = type_named(str(parts[0].children[0]))
        if dtype is not None and str(parts[0].children[0]) not in self.scope.parameters:
            return self._typed_literal(TypeName(dtype, self.span(parts[0])), operands, span)
        op = self._operator(parts[0])
        if op is None:
            for operand in operands:
                self.term(operand)
            return Wildcard(span)
        args = tuple(self.term(operand) for operand in operands)
        self._check_packs(args)
        self._check_count(op, args, span)
        return Apply(op, self._brackets(op, brackets, span), args, span)

    def _view(self, view: View, tree: Node, operands: list[Node]) -> Term:
        """A view's term in the place of its call."""
        span = self.span(tree)
        if len(operands) != len(view.parameters):
            wanted = counted(len(view.parameters), "operand")
            name = nodes(tree)[0].children[0]
            self.report.error("E020", f"the view `{name}` takes {wanted}, got {len(operands)}", span)
        if self.side is Side.LEFT:
            dropped = self.scope.views.pop(0) if self.scope.views else {}
        args = dict(zip(view.parameters, (self.term(operand) for operand in operands), strict=False))
        if self.side is not Side.LEFT:
            neutral = {name: value for choice in view.choices() for name, value in choice.items()}
            dropped = {name: value for name, value in neutral.items() if _is_literal(args.get(name), value)}
        return view.applied(args, dropped, span) if len(args) == len(view.parameters) else Wildcard(span)

    def _typed_literal(self, dtype: TypeName, operands: list[Node], span: Span) -> Term:
        """`int32(5)`: a constant whose type nothing else says; the same as `{cast[int32](5)}`."""
        literal = self.term(operands[0]) if len(operands) == 1 else None
        if not isinstance(literal, Literal):
            self.report.error("E025", f"`{dtype.dtype}(…)` takes one literal", span,
                              f"a conversion is written `cast[{dtype.dtype.scalar}](x)`")  # fmt: skip
            return Wildcard(span)
        if self.side is Side.LEFT:
            self._only(
                Side.RIGHT,
                "a literal with a type",
                span,
                "write the literal alone; `on` says the type",
            )
        value = Number(literal.value, literal.span)
        return Compute(Operation(ops.CAST, (value,), (dtype,), span), span)

    def _check_packs(self, args: tuple[Term, ...]) -> None:
        if self.side is not Side.LEFT:
            return
        for arg in args[:-1]:
            if isinstance(arg, Pack):
                self.report.error("E041", "on the left side `...` stands last", arg.span)

    def _check_count(self, op: Op, args: tuple[Term, ...], span: Span) -> None:
        low, high = (op.arity, op.arity) if op.arity is not None else OPERANDS[op.name]
        count = sum(not isinstance(arg, Pack) for arg in args)
        has_pack = count < len(args)
        if (count >= low or has_pack) and (high is None or count <= high):
            if op is not ops.LOAD or has_pack or count != 3:
                return
            self.report.error("E020", "`load` takes a buffer and an index, and for a gate also the gate and the "
                              "alternative; got 3 operands", span)  # fmt: skip
            return
        if high is None:
            wanted = f"at least {counted(low, 'operand')}"
        else:
            wanted = counted(low, "operand") if low == high else f"{low} or {high} operands"
        self.report.error("E020", f"`{op.name}` takes {wanted}, got {count}", span)

    def _brackets(self, op: Op, brackets: Node | None, span: Span) -> tuple[Attr, ...]:
        kinds, needed = BRACKETS.get(op.name, ((), 0))
        given = [] if brackets is None else nodes(brackets)
        if len(given) > len(kinds):
            assert brackets is not None
            some = (
                f"`{op.name}` takes {counted(len(kinds), 'thing')} in brackets"
                if kinds
                else f"`{op.name}` takes no brackets"
            )
            self.report.error("E022", some, self.span(brackets))
        elif self.side is not Side.LEFT and len(given) < needed:
            example = {"type": "float32", "number": "4", "operator": "add", "arg": "a"}
            shape = ", ".join(example[kind] for kind in kinds[:needed])
            self.report.error(
                "E021",
                f"`{op.name}` needs {_a(kinds[len(given)])} in brackets",
                span,
                f"`{op.name}[{shape}](…)`",
            )
        return tuple(self.formulas.attr(part, kind) for part, kind in zip(given, kinds, strict=False))

    # --- forms of the left side --------------------------------------------------------------------------------------

    def _bind(self, tree: Node) -> Term:
        name, span = str(tree.children[0]), self.span(tree)
        inner = tree.children[1]
        assert not isinstance(inner, Token)
        if self._only(Side.LEFT, f"`{name}@…`", span):
            if name in self.scope.nodes:
                self.report.error(
                    "E052",
                    f"`{name}` already names something else",
                    self.span(first_token(tree)),
                )
            self.scope.kind(name)
            self.scope.nodes.add(name)
        return Bind(name, self.term(inner), span)

    def _chain(self, tree: Node) -> Term:
        span, (operator, chained) = self.span(tree), nodes(tree)
        op = self._operator(operator)
        if op is not None and not op.associative:
            self.report.error(
                "E025",
                f"`{op.name}` is not associative, it makes no chains",
                self.span(operator),
            )
        parts = nodes(chained)
        if self.side is Side.RIGHT and len(parts) == 1 and _is_sorted(parts[0]):
            return self._sorted(op, parts[0], span)
        self._only(Side.LEFT, "a chain", span, "apply the operator: `add(x, y)`, or sort: `add{...sorted(xs)}`")
        terms = tuple(self.term(part) for part in parts if part.data != "pack")
        shares = tuple(self._share(part) for part in parts if part.data == "pack" and len(nodes(part)) > 1)
        rests = [part for part in parts if part.data == "pack" and len(nodes(part)) == 1]
        rest = self._rest(rests, parts) if rests else None
        return Chain(op, terms, rest, span, shares) if op is not None else Wildcard(span)

    def _sorted(self, op: Op | None, pack: Node, span: Span) -> Term:
        """`add{...sorted(xs)}` on the right."""
        (operand,) = nodes(next(part for part in nodes(nodes(pack)[0]) if part.data == "operands"))
        named = self.term(operand)
        if op is None or not isinstance(named, Var) or named.kind is not VarKind.ANY:
            self.report.error("E041", "`sorted` takes the name of a chain's rest", self.span(operand))
            return Wildcard(span)
        return Chain(op, (), named, span)

    def _share(self, pack: Node) -> Share:
        """`...xs when guard` of a chain."""
        named, guard = nodes(pack)
        name = self.term(named)
        if not isinstance(name, Var) or name.kind is not VarKind.ANY:
            self.report.error("E041", "before `when` stands a name declared with `vars`", self.span(named))
            name = Var("_", VarKind.ANY, self.span(named))
        return Share(name, self.formulas.formula(guard), self.span(pack))

    def _rest(self, rests: list[Node], parts: list[Node]) -> Var | None:
        """`...rest` of a chain: one name, for the combination of the other terms."""
        if len(rests) > 1 or rests[0] is not parts[-1]:
            self.report.error(
                "E041",
                "the rest of a chain stands once, at the end",
                self.span(rests[0]),
            )
        named = self.term(nodes(rests[-1])[0])
        if isinstance(named, Var) and named.kind is VarKind.ANY:
            return named
        self.report.error(
            "E041",
            "the rest of a chain is a name declared with `vars`",
            self.span(rests[-1]),
        )
        return None

    # --- several operands, lanes -------------------------------------------------------------------------------------

    def _pack(self, tree: Node) -> Term:
        span, inner = self.span(tree), nodes(tree)[0]
        if len(nodes(tree)) > 1:
            self.report.error("E041", "`...xs when …` can only stand in a chain", span, "as in `add{...xs when …}`")
        if self.side is Side.LEFT:
            named = self.term(inner)
            if isinstance(named, Var) and named.kind is VarKind.ANY:
                self.scope.packs.add(named.name)
            elif not isinstance(named, Wildcard):
                self.report.error(
                    "E041",
                    "on the left side `...` takes a name declared with `vars`",
                    span,
                )
            return Pack(named, span)
        before, self.in_pack = self.in_pack, True
        term = self.term(inner)
        self.in_pack = before
        if self.scope.free:
            self.report.error("E041", "`...` cannot stand in a test: write the operands", span)
        elif not any(isinstance(part, Var) and part.name in self.scope.packs for part in walk(term)):
            self.report.error("E041", "after `...` no name stands for several expressions", span)
        return Pack(term, span)

    def _element(self, tree: Node) -> Term:
        if tree.data != "comprehension":
            return self.term(tree)
        (inner, low_tree, high_tree), counter = nodes(tree), tree.children[1]
        low = self.formulas.formula(low_tree)
        high = self._count(high_tree)
        self.scope.counters.append(str(counter))
        term = self.term(inner)
        self.scope.counters.pop()
        return Comprehension(term, str(counter), low, high, self.span(tree))

    def _count(self, tree: Node) -> Formula:
        """The end of a comprehension: on the left side an undeclared name is bound to the number of lanes."""
        if self.side is Side.LEFT and tree.data == "name":
            name = str(tree.children[0])
            if self.formulas.sort(name) in (None, Sort.ARG):
                self.scope.numbers.add(name)
        return self.formulas.formula(tree)

    def _compute(self, tree: Node) -> Term:
        span = self.span(tree)
        formula = self.formulas.formula(nodes(tree)[0])
        if self.side is Side.LEFT and not self._is_number(formula):
            self.report.error("E041", "on the left side `{…}` can only hold numbers, parameters and lane counters", span,
                              "give the constant a name and compare it in `when`")  # fmt: skip
        return Compute(formula, span)

    def _is_number(self, formula: Formula) -> bool:
        match formula:
            case Number():
                return True
            case Name():
                return formula.name in self.scope.counters or formula.name in self.scope.numbers
            case Operation():
                return all(self._is_number(part) for part in formula.args)
            case _:
                return False


def _is_literal(term: Term | None, value: int) -> bool:
    return isinstance(term, Literal) and type(term.value) is int and term.value == value


def _is_sorted(pack: Node) -> bool:
    """Whether this is `...sorted(xs)`."""
    call = nodes(pack)[0] if pack.data == "pack" else pack
    name = nodes(call)[0].children[0] if call.data == "call" else None
    operands = [nodes(part) for part in nodes(call) if part.data == "operands"]
    return name == "sorted" and len(operands) == 1 and len(operands[0]) == 1


def _a(kind: str) -> str:
    return {"type": "a type", "number": "a number", "operator": "an operator"}.get(kind, "a name")


def walk(term: Term) -> Iterator[Term]:
    """A term and all terms in it, from the outside in, left to right."""
    stack: list[Term] = [term]
    while stack:
        here = stack.pop()
        yield here
        match here:
            case Apply():
                stack.extend(reversed(here.args))
            case Bind() | Pack() | Comprehension():
                stack.append(here.term)
            case Lanes():
                stack.extend(reversed(here.elements))
            case Chain():
                stack.extend(reversed([*here.terms, *chain_names(here)]))


def chain_names(chain: Chain) -> list[Var]:
    """The names of a chain that stand for several of its terms, combined."""
    return [*(share.name for share in chain.shares), *([chain.rest] if chain.rest is not None else [])]


def bound_names(term: Term) -> set[str]:
    """The names that have a value after `term` matched, as a left side."""
    names: set[str] = set()
    counters: set[str] = set()
    for part in walk(term):
        match part:
            case Var():
                names.add(part.name)
            case Bind():
                names.add(part.name)
            case Comprehension():
                counters.add(part.counter)
                names.update(name.name for name in formula_names(part.high))
            case Apply():
                names.update(attr.name for attr in part.attrs if isinstance(attr, Var | Name))
    return names - counters


def formula_names(formula: Formula) -> Iterator[Name]:
    """Every name in a formula."""
    stack: list[Formula] = [formula]
    while stack:
        here = stack.pop()
        match here:
            case Name():
                yield here
            case Operation() | Function() | Logic():
                stack.extend(reversed(here.args))
            case InRange():
                stack.extend((here.high, here.low, here.value))
