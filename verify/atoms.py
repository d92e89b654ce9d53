"""What the left side of a rule leaves open: its atoms, each with the part that it plays.

An atom is a name, or a place without a name (`_`). Its role follows from where it stands: a range, a buffer, an
accumulator, a store, a constant, or any value. A value inside a reduction or a `phi` may vary with the loops and the
accumulators around it; these are its scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from ..engine import ops
from ..engine.language.syntax import (
    Apply,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Formula,
    Function,
    InRange,
    Instance,
    Lanes,
    Logic,
    Name,
    Operation,
    Pack,
    Term,
    Var,
    VarKind,
    Wildcard,
)


class Role(Enum):
    """What may be put in an atom's place."""

    VALUE = "value"
    CONSTANT = "constant"
    RANGE = "range"
    UPCAST = "upcast"  # a range whose steps are lanes
    BUFFER = "buffer"
    ACCUMULATOR = "accumulator"
    STORE = "store"
    BARRIER = "barrier"


Scope = tuple[Term, ...]
"""The ranges and accumulators that are open where an atom stands, as terms of the left side."""


@dataclass(slots=True)
class Atom:
    """One open place. A `...xs` is several nodes of one role; `holder` is the operator or vector that it stands in."""

    name: str
    role: Role
    several: bool = False
    scope: Scope = ()
    index_of: str | None = None  # the buffer that it is the index of
    holder: Term | None = None


@dataclass(slots=True)
class Pattern:
    """A left side whose open places all have names, and its guard as a list of conditions."""

    left: Term
    atoms: dict[str, Atom]
    conditions: tuple[Formula, ...]
    counts: tuple[str, ...]  # names that stand for a number of lanes: `for k in 0..n`
    shares: dict[str, Formula]  # of a chain's `...xs when guard`: what holds for each of its terms


def pattern_of(instance: Instance) -> Pattern:
    """Finds the atoms of a rule's left side."""
    left = _named(instance.left, iter(range(1, 1000)))
    finder = _Finder({name for name, _ in instance.bindings})
    finder.visit(left, ())
    conditions = tuple(conjuncts(instance.when)) if instance.when is not None else ()
    return Pattern(left, finder.atoms, conditions, tuple(finder.counts), finder.shares)


def _named(term: Term, numbers: Iterator[int]) -> Term:
    """The term with a name in place of each `_`."""
    match term:
        case Wildcard():
            return Var(f"any{next(numbers)}", VarKind.ANY, term.span)
        case Apply():
            return replace(term, args=tuple(_named(arg, numbers) for arg in term.args))
        case Bind() | Pack() | Comprehension():
            return replace(term, term=_named(term.term, numbers))
        case Lanes():
            return replace(term, elements=tuple(_named(element, numbers) for element in term.elements))
        case Chain():
            return replace(term, terms=tuple(_named(part, numbers) for part in term.terms))
        case _:
            return term


def conjuncts(formula: Formula) -> Iterator[Formula]:
    if isinstance(formula, Logic) and formula.word == "and":
        for part in formula.args:
            yield from conjuncts(part)
    else:
        yield formula


@dataclass(slots=True)
class _Finder:
    """Walks a left side, outside in, and notes what stands where."""

    numbers: set[str]
    atoms: dict[str, Atom] = field(default_factory=dict)
    counts: list[str] = field(default_factory=list)
    shares: dict[str, Formula] = field(default_factory=dict)

    def visit(self, term: Term, scope: Scope, role: Role = Role.VALUE, index_of: str | None = None) -> None:
        match term:
            case Var() if term.name not in self.numbers:
                self._note(
                    Atom(term.name, Role.CONSTANT if term.kind is VarKind.CONST else role, False, scope, index_of)
                )
            case Bind():
                self.visit(term.term, scope, role, index_of)
            case Apply():
                self._apply(term, scope)
            case Lanes():
                for element in term.elements:
                    self._element(element, term, scope, index_of)
            case Chain():
                for part in term.terms:
                    self.visit(part, scope, role)
                for share in term.shares:
                    self._note(Atom(share.name.name, Role.VALUE, True, scope, holder=term))
                    self.shares[share.name.name] = share.guard
                if term.rest is not None:
                    self._note(Atom(term.rest.name, Role.VALUE, True, scope, holder=term))
            case _:
                pass

    def _element(self, element: Term, vector: Lanes, scope: Scope, index_of: str | None) -> None:
        match element:
            case Pack():
                self._pack(element, Role.VALUE, scope, vector, index_of)
            case Comprehension():
                self.numbers.add(element.counter)
                self.visit(element.term, scope, Role.VALUE, index_of)
                self.numbers.discard(element.counter)
                if isinstance(element.high, Name) and element.high.name not in self.numbers:
                    self.counts.append(element.high.name)
                    self.numbers.add(element.high.name)
            case _:
                self.visit(element, scope, Role.VALUE, index_of)

    def _apply(self, term: Apply, scope: Scope) -> None:
        for position, arg in enumerate(term.args):
            role = _role(term.op, position)
            inner = scope + _opened(term, position)
            at = term.args[0] if term.op in (ops.LOAD, ops.STORE) and position == 1 else None
            if isinstance(arg, Pack):
                self._pack(arg, role, scope, term, None)
            elif term.op in (ops.LOAD, ops.STORE) and position == 1 and isinstance(at, Var):
                self.visit(arg, inner, role, at.name)
            elif term.op in (ops.ADD, ops.MUL) and role is Role.VALUE:
                self.visit(arg, inner, role)
            else:
                self.visit(arg, inner, role)

    def _pack(self, pack: Pack, role: Role, scope: Scope, holder: Term, index_of: str | None) -> None:
        if isinstance(pack.term, Var):
            self._note(Atom(pack.term.name, role, True, scope, index_of, holder))

    def _note(self, atom: Atom) -> None:
        """A name at several places has the most special of its roles, and what is open at all of them."""
        known = self.atoms.get(atom.name)
        if known is None:
            self.atoms[atom.name] = atom
            return
        if known.role in (Role.VALUE, Role.RANGE) and atom.role is not Role.VALUE:
            known.role = atom.role
        known.several = known.several or atom.several
        known.index_of = known.index_of or atom.index_of
        open_here = [_key(term) for term in atom.scope]
        known.scope = tuple(term for term in known.scope if _key(term) in open_here)


def _role(op: ops.Op, position: int) -> Role:
    match op:
        case ops.LOAD | ops.STORE | ops.AFTER if position == 0:
            return Role.BUFFER
        case ops.AFTER:
            return Role.BARRIER
        case ops.REDUCE | ops.DEFINE_ACC if position > 0:
            return Role.RANGE
        case ops.WIDEN if position > 0:
            return Role.UPCAST
        case ops.PHI if position == 0:
            return Role.ACCUMULATOR
        case ops.SINK | ops.BARRIER:
            return Role.STORE
        case _:
            return Role.VALUE


def _opened(term: Apply, position: int) -> Scope:
    """What an operator opens for its operand at a position."""
    if term.op in (ops.REDUCE, ops.WIDEN) and position == 0:
        return term.args[1:]
    if term.op is ops.PHI and position == 1:
        accumulator = term.args[0]
        while isinstance(accumulator, Bind):
            accumulator = accumulator.term
        return (term.args[0], *(accumulator.args[1:] if isinstance(accumulator, Apply) else ()))
    return ()


def _key(term: Term) -> object:
    """The same for the same name at two places."""
    while isinstance(term, Bind | Pack):
        term = term.term
    return term.name if isinstance(term, Var) else id(term)


def names_in(formula: Formula) -> frozenset[str]:
    """The names that a formula mentions."""
    found: set[str] = set()
    stack: list[object] = [formula]
    while stack:
        here = stack.pop()
        match here:
            case Name():
                found.add(here.name)
            case Operation():
                stack += [*here.args, *here.attrs]
            case Function() | Logic():
                stack += here.args
            case InRange():
                stack += [here.value, here.low, here.high]
            case Var():
                found.add(here.name)
    return frozenset(found)


def names_below(term: Term) -> frozenset[str]:
    """The names that stand in a term."""
    found: set[str] = set()
    stack: list[Term] = [term]
    while stack:
        here = stack.pop()
        match here:
            case Var():
                found.add(here.name)
            case Apply():
                stack += here.args
            case Bind() | Pack() | Comprehension():
                stack.append(here.term)
            case Lanes():
                stack += here.elements
            case Chain():
                stack += [*here.terms, *(share.name for share in here.shares)]
                stack += [here.rest] if here.rest is not None else []
            case Compute():
                pass
    return frozenset(found)
