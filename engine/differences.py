"""Which of two integers is the greater, proven: what both have in common cancels, and terms are weighed in cases.

`engine.facts` bounds each node by itself, so it cannot see that `max(x, y) - x` is never negative. Here a difference is
written as a sum of terms with whole coefficients. Its bound is that of the terms, or a better one where a term can be
replaced by something that it is never below (`max(a, b)` by `a`) or above (a counter by its end less 1), by both of its
cases (`where`, `min`), or, for a quotient, by a multiple of it. The search is bounded, so that the cost of a question does
not grow with the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd

from . import facts, intervals, ops
from .dtypes import index
from .intervals import Bound
from .uop import UOp

MAX_TERMS = 24
"""Sums with more terms than this are not taken apart."""

DEPTH = 3
"""How many terms are replaced in a row."""

TRIES = 40
"""How many sums are bounded for one question."""


@dataclass(slots=True)
class Sum:
    """Σ coefficient * term + constant, each term once, in the order of their first appearance."""

    constant: int = 0
    terms: dict[UOp, int] = field(default_factory=dict)

    def add(self, node: UOp, factor: int) -> bool:
        """Adds `factor * node`, taken apart; False if that makes too many terms."""
        stack = [(node, factor)]
        while stack:
            here, times = stack.pop()
            op, src = here.op, here.src
            if op is ops.CONST and isinstance(here.arg, int):
                self.constant += times * here.arg
            elif op in _LINEAR and (here.dtype is index or is_exact(here)):
                if op is ops.MUL:
                    if src[1].op is not ops.CONST or not isinstance(src[1].arg, int):
                        self._count(here, times)
                        continue
                    stack.append((src[0], times * src[1].arg))
                elif op is ops.NEG:
                    stack.append((src[0], -times))
                else:
                    stack.append((src[1], -times if op is ops.SUB else times))
                    stack.append((src[0], times))
            else:
                self._count(here, times)
            if len(self.terms) + len(stack) > MAX_TERMS:
                return False
        return True

    def _count(self, term: UOp, times: int) -> None:
        total = self.terms.get(term, 0) + times
        if total:
            self.terms[term] = total
        else:
            self.terms.pop(term, None)

    def replaced(self, term: UOp, by: UOp, constant: int = 0, divisor: int = 1) -> Sum | None:
        """`divisor` times this sum, after `divisor * term` has become `by + constant`."""
        result = Sum(self.constant * divisor, {t: c * divisor for t, c in self.terms.items() if t is not term})
        coefficient = self.terms[term]
        result.constant += coefficient * constant
        return result if result.add(by, coefficient) else None

    def low(self) -> Bound:
        """The bound that the terms' own intervals give."""
        total: Bound = self.constant
        for term, coefficient in self.terms.items():
            low, high = facts.interval(term)
            total += coefficient * (low if coefficient > 0 else high)
        return total


_LINEAR = frozenset({ops.ADD, ops.SUB, ops.MUL, ops.NEG})


def is_exact(node: UOp) -> bool:
    """Whether the node's value is that of mathematical integers: an index, or an integer that never wraps."""
    kind = node.dtype.kind
    if kind not in ("sint", "uint"):
        return kind == "index"
    facts.interval(node)  # so that those of the operands are known
    return facts.never_wraps(node)


def difference(x: UOp, y: UOp) -> Sum | None:
    """x - y as a sum; None if it has too many terms."""
    result = Sum()
    return result if result.add(x, 1) and result.add(y, -1) else None


def is_less(x: UOp, y: UOp) -> bool:
    """Whether x < y is proven for all values."""
    return _is_at_least(y, x, 1)


def is_at_most(x: UOp, y: UOp) -> bool:
    """Whether x <= y is proven for all values."""
    return _is_at_least(y, x, 0)


def _is_at_least(x: UOp, y: UOp, gap: int) -> bool:
    """Whether x - y >= gap."""
    if x.dtype.kind not in _INTEGERS:
        return False
    if facts.interval(x)[0] - facts.interval(y)[1] >= gap:
        return True
    if x.op is ops.CONST and y.op not in _COMPOUND or y.op is ops.CONST and x.op not in _COMPOUND:
        return False
    whole = difference(x, y)
    return whole is not None and _reaches(whole, gap, DEPTH, [TRIES])


_INTEGERS = frozenset({"index", "sint", "uint"})
_COMPOUND = frozenset({
    *_LINEAR, ops.MAX, ops.MIN, ops.WHERE, ops.FLOORDIV, ops.FLOORMOD, ops.RANGE, ops.SPECIAL,
})  # fmt: skip


def _reaches(form: Sum, gap: int, depth: int, tries: list[int]) -> bool:
    """Whether the sum is proven to be at least `gap`."""
    tries[0] -= 1
    if form.low() >= gap:
        return True
    if depth == 0:
        return False
    for weaker, divisor in _weaker(form):
        if tries[0] <= 0:
            return False
        if all(case is not None and _reaches(case, gap * divisor, depth - 1, tries) for case in weaker):
            return True
    return False


def _weaker(form: Sum) -> Iterator[tuple[list[Sum | None], int]]:
    """Sums all of which, if they reach the gap (times the divisor), prove that this one does."""
    for term, coefficient in form.terms.items():
        op, src = term.op, term.src
        upper = op is ops.MAX and coefficient > 0 or op is ops.MIN and coefficient < 0
        if upper:
            yield [form.replaced(term, src[0])], 1
            yield [form.replaced(term, src[1])], 1
        elif op in (ops.MAX, ops.MIN):
            yield [form.replaced(term, src[0]), form.replaced(term, src[1])], 1
        elif op is ops.WHERE and src[1].dtype.kind in _INTEGERS:
            yield [form.replaced(term, src[1]), form.replaced(term, src[2])], 1
        elif op is ops.FLOORDIV and (divisor := _positive(src[1])):
            low, high = intervals.floormod(term.dtype, facts.interval(src[0]), (divisor, divisor))
            yield [form.replaced(term, src[0], -int(high if coefficient > 0 else low), divisor)], divisor
        elif op is ops.FLOORMOD and coefficient < 0 and _positive(src[1]) and facts.interval(src[0])[0] >= 0:
            yield [form.replaced(term, src[0])], 1
        if coefficient < 0 and _stays_below(term):
            yield [form.replaced(term, src[-1], -1)], 1


def _stays_below(term: UOp) -> bool:
    """Whether it is less than its last operand, whose own bounds say less than that: a counter, or a remainder."""
    end = term.src[-1] if term.src else term
    if end.op is ops.CONST:
        return False
    return term.op in (ops.RANGE, ops.SPECIAL) or term.op is ops.FLOORMOD and facts.interval(end)[0] > 0


def _positive(node: UOp) -> int:
    """The value of a positive constant, else 0."""
    return node.arg if node.op is ops.CONST and isinstance(node.arg, int) and node.arg > 0 else 0


# --- factors ---------------------------------------------------------------------------------------------------------


def factor(node: UOp) -> int:
    """The greatest constant that can be taken out of every term of a sum of products; 0 for the constant 0."""
    found, stack = 0, [(node, 1)]
    while stack and found != 1:
        here, times = stack.pop()
        if here.op is ops.CONST and isinstance(here.arg, int):
            found = gcd(found, times * here.arg)
        elif here.op is ops.ADD:
            stack += [(operand, times) for operand in here.src]
        elif here.op is ops.MUL and here.src[1].op is ops.CONST and isinstance(here.src[1].arg, int):
            stack.append((here.src[0], times * here.src[1].arg))
        else:
            found = gcd(found, times)
    return found


def ratio(x: UOp, y: UOp) -> int:
    """The constant c with x = c * y as sums; 0 where there is none."""
    if y.op is ops.CONST:  # no sum of terms
        return 0
    a, b = Sum(), Sum()
    if not a.add(x, 1) or not b.add(y, 1) or not b.terms or a.terms.keys() != b.terms.keys():
        return 0
    first = next(iter(b.terms))
    c, left = divmod(a.terms[first], b.terms[first])
    if left or a.constant != c * b.constant:
        return 0
    return c if all(a.terms[term] == c * times for term, times in b.terms.items()) else 0


def cancels(x: UOp, times: int, rest: UOp) -> bool:
    """Whether adding `times * x` to `rest` leaves only what `rest` has beside the terms of x: each of them goes."""
    added, there = Sum(), Sum()
    if not added.add(x, times) or not there.add(rest, 1) or not added.terms:
        return False
    return all(there.terms.get(term) == -count for term, count in added.terms.items())
