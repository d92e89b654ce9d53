"""Rewriting a chain: its rules work on the list of terms until none fires, then the chain is built again, once.

The terms form a queue. Each is tried against those before it that no rule has taken yet: as every one of the named
terms of each rule, the partners found in indexes by the values of the names that they share. So two terms meet once,
and what a rule makes meets only what is there. A sum of n terms in which n pairs collapse costs n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

from ..errors import RewriteError
from ..target import Context
from ..uop import UOp
from .chains import Candidate, ChainPattern, Index, Plan, Step, Values, combined, joined, terms_of
from .compiler import Function
from .functions import Direct
from .shapes import Wanted, operator_at, shape


@dataclass(frozen=True, slots=True)
class TermRule:
    """A rule that puts terms in the place of others."""

    id: str
    pattern: ChainPattern
    function: Function  # of the values of the names
    direct: tuple[tuple[Function, Direct], ...]  # of the terms themselves
    repeats: bool  # two of the terms are one name: they must be one node


class WholeRule(NamedTuple):
    """A rule that looks at the whole chain, and the shapes of the terms that it names."""

    function: Function
    id: str
    terms: tuple[tuple[Wanted, ...], ...] = ()

    def may_fit(self, terms: tuple[UOp, ...]) -> bool:
        """Whether each of the named terms may be there."""
        return all(any(want.fits(term) for want in named for term in terms) for named in self.terms)


Attempt = tuple[Function, str, Callable[[tuple[UOp, ...]], Any], tuple[int, ...]]
"""A function of terms, its rule, what picks the terms that it is tried on, and their places."""


class Attempts(NamedTuple):
    """What can fire on a chain whose terms have certain shapes."""

    terms: tuple[Attempt, ...]
    whole: tuple[WholeRule, ...]


MOST_TERMS, MOST_ATTEMPTS = 8, 64
"""A chain with more terms, or for which there are more attempts, goes through a `ChainRun`."""


@dataclass(slots=True)
class ChainRules:
    """The rules on chains of one operator and type: first those on terms, then those that look at the whole chain."""

    terms: tuple[TermRule, ...]
    whole: tuple[WholeRule, ...]
    _attempts: dict[tuple[int, ...], Attempts | None] = field(default_factory=dict)

    def attempts(self, terms: tuple[UOp, ...]) -> Attempts | None:
        """What can fire on terms of these shapes; None if that is too much for trying it all."""
        count = len(terms)
        if count > MOST_TERMS:
            return None
        key = *[term._shape or shape(term) for term in terms], len(set(terms)) < count
        try:
            return self._attempts[key]
        except KeyError:
            on_terms = self._attempts_on(terms)
            found = None if on_terms is None else Attempts(on_terms, self._whole_on(terms))
            self._attempts[key] = found
            return found

    def _whole_on(self, terms: tuple[UOp, ...]) -> tuple[WholeRule, ...]:
        return tuple(rule for rule in self.whole if rule.may_fit(terms))

    def on_pair(self, pair: tuple[UOp, ...]) -> list[tuple[Function, str]]:
        """The same for a chain of two terms of these shapes, as functions of the node."""
        attempts = self._attempts_on(pair, shapes_only=True) or ()
        return [
            *((_of_node(attempt), attempt[1]) for attempt in attempts),
            *[rule[:2] for rule in self._whole_on(pair)],
        ]

    def _attempts_on(self, terms: tuple[UOp, ...], shapes_only: bool = False) -> tuple[Attempt, ...] | None:
        found: list[Attempt] = []
        for rule in self.terms:
            if rule.repeats and not shapes_only and len(set(terms)) == len(terms):
                continue
            for function, direct in rule.direct:
                fitting = [[at for at, term in enumerate(terms) if want.fits(term)] for want in direct.shapes]
                if prod(map(len, fitting)) > MOST_ATTEMPTS:
                    return None
                places = [chosen for chosen in product(*fitting) if len(set(chosen)) == len(chosen)]
                found += [
                    (function, rule.id, _picker(chosen), chosen) for chosen in places if _agree(direct, terms, chosen)
                ]
        return tuple(found) if len(found) <= MOST_ATTEMPTS else None

    def first(self, node: UOp, terms: tuple[UOp, ...], attempts: Attempts, context: Context) -> tuple[UOp, str] | None:
        """What the first of these attempts, else the first rule on the whole chain, makes of the node."""
        for function, rule, pick, places in attempts.terms:
            made = function(node, context, *pick(terms))
            if made is not None and not _same(pick(terms), made):
                return combined(node.op, node.dtype, _with(terms, places, made)), rule
        return self.first_whole(node, attempts.whole, context)

    def first_whole(self, node: UOp, rules: tuple[WholeRule, ...], context: Context) -> tuple[UOp, str] | None:
        """What the first of these rules on the whole chain makes of the node."""
        for function, rule, _ in rules:
            result = function(node, context)
            if result is not None and result is not node:
                return result, rule
        return None


def _agree(direct: Direct, terms: tuple[UOp, ...], chosen: tuple[int, ...]) -> bool:
    """Whether equal nodes can stand where the pattern has one name."""
    picked = [terms[at] for at in chosen]
    return all(operator_at(picked, a) is operator_at(picked, b) for a, b in direct.same)


def _of_node(attempt: Attempt) -> Function:
    """An attempt on a chain of two terms as a function of the chain."""
    function, _, pick, places = attempt

    def tried(node: UOp, context: Context) -> UOp | None:
        terms = node.src
        made = function(node, context, *pick(terms))
        if made is None or _same(pick(terms), made):
            return None
        return combined(node.op, node.dtype, _with(terms, places, made))

    return tried


def _picker(places: tuple[int, ...]) -> Callable[[tuple[UOp, ...]], Any]:
    """From the terms those at the places, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    (place,) = places
    return itemgetter(slice(place, place + 1))


def _same(before: Sequence[UOp], made: Sequence[UOp]) -> bool:
    return len(before) == len(made) and all(before.count(term) == made.count(term) for term in made)


def _with(terms: tuple[UOp, ...], places: tuple[int, ...], made: tuple[UOp, ...]) -> list[UOp]:
    """The terms, those at the places replaced: what was made stands at the first of them."""
    first = min(places)
    left = [term for at, term in enumerate(terms) if at > first and at not in places]
    return [*terms[:first], *made, *left]


Fired = Callable[[str, UOp], None]
"""Told of each firing: the rule, and one of the terms that it took."""


class ChainRun:
    """The terms of one chain while rules are applied to them."""

    def __init__(self, node: UOp, rules: ChainRules, context: Context, fired: Fired, keep_steps: bool = False) -> None:
        self.node, self.rules, self.context, self.fired = node, rules.terms, context, fired
        self.steps: list[tuple[str, UOp, UOp]] | None = [] if keep_steps else None  # rule, chain before, chain after
        self.terms: list[UOp | None] = list(terms_of(node.op, node))  # None: a rule has taken it
        self.places = list(range(len(self.terms)))  # where each term stands in the chain
        self.next = 0
        self.indexes: dict[tuple[int, Step], Index] = {}
        self.new: list[tuple[UOp, int]] = []  # made by rules and not yet simplified, with their places
        self.changed = False

    def add(self, term: UOp, place: int) -> None:
        """Puts a term, or the terms of a chain, at a place."""
        for part in terms_of(self.node.op, term):
            self.terms.append(part)
            self.places.append(place)

    def run(self, limit: int | None = None) -> None:
        """Tries the terms that wait; what rules make of them stands in `new`. At most `limit` rules fire."""
        fires = 0
        while self.next < len(self.terms) and (limit is None or fires < limit):
            number = self.next
            self.next += 1
            term = self.terms[number]
            if term is not None:
                if self._fire(number, term):
                    fires += 1
                else:
                    self._enter(number, term)

    def result(self) -> UOp:
        """The chain as it is now; the node itself where no rule fired."""
        if not self.changed:
            return self.node
        parts = [(place, term) for place, term in zip(self.places, self.terms, strict=True) if term is not None]
        parts += [(place, term) for term, place in self.new]
        parts.sort(key=itemgetter(0))
        return combined(self.node.op, self.node.dtype, [term for _, term in parts])

    def _fire(self, number: int, term: UOp) -> bool:
        """Applies the first rule that fires on this term and terms before it."""
        for position, rule in enumerate(self.rules):
            for plan in rule.pattern.plans:
                for values in rule.pattern.alone(plan.first, term):
                    if self._apply(position, rule, plan, number, values):
                        return True
        return False

    def _apply(self, position: int, rule: TermRule, plan: Plan, number: int, values: Values) -> bool:
        for used, found in joined(plan, number, values, lambda step, key: self._candidates(position, step, key)):
            made = rule.function(self.node, self.context, *[found[at] for at in plan.result])
            if made is not None and self._replace(used, made, rule.id):
                return True
        return False

    def _replace(self, used: tuple[int, ...], made: tuple[UOp, ...], rule: str) -> bool:
        """Puts the made terms where the first of those used stood; False if they are the same."""
        before = [term for number in sorted(used) if (term := self.terms[number]) is not None]
        if _same(before, made):
            return False
        if any(term.dtype is not self.node.dtype for term in made):
            raise RewriteError(f"rule {rule} put a term of another type into a chain of {self.node.dtype}: {made!r}")
        self.fired(rule, before[0])
        whole = self.result() if self.steps is not None else self.node
        place = min(self.places[number] for number in used)
        for number in used:
            self.terms[number] = None
        self.new += [(term, place) for term in made]
        self.changed = True
        if self.steps is not None:
            self.steps.append((rule, whole, self.result()))
        return True

    # --- the terms that wait for partners ----------------------------------------------------------------------------

    def _enter(self, number: int, term: UOp) -> None:
        """Makes a term known to the rules that name several."""
        for position, rule in enumerate(self.rules):
            pattern = rule.pattern
            for step in pattern.steps:
                for values in pattern.alone(step.position, term):
                    index = self.indexes.setdefault((position, step), {})
                    index.setdefault(tuple([values[at] for at in step.keys]), []).append((number, values))

    def _candidates(self, position: int, step: Step, key: Values) -> Sequence[Candidate]:
        """The terms that fit; those that a rule has taken are forgotten on the way."""
        index = self.indexes.get((position, step))
        found = index.get(key) if index is not None else None
        if found is None:
            return ()
        if any(self.terms[number] is None for number, _ in found):
            found[:] = [candidate for candidate in found if self.terms[candidate[0]] is not None]
        return tuple(found)
