"""`under(p, x)` in a rule: x simplified, knowing that p holds.

A normal form under a condition is another normal form. So what the condition bounds is replaced by a fresh variable
that has the narrower facts (`engine.ops.Narrowed`), the expression is brought to its normal form by the same rules, and
the variables are replaced by what they stand for. All memos stay valid, since the narrowed expression is another
expression. The result is taken only where it costs less than before, so that a rule with `under` always comes to an end,
and where it evaluates nothing that may have no value besides what x evaluates: it may stand where p does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .. import facts, ops
from ..congruences import ANY, Congruence
from ..differences import Sum
from ..dtypes import bool_
from ..intervals import Interval
from ..ops import Narrowed
from ..uop import UOp, const, intern, walk
from .partial import evaluates_more
from .support import NoValue

Simplify = Callable[[UOp], UOp]

MAX_NODES = 400
"""Expressions with more nodes than this are left as they are: the cost of a question must not grow with the graph."""

MAX_CLAUSES = 32

WEIGHTS = {ops.FLOORDIV: 10, ops.FLOORMOD: 10, ops.TRUNCDIV: 10, ops.TRUNCMOD: 10, ops.MUL: 3}
"""What operators cost beside one another; every other costs 1."""


def under(simplify: Simplify | None, condition: UOp, value: UOp) -> UOp:
    """`value` in the form that it has where `condition` holds. Raises NoValue where that is no cheaper."""
    if simplify is None or condition.op is ops.CONST or value.op in _LEAVES:
        raise NoValue
    mentioned = _nodes(value)
    if mentioned is None or not any(node.op in _IMPROVABLE for node in mentioned):
        raise NoValue
    known = Knowledge.of(condition)
    best, price = value, cost(value)
    for replacements in known.substitutions(mentioned):
        found = _tried(simplify, value, replacements)
        if cost(found) < price and not evaluates_more(value, found):
            best, price = found, cost(found)
    if best is value:
        raise NoValue
    return best


def _tried(simplify: Simplify, value: UOp, replacements: dict[UOp, UOp]) -> UOp:
    """The value after one set of replacements, in terms of its own nodes again."""
    result = simplify(substitute(value, replacements))
    while True:  # what a variable stands for may hold another
        back = {n: n.arg.node for n in walk(result) if n.op is ops.VAR and isinstance(n.arg, Narrowed)}
        if not back:
            return result
        result = simplify(substitute(result, back))


_LEAVES = frozenset({ops.CONST, ops.VAR, ops.RANGE, ops.SPECIAL})

_COMPARISONS = frozenset({ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE})

_IMPROVABLE = frozenset({
    *_COMPARISONS, ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD, ops.MAX, ops.MIN, ops.WHERE, ops.AND, ops.OR,
    ops.NOT,
})  # fmt: skip
"""Operators of which narrower operands may make less: a sum of products stays what it is."""


def _nodes(value: UOp) -> dict[UOp, None] | None:
    """The nodes that a condition can say something of, or None if there are too many; no look behind a load."""
    found: dict[UOp, None] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        if len(found) >= MAX_NODES:
            return None
        found[node] = None
        if node.op.elementwise:
            stack.extend(node.src)
    return found


def cost(value: UOp) -> int:
    """The weight of an expression, each node counted once."""
    return sum(WEIGHTS.get(node.op, 1) for node in _nodes(value) or () if node.op.elementwise)


def substitute(value: UOp, replacements: dict[UOp, UOp]) -> UOp:
    """`value` with nodes replaced, the outer ones first."""
    done: dict[UOp, UOp] = dict(replacements)
    stack = [value]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        operands = node.src if node.op.elementwise else ()
        missing = [operand for operand in operands if operand not in done]
        if missing:
            stack += missing
            continue
        changed = any(done[operand] is not operand for operand in operands)
        done[node] = intern(node.op, node.dtype, tuple(done[o] for o in operands), node.arg) if changed else node
        stack.pop()
    return done[value]


# --- what a condition says -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Knowledge:
    """Bounds and remainders of nodes, truth of conditions, and what is equal to something else."""

    bounds: dict[UOp, Interval]
    congruences: dict[UOp, Congruence]
    truths: dict[UOp, UOp]
    equal: dict[UOp, UOp]

    @classmethod
    def of(cls, condition: UOp) -> Knowledge:
        known = cls({}, {}, {}, {})
        for clause, holds in _clauses(condition):
            known._learn(clause, holds)
        known._propagate()
        return known

    def substitutions(self, mentioned: dict[UOp, None]) -> Iterator[dict[UOp, UOp]]:
        """Replacements to try, that touch something in the expression: narrower nodes, then sums as one variable."""
        if any(node in mentioned for node in self.equal):
            yield {**self._narrowed(), **self.equal}
        narrowed = self._narrowed()
        if any(node in mentioned for node in narrowed):
            yield narrowed
        solved = list(self._solved(mentioned))
        together = _independent(solved)
        for sums in [*([one] for one in solved), *([together] if len(together) > 1 else [])]:
            terms = {one.term for one in sums}
            rest = {node: by for node, by in narrowed.items() if node not in terms}
            yield rest | {one.term: substitute(one.value, rest) for one in sums}

    def _solved(self, mentioned: dict[UOp, None]) -> Iterator[_Solved]:
        """Each bounded sum as one variable: a term of it that the expression has is that variable less the others."""
        for whole, bounds in self.bounds.items():
            if whole.op is not ops.ADD:
                continue
            fresh = _variable(whole, bounds, self.congruences.get(whole, ANY))
            found = _solved(whole, fresh, mentioned)
            if found is not None and fresh is not whole:
                yield found

    def _narrowed(self) -> dict[UOp, UOp]:
        found = dict(self.truths)
        for node in {**self.bounds, **self.congruences}:
            by = _variable(node, self.bounds.get(node, facts.interval(node)), self.congruences.get(node, ANY))
            if by is not node:
                found[node] = by
        return found

    def _learn(self, clause: UOp, holds: bool) -> None:
        self.truths[clause] = const(bool_, holds)
        if clause.op not in _COMPARISONS or clause.src[0].dtype.kind not in ("index", "sint", "uint"):
            return
        op = clause.op if holds else ops.by_name(clause.op.negated or "")
        a, b = clause.src
        if op in (ops.GT, ops.GE):
            op, a, b = ops.by_name(op.mirrored or ""), b, a
        gap = 1 if op is ops.LT else 0
        if op in (ops.LT, ops.LE):
            self._bound(a, -math.inf, facts.interval(b)[1] - gap)
            self._bound(b, facts.interval(a)[0] + gap, math.inf)
        elif op is ops.EQ:
            self._bound(a, *facts.interval(b))
            self._bound(b, *facts.interval(a))
            self._equate(a, b)
        elif op is ops.NE:
            self._exclude(a, b)
            self._exclude(b, a)

    def _bound(self, node: UOp, low: float, high: float) -> None:
        before = self.bounds.get(node) or facts.interval(node)
        after = max(low, before[0]), min(high, before[1])
        if after != before and node.op is not ops.CONST:
            self.bounds[node] = after

    def _exclude(self, node: UOp, other: UOp) -> None:
        """node != other, where other is a constant at the end of the node's bounds."""
        low, high = self.bounds.get(node) or facts.interval(node)
        if other.op is ops.CONST and other.arg == low:
            self._bound(node, low + 1, high)
        if other.op is ops.CONST and other.arg == high:
            self._bound(node, low, high - 1)

    def _equate(self, a: UOp, b: UOp) -> None:
        if a.op is ops.CONST:
            a, b = b, a
        if b.op is ops.CONST and isinstance(b.arg, int):
            self.truths[a] = b
            if a.op in (ops.FLOORMOD, ops.TRUNCMOD) and a.src[1].op is ops.CONST:
                modulus = abs(a.src[1].arg) if isinstance(a.src[1].arg, int) else 0
                if modulus:
                    self.congruences[a.src[0]] = modulus, b.arg % modulus
        if a.dtype.kind != "index":
            return
        both = Sum()
        if both.add(a, 1) and both.add(b, -1):
            for node, times in both.terms.items():
                if abs(times) == 1 and node.op in _LEAVES:
                    self.equal[node] = _built(both, node)
                    return

    def _propagate(self) -> None:
        """Bounds of sums bound their terms."""
        for whole, (low, high) in list(self.bounds.items()):
            parts = Sum()
            if whole.dtype.kind != "index" or whole.op not in (ops.ADD, ops.MUL) or not parts.add(whole, 1):
                continue
            least = parts.low()
            most = -Sum(-parts.constant, {t: -c for t, c in parts.terms.items()}).low()
            for term, times in parts.terms.items():
                own = self.bounds.get(term) or facts.interval(term)
                smallest, greatest = (own[0], own[1]) if times > 0 else (own[1], own[0])
                above = _whole(high - (least - times * smallest))
                below = _whole(low - (most - times * greatest))
                if times < 0:
                    above, below = below, above
                self._bound(term, _rounded(below, times, up=True), _rounded(above, times, up=False))


def _whole(value: float) -> float:
    return math.inf if value != value else value


def _rounded(bound: float, times: int, *, up: bool) -> float:
    """bound / times, rounded towards the inside."""
    if not isinstance(bound, int):
        return -math.inf if up else math.inf
    return -(-bound // times) if up else bound // times


def _clauses(condition: UOp) -> Iterator[tuple[UOp, bool]]:
    """What holds where the condition does: single conditions, and whether they are true."""
    stack, count = [(condition, True)], 0
    while stack and count < MAX_CLAUSES:
        node, holds = stack.pop()
        if node.op is ops.NOT:
            stack.append((node.src[0], not holds))
        elif node.op is (ops.AND if holds else ops.OR):
            stack.extend((operand, holds) for operand in reversed(node.src))
        elif node.op is not ops.CONST:
            count += 1
            yield node, holds


def _variable(node: UOp, bounds: Interval, congruence: Congruence) -> UOp:
    """A fresh variable that stands for the node where it is known better than by itself; else the node."""
    low, high = bounds
    if low == high and isinstance(low, int):
        return const(node.dtype, low)
    if low > high or (bounds == facts.interval(node) and congruence == ANY) or node.op is ops.CONST:
        return node
    return intern(ops.VAR, node.dtype, (), Narrowed(node, low, high, *congruence))


class _Solved(NamedTuple):
    """A term of a sum, what it is if the sum is a fresh variable, and the sum's other terms."""

    term: UOp
    value: UOp
    others: frozenset[UOp]


def _solved(whole: UOp, fresh: UOp, mentioned: dict[UOp, None]) -> _Solved | None:
    """The sum solved for a term; None if no term of the expression has factor 1 or -1."""
    parts = Sum()
    if whole.dtype.kind != "index" or not parts.add(whole, 1):
        return None
    for node, times in parts.terms.items():
        if abs(times) == 1 and node in mentioned:
            value = intern(ops.ADD, node.dtype, (_built(parts, node), _scaled(fresh, times)))
            return _Solved(node, value, frozenset(parts.terms) - {node})
    return None


def _independent(solved: list[_Solved]) -> list[_Solved]:
    """As many as can be replaced at once, the first ones first: no term of one is replaced by another."""
    found: list[_Solved] = []
    for one in solved:
        if all(one.term is not o.term and one.term not in o.others and o.term not in one.others for o in found):
            found.append(one)
    return found


def _built(form: Sum, without: UOp) -> UOp:
    """What `without`, of factor 1 or -1 in the sum, is where the sum is 0."""
    sign = -form.terms[without]
    result = const(without.dtype, sign * form.constant)
    for term, times in form.terms.items():
        if term is not without:
            result = intern(ops.ADD, without.dtype, (_scaled(term, sign * times), result))
    return result


def _scaled(node: UOp, times: int) -> UOp:
    return node if times == 1 else intern(ops.MUL, node.dtype, (node, const(node.dtype, times)))
