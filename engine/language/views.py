"""Views: a named shape of expression, `view affine(b, k) of b + k`, put in the place where a rule applies it.

A constant of the view beside an operator with a neutral value may be absent: `affine(x, c)` on a left side matches
`x + c`, and then plain `x` with `c` = 0. A rule that uses views is one instance for each such choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..ops import Op
from .grammar import Node, first_token, nodes
from .syntax import Apply, Literal, Span, Term, Var, VarKind

Dropped = Mapping[str, int]
"""Which constants of a view are absent, with the neutral value that they then have."""

NEUTRAL: dict[str, int] = {"add": 0, "sub": 0, "or": 0, "xor": 0, "shl": 0, "shr": 0, "mul": 1, "floordiv": 1}
"""The right operand with which an operator gives back its left one."""


@dataclass(frozen=True, slots=True)
class View:
    parameters: tuple[str, ...]
    term: Term
    span: Span

    def choices(self) -> list[Dropped]:
        """Which constants may be absent, none first."""
        found: list[Dropped] = [{}]
        for name, value in self._neutral(self.term).items():
            found += [{**one, name: value} for one in found]
        return found

    def _neutral(self, term: Term) -> dict[str, int]:
        if not isinstance(term, Apply):
            return {}
        found: dict[str, int] = {}
        for arg in term.args:
            found |= self._neutral(arg)
        constant = _dropped_operand(term, self.parameters)
        if constant is not None:
            found[constant] = NEUTRAL[term.op.name]
        return found

    def applied(self, args: Mapping[str, Term], dropped: Dropped, span: Span) -> Term:
        """The view's term with these arguments, without the constants that are absent."""
        return _put(self.term, args, dropped, span)


def _dropped_operand(term: Apply, names: tuple[str, ...]) -> str | None:
    """The constant on the right of an operator that has a neutral value."""
    if term.op.name not in NEUTRAL or len(term.args) != 2:
        return None
    right = term.args[1]
    return right.name if isinstance(right, Var) and right.kind is VarKind.CONST and right.name in names else None


def _put(term: Term, args: Mapping[str, Term], dropped: Dropped, span: Span) -> Term:
    """Recurses as deep as the view's own text."""
    if isinstance(term, Var):
        return args[term.name]
    if isinstance(term, Apply):
        constant = _dropped_operand(term, tuple(args))
        if constant in dropped:
            return _put(term.args[0], args, dropped, span)
        return replace(term, args=tuple(_put(arg, args, dropped, span) for arg in term.args), span=span)
    return replace(term, span=span)


def is_view_term(term: Term) -> bool:
    """Whether a view can be this: operators on names and literals."""
    if isinstance(term, Apply):
        return all(isinstance(attr, Op) or not isinstance(attr, Var) for attr in term.attrs) and all(
            is_view_term(arg) for arg in term.args
        )
    return isinstance(term, Var | Literal)


def uses_in(tree: Node, views: Mapping[str, View]) -> list[Node]:
    """The places in a left side that apply a view, in the order in which they are read."""
    found: list[Node] = []
    stack = [tree]
    while stack:
        here = stack.pop()
        if here.data == "call" and str(nodes(here)[0].children[0]) in views:
            found.append(here)
        stack.extend(reversed(nodes(here)))
    return found


def operands_of(call: Node) -> list[Node]:
    return next((nodes(part) for part in nodes(call) if part.data == "operands"), [])


def constant_operand(tree: Node) -> str | int | None:
    """What stands for a constant of a view: a name, a number, or something else (None)."""
    if tree.data == "name":
        return str(tree.children[0])
    if tree.data == "literal" and first_token(tree).type == "INT":
        return int(str(first_token(tree)), 0)
    return "_" if tree.data == "wildcard" else None
