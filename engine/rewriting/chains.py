"""Chains at run time: `a + b + …` as its list of terms, patterns matched over that list, the canonical order.

A chain is a node of an associative and commutative operator with all nodes of the same operator below it. Nothing is
copied when it is not asked for: the terms are read off the nodes, and `combined` makes nodes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import lt

from .. import ops
from ..dtypes import DType
from ..ops import Op
from ..order import in_order, sort_key
from ..uop import UOp, const, intern
from .support import NO_VALUE

Values = tuple[object, ...]
"""What the names of a term pattern stand for."""

TermMatcher = Callable[[UOp], "Values | None"]
"""The compiled pattern of one term, alone."""


def may_chain(op: Op, dtype: DType, flags: frozenset[str]) -> bool:
    """Whether terms may change places: adding and multiplying floats in another order changes the rounding."""
    return op not in (ops.ADD, ops.MUL) or not dtype.is_float or "reassoc" in flags


def terms_of(op: Op, node: UOp) -> tuple[UOp, ...]:
    """The terms of a chain from left to right; a node of another operator is its own only term.

    A part that is used twice within the chain is a term, so the terms are never more than the nodes.
    """
    if node.op is not op:
        return (node,)
    a, b = node.src
    if a.op is not op:
        if b.op is not op:
            return a, b
    elif b.op is not op and a.src[0].op is not op and a.src[1].op is not op:
        return *a.src, b
    shared = _used_twice(op, node)
    terms: list[UOp] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if part.op is op and part not in shared:
            stack += reversed(part.src)
        else:
            terms.append(part)
    return tuple(terms)


def _used_twice(op: Op, root: UOp) -> set[UOp]:
    seen: set[UOp] = set()
    twice: set[UOp] = set()
    stack = [root]
    while stack:
        for part in stack.pop().src:
            if part.op is op:
                if part in seen:
                    twice.add(part)
                else:
                    seen.add(part)
                    stack.append(part)
    return twice


def combined(op: Op, dtype: DType, terms: Sequence[UOp]) -> UOp:
    """The terms as a chain that leans to the left; of none, the operator's identity."""
    if not terms:
        assert op.identity is not None
        return const(dtype, op.identity(dtype.scalar))
    result = terms[0]
    for term in islice(terms, 1, None):
        result = intern(op, dtype, (result, term))
    return result


def others(op: Op, dtype: DType, terms: tuple[UOp, ...], used: tuple[int, ...]) -> UOp:
    """The terms at other places than those used, combined."""
    return combined(op, dtype, [term for place, term in enumerate(terms) if place not in used])


def sorted_chain(op: Op, node: UOp) -> UOp:
    """The chain with its terms in the canonical order."""
    a, b = node.src
    if (
        a.op is not op and b.op is not op and a.op is not ops.CONST
        and (b.op is ops.CONST or (a._order or sort_key(a)) < (b._order or sort_key(b)))
    ):  # fmt: skip
        return node
    terms = terms_of(op, node)
    if node.src[1].op is not op and len(terms) <= 3:  # short, and built from the left: is it in order already?
        first, *_, last = terms
        variable = terms[:-1] if last.op is ops.CONST else terms
        keys = [term._order or sort_key(term) for term in variable]
        if first.op is not ops.CONST and all(map(lt, keys, keys[1:])):
            return node
    return combined(op, node.dtype, in_order(terms))


def shared_out(
    op: Op, dtype: DType, terms: tuple[UOp, ...], used: tuple[int, ...], guards: tuple[Callable[[UOp], bool], ...],
    has_rest: bool,
) -> tuple[UOp, ...] | None:  # fmt: skip
    """The terms that are left, given out: each to the first guard that holds for it, else to the rest.

    None if one of the shares, or the rest beside them, would get nothing, or if there is no rest to take what is left.
    """
    shares: list[list[UOp]] = [[] for _ in range(len(guards) + 1)]
    for place, term in enumerate(terms):
        if place not in used:
            shares[_share(term, guards)].append(term)
    if not has_rest and shares.pop():
        return None
    if not all(shares):
        return None
    return tuple(combined(op, dtype, share) for share in shares)


def _share(term: UOp, guards: tuple[Callable[[UOp], bool], ...]) -> int:
    for number, guard in enumerate(guards):
        try:
            if guard(term):
                return number
        except NO_VALUE:
            continue
    return len(guards)


# --- matching several terms ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One more term of a pattern, found by the names that it shares with those before it."""

    position: int
    keys: tuple[int, ...]  # places of the shared names in the values of this term
    known: tuple[int, ...]  # places of the same names in the values so far
    fresh: tuple[int, ...]  # places of the other names in the values of this term


@dataclass(frozen=True, slots=True)
class Plan:
    """An order in which the terms of a pattern are found."""

    first: int
    steps: tuple[Step, ...]
    result: tuple[int, ...]  # for each name of the pattern, its place in the values found


def plan(names: tuple[tuple[str, ...], ...], first: int) -> Plan:
    """Starts with the term at `first`, then takes the others in order."""
    found = list(names[first])
    steps = []
    order = [first, *(position for position in range(len(names)) if position != first)]
    for position in order[1:]:
        own = names[position]
        keys = tuple(place for place, name in enumerate(own) if name in found)
        fresh = tuple(place for place, name in enumerate(own) if name not in found)
        steps.append(Step(position, keys, tuple(found.index(own[place]) for place in keys), fresh))
        found += [own[place] for place in fresh]
    return Plan(first, tuple(steps), tuple(found.index(name) for name in union(names)))


def union(names: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """All names of a pattern, in the order in which they first stand in it."""
    return tuple(dict.fromkeys(name for own in names for name in own))


@dataclass(slots=True)
class ChainPattern:
    """The named terms of a chain pattern: for each its compiled alternatives, and the names that they bind."""

    op: Op
    matchers: tuple[tuple[TermMatcher, ...], ...]
    names: tuple[tuple[str, ...], ...]
    plans: tuple[Plan, ...] = field(init=False)  # one for each term to begin with
    steps: tuple[Step, ...] = field(init=False)  # of all plans, each once

    def __post_init__(self) -> None:
        self.plans = tuple(plan(self.names, first) for first in range(len(self.names)))
        self.steps = tuple(dict.fromkeys(step for chosen in self.plans for step in chosen.steps))

    def alone(self, position: int, term: UOp) -> list[Values]:
        """The ways in which a term fits a position, by itself."""
        return [values for matcher in self.matchers[position] if (values := matcher(term)) is not None]

    def matches(self, terms: tuple[UOp, ...]) -> Iterator[tuple[object, ...]]:
        """Every way to find the pattern among the terms: the places used, then the values of all names."""
        if len(terms) < len(self.names):
            return
        indexes: dict[Step, Index] = {}

        def candidates(step: Step, key: Values) -> Sequence[Candidate]:
            if step not in indexes:
                indexes[step] = self._index(step, terms)
            return indexes[step].get(key, ())

        chosen = self.plans[0]
        for place, term in enumerate(terms):
            for values in self.alone(0, term):
                for places, found in joined(chosen, place, values, candidates):
                    yield places, *[found[at] for at in chosen.result]

    def _index(self, step: Step, terms: tuple[UOp, ...]) -> Index:
        """The terms that fit a position, by the values of the names that it shares."""
        index: Index = {}
        for place, term in enumerate(terms):
            for values in self.alone(step.position, term):
                index.setdefault(tuple([values[at] for at in step.keys]), []).append((place, values))
        return index


Candidate = tuple[int, Values]
"""A term by its place, and what it binds at one position."""

Index = dict[Values, list[Candidate]]

Found = tuple[tuple[int, ...], Values]
"""The places of the terms found so far, and what they bind."""


def joined(
    chosen: Plan, place: int, values: Values, candidates: Callable[[Step, Values], Sequence[Candidate]]
) -> Iterator[Found]:
    """Every way to go on from the first term: a hash join, step by step, with backtracking."""
    partial: list[Iterator[Found]] = [iter([((place,), values)])]
    while partial:
        found = next(partial[-1], None)
        if found is None:
            partial.pop()
        elif len(partial) > len(chosen.steps):
            yield found
        else:
            step = chosen.steps[len(partial) - 1]
            key = tuple([found[1][at] for at in step.known])
            partial.append(_extensions(step, found, candidates(step, key)))


def _extensions(step: Step, found: Found, candidates: Sequence[Candidate]) -> Iterator[Found]:
    places, values = found
    for place, own in candidates:
        if place not in places:
            yield (*places, place), (*values, *[own[at] for at in step.fresh])
