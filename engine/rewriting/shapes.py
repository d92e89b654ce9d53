"""The shape of a node: its operator and those of its operands, as one small number to look rules up by.

What a pattern asks of a node's shape is a `Wanted`. A rule whose wanted shapes do not fit is never tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import ops
from ..language.syntax import Apply, Bind, Chain, Lanes, Literal, Pack, Term, Var, VarKind
from ..ops import Op
from ..uop import UOp

DEPTH = 3
"""How many operands the shape of a node shows."""

_numbers: dict[tuple[object, ...], int] = {}


def shape(node: UOp) -> int:
    """The number of the node's shape: equal for nodes that patterns cannot tell apart by operators and by 0 and 1."""
    found = node._shape
    if found is None:
        src = node.src
        if len(src) == 2:
            key: tuple[object, ...] = (node.op, src[0].op, src[1].op)
        elif node.op is ops.CONST:
            key = (node.op, unit(node.arg))
        else:
            key = (node.op, *[s.op for s in src[:DEPTH]])
        found = node._shape = _numbers.setdefault(key, len(_numbers) + 1)
    return found


def unit(value: object) -> str:
    """`0`, `-0` and `1` for the constants that rules single out, else nothing."""
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    return "1" if value == 1 else ""


class Wanted(NamedTuple):
    """What a pattern asks of a node; the empty text asks nothing."""

    op: str = ""
    unit: str = ""  # of a constant
    operands: tuple[str, ...] = ()  # the operators of the first operands
    chain: str = ""  # the operator of a chain that is asked for; a node of another is its own only term
    terms: tuple[str, ...] = ()  # the operators of the terms that the chain names
    least: int = 0  # how many terms the chain has at least

    def fits(self, node: UOp) -> bool:
        if self.op and self.op != node.op.name:
            return False
        if self.unit and self.unit != unit(node.arg):
            return False
        if self.chain and not self._fits_chain(node):
            return False
        return all(op in ("", s.op.name) for op, s in zip(self.operands, node.src, strict=False))

    def _fits_chain(self, node: UOp) -> bool:
        """Whether the node may be such a chain: what more than two terms are its shape does not show."""
        parts = node.src if node.op.name == self.chain else (node,)
        there = {part.op.name for part in parts}
        if len(parts) > 1 and self.chain in there:
            return True
        return self.least <= len(parts) and all(op in there for op in self.terms if op)


def wanted(term: Term) -> Wanted:
    """What a pattern asks of the shape of a node that it matches."""
    while isinstance(term, Bind):
        term = term.term
    if isinstance(term, Chain):
        least = len(term.terms) + len(term.shares) + bool(term.shares and term.rest is not None)
        return Wanted(chain=term.op.name, terms=tuple(_name(root_operator(one)) for one in term.terms), least=least)
    op = root_operator(term)
    if isinstance(term, Literal):
        return Wanted("const", unit(term.value))
    fixed = [arg for arg in term.args if not isinstance(arg, Pack)] if isinstance(term, Apply) else []
    return Wanted(_name(op), "", tuple(_name(root_operator(arg)) for arg in fixed[:DEPTH]))


Place = tuple[int, int]
"""Of several terms the number of one, and of its operand; -1: the term itself."""


def shared_places(terms: Sequence[Term]) -> tuple[tuple[Place, Place], ...]:
    """Pairs of places in these patterns where one name stands: the nodes there must have one operator."""
    first: dict[str, Place] = {}
    pairs = []
    for number, term in enumerate(terms):
        parts = [(-1, term), *(enumerate(term.args) if isinstance(term, Apply) else ())]
        for operand, part in parts:
            if isinstance(part, Var) and operand < DEPTH:
                place = first.setdefault(part.name, (number, operand))
                if place != (number, operand):
                    pairs.append((place, (number, operand)))
    return tuple(pairs)


def operator_at(terms: Sequence[UOp], place: Place) -> Op:
    """The operator of the node at a place."""
    number, operand = place
    return (terms[number] if operand < 0 else terms[number].src[operand]).op


def _name(op: Op | None) -> str:
    return op.name if op is not None else ""


def root_operator(term: Term) -> Op | None:
    """The operator that a node must have at this place; None where any will do."""
    match term:
        case Apply():
            return term.op
        case Lanes():
            return ops.VECTORIZE
        case Literal():
            return ops.CONST
        case Var():
            return ops.CONST if term.kind is VarKind.CONST else None
        case Bind():
            return root_operator(term.term)
        case _:
            return None
