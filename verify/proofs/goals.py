"""One question to the solver: is there a value for which a rule, in one shape, is wrong?

The question is a text in SMT-LIB 2, so that its answer depends on nothing but it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import z3  # type: ignore[import-untyped] # has no types

from ...engine import ops
from ...engine.dtypes import DType, index
from ...engine.language.syntax import Apply, Attr, Bind, Chain, Instance, Name, Term, TypeName, Var
from ...engine.language.terms import walk
from .conversions import TRUE
from .division import Division
from .domain import Buffer, Lane, Symbolic
from .exact import Unsupported
from .guards import Guard
from .meanings import Expr, constant, same
from .polynomials import quotient_part
from .shapes import Shape
from .sides import Effect, Result, Sides, Value

REAL_FLAGS = frozenset({"reassoc", "contract", "arcp", "afn"})
"""Flags that allow rounding to differ: the rule is looked at in real numbers."""

MOST_CHOICES = 5


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a question is put: the division of indices, and values for the constants of the rule."""

    native: bool = False
    shared: bool = True  # operators that may choose (the sign of a zero maximum) choose alike on both sides
    wide: bool = False
    special: bool = False  # floats are NaN, zeros and a few small numbers, whatever the flags say of rounding
    fixed: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """A question; a model of `text` is a case in which the rule is wrong."""

    text: str
    trivial: bool  # there is no such case, as simplifying alone shows
    leaves: Mapping[str, DType]
    premise: str  # the assumptions alone
    untold: frozenset[str]  # functions of the guard that have no meaning
    has_choices: bool


def goal(instance: Instance, shape: Shape, encoding: Encoding) -> Goal | None:
    """The question for one shape; None where the guard is false in it. Raises Unsupported, and Impossible."""
    reals = not encoding.special and (bool(shape.flags & REAL_FLAGS) or _sums_up(instance))
    domain = Symbolic(
        Division(encoding.native), reals, shared=encoding.shared, any_zero="nsz" in shape.flags, wide=encoding.wide,
        fixed=dict(encoding.fixed),
    )  # fmt: skip
    sides = Sides(domain, shape, dict(instance.bindings))
    guard = Guard(sides, domain)
    sides.formula = guard
    left = sides.term(instance.left, expected_type(instance.left, shape))
    chosen = [] if encoding.shared else list(domain.choices.values())
    holds = _all_hold(guard, instance)
    if holds is False:
        return None
    right = right_side(sides, instance, left)
    wrong = _wrong(domain, left, right, shape.flags, chosen, encoding.special)
    assumed = [one.defined for one in sides.computed if not z3.is_true(one.defined)]
    assumed += guard.assumptions() + ([] if holds is True else [holds])
    assumed += _special_values(domain) if encoding.special else []
    assumed += domain.facts + (_indices_fit(domain) if _converts_indices(instance) else [])
    leaves = {name: dtype for name, (dtype, _) in domain.leaves.items()}
    text, trivial = _text(domain, assumed, wrong, _results(left, right))
    return Goal(text, trivial, leaves, _premise(assumed), frozenset(guard.untold), bool(domain.choices))


def _sums_up(instance: Instance) -> bool:
    """Whether the rule is about sums or products of many terms: in which order these add up is nowhere said."""
    return any(
        isinstance(part, Apply) and part.op in _MANY and any(_is_sum(attr, instance) for attr in part.attrs)
        for part in walk(instance.left)
    )


_MANY = (ops.REDUCE, ops.FOLD_LANES)


def _is_sum(attr: Attr, instance: Instance) -> bool:
    if isinstance(attr, Var | Name):
        found = dict(instance.bindings).get(attr.name)
        return found is None or found in (ops.ADD, ops.MUL)
    return attr in (ops.ADD, ops.MUL)


def _converts_indices(instance: Instance) -> bool:
    """Whether the rule turns indices into integers of a type: then every index has at most 64 bits."""
    return any(
        isinstance(part, Apply)
        and part.op is ops.CAST
        and any(isinstance(a, TypeName) and a.dtype is index for a in part.attrs)
        for side in (instance.left, instance.right)
        for part in walk(side)
    )


def _indices_fit(domain: Symbolic) -> list[Expr]:
    terms = [*domain.indices, *(term for dtype, term in domain.leaves.values() if dtype.kind == "index")]
    return [z3.And(-(1 << 63) <= term, term < 1 << 63) for term in terms]


def _all_hold(guard: Guard, instance: Instance) -> bool | Expr:
    """The guards of the shares of chains, then that of the rule."""
    formulas = [share.guard for part in walk(instance.left) if isinstance(part, Chain) for share in part.shares]
    found = [guard.share(formula) for formula in formulas]
    found += [guard.truth(instance.when, certain=True)] if instance.when is not None else []
    if any(one is False for one in found):
        return False
    left = [one for one in found if one is not True]
    return z3.And(*left) if left else True


def expected_type(left: Term, shape: Shape) -> DType | None:
    """The type that constants of a left side take where nothing beside them says it."""
    while isinstance(left, Bind):
        left = left.term
    if shape.root.kind in ("void", "pointer") or isinstance(left, Apply) and left.op.negated is not None:
        return None
    return shape.root


def right_side(sides: Sides, instance: Instance, left: Result) -> Result:
    """The value of the right side, `let`s before it."""
    sides.is_left = sides.opaque = False
    dtype = left.dtype if isinstance(left, Value) else None
    for name, term in instance.lets:
        sides.lets[name] = term, dtype
    return sides.term(instance.right, dtype)


# --- wrong -----------------------------------------------------------------------------------------------------------


def _wrong(
    domain: Symbolic, left: Result, right: Result, flags: frozenset[str], choices: Sequence[Expr], special: bool
) -> Expr:
    """The left side is defined, and the right side is not, or is none of the results that the left may give."""
    if len(choices) > MOST_CHOICES:
        raise Unsupported("more free choices than are tried")
    if isinstance(left, Value) and isinstance(right, Value):
        if left.dtype is not right.dtype:
            raise Unsupported(f"sides of types {left.dtype} and {right.dtype}")
        granted = _granted(domain, flags)
        pairs = zip(left.lanes, right.lanes, strict=True)
        here = z3.Or(*[_lane_wrong(domain, a, b, left.dtype.scalar, flags, granted, special) for a, b in pairs])
    elif isinstance(left, tuple) and isinstance(right, tuple):
        here = _effects_wrong(domain, left, right)
    else:
        raise Unsupported("sides of which one stores and one does not")
    ways = []
    for values in product((False, True), repeat=len(choices)):
        made = [(choice, z3.BoolVal(value)) for choice, value in zip(choices, values, strict=True)]
        ways.append(z3.substitute(here, *made))
    return z3.And(*ways) if len(ways) > 1 else ways[0]


def _granted(domain: Symbolic, flags: frozenset[str]) -> Expr:
    """What the flags say of the values that the names stand for."""
    said = []
    for dtype, term in domain.leaves.values():
        if dtype.is_float and not domain.reals:
            said += [z3.Not(z3.fpIsNaN(term))] * ("nnan" in flags) + [z3.Not(z3.fpIsInf(term))] * ("ninf" in flags)
    return z3.And(*said) if said else TRUE


def _lane_wrong(
    domain: Symbolic, left: Lane, right: Lane, dtype: DType, flags: frozenset[str], granted: Expr, special: bool
) -> Expr:
    equal = _alike(left.term, right.term, flags) if special and dtype.is_float else same(left.term, right.term)
    allowed = [left.defined, granted]
    if dtype.is_float and not domain.reals:
        if "nsz" in flags:
            equal = z3.Or(equal, z3.And(z3.fpIsZero(left.term), z3.fpIsZero(right.term)))
        allowed += [z3.Not(z3.fpIsNaN(left.term))] * ("nnan" in flags)
        allowed += [z3.Not(z3.fpIsInf(left.term))] * ("ninf" in flags)
    return z3.And(domain.both(*allowed), z3.Not(domain.both(right.defined, equal)))


def _alike(a: Expr, b: Expr, flags: frozenset[str]) -> Expr:
    """Whether two floats are NaN alike, and zeros of one sign: what no flag about rounding changes.

    Where terms may be reordered, the sign of a zero may change with the order.
    """
    nan = z3.fpIsNaN(a) == z3.fpIsNaN(b)
    zeros = z3.And(z3.fpIsZero(a), z3.fpIsZero(b))
    return nan if "reassoc" in flags else z3.And(nan, z3.Implies(zeros, a == b))


def _special_values(domain: Symbolic) -> list[Expr]:
    """Every float leaf is one of a few values, on which nothing is rounded."""
    values = (float("nan"), 0.0, -0.0, 1.0, -1.0, 2.0)
    leaves = [(dtype, term) for dtype, term in domain.leaves.values() if dtype.is_float]
    return [z3.Or(*[term == constant(dtype, value) for value in values]) for dtype, term in leaves]


def _effects_wrong(domain: Symbolic, left: Effect, right: Effect) -> Expr:
    """Some element is not the same after all writes, or a write on the right is not allowed."""
    buffers = {write.buffer.name: write.buffer for write in (*left, *right)}
    place = z3.Int("place!")
    equal = [
        z3.Select(_memory_after(domain, left, buffer), place) == z3.Select(_memory_after(domain, right, buffer), place)
        for buffer in buffers.values()
    ]
    return z3.And(_allowed(domain, left), z3.Not(domain.both(_allowed(domain, right), *equal)))


def _memory_after(domain: Symbolic, effect: Effect, buffer: Buffer) -> Expr:
    memory = domain.memory(buffer)
    for write in effect:
        if write.buffer == buffer:
            stored = z3.Store(memory, domain.place(write.at.term, write.index, write.offset), write.value.term)
            memory = z3.If(write.gate.term, stored, memory)
    return memory


def _allowed(domain: Symbolic, effect: Effect) -> Expr:
    conditions = []
    for write in effect:
        place = domain.place(write.at.term, write.index, write.offset)
        inside = domain.both(write.at.defined, write.value.defined, domain.inside(write.buffer, place))
        conditions += [write.gate.defined, z3.Implies(write.gate.term, inside)]
    return domain.both(*conditions)


def _results(left: Result, right: Result) -> list[Expr]:
    """The results that are whole numbers: what a quotient may be equal to."""
    values = [side.lanes[0].term for side in (left, right) if isinstance(side, Value) and side.dtype.kind == "index"]
    return [term for term in values if z3.is_int(term)]


# --- the text --------------------------------------------------------------------------------------------------------


def _text(domain: Symbolic, assumed: list[Expr], wrong: Expr, results: list[Expr]) -> tuple[str, bool]:
    solver = z3.Solver()
    told, wrong, hints = _eliminated(domain, assumed, wrong, results)
    simple = z3.simplify(wrong, som=True)
    if z3.is_false(simple):
        return "", True
    for one in [*told, *hints]:
        solver.add(one)
    solver.add(simple if not _has_floats(domain) else wrong)
    return solver.to_smt2(), False


def _premise(assumed: list[Expr]) -> str:
    solver = z3.Solver()
    solver.add(*assumed)
    return str(solver.to_smt2())


def _has_floats(domain: Symbolic) -> bool:
    return any(dtype.is_float for dtype, _ in domain.leaves.values())


def _eliminated(
    domain: Symbolic, assumed: list[Expr], wrong: Expr, results: list[Expr]
) -> tuple[list[Expr], Expr, list[Expr]]:
    """With the equations among the assumptions solved for a leaf, and what uniqueness says of the quotients."""
    told = [part for one in [*assumed, *domain.division.axioms] for part in _conjuncts(one)]
    quotients = [(q.dividend, q.divisor, q.quotient) for q in domain.division.known.values()
                 if not z3.is_int_value(q.divisor)]  # fmt: skip
    results = list(results)
    while True:
        pair = next(filter(None, map(_solved, told)), None)
        if pair is None:
            break
        told = [z3.simplify(z3.substitute(one, pair)) for one in told]
        told = [one for one in told if not z3.is_true(one)]
        wrong = z3.substitute(wrong, pair)
        quotients = [tuple(z3.substitute(part, pair) for part in one) for one in quotients]
        results = [z3.substitute(one, pair) for one in results]
    return told, wrong, list(_uniqueness(quotients, results, told))


def _conjuncts(formula: Expr) -> Iterable[Expr]:
    if z3.is_and(formula):
        for part in formula.children():
            yield from _conjuncts(part)
    else:
        yield formula


def _solved(equation: Expr) -> tuple[Expr, Expr] | None:
    """(a leaf, what it is equal to), if the equation says that of a whole number."""
    if not z3.is_eq(equation) or not z3.is_int(equation.arg(0)):
        return None
    for leaf, other in (equation.children(), reversed(equation.children())):
        if z3.is_const(leaf) and leaf.decl().kind() == z3.Z3_OP_UNINTERPRETED and not _occurs(leaf, other):
            return leaf, other
    return None


def _occurs(leaf: Expr, formula: Expr) -> bool:
    stack = [formula]
    while stack:
        here = stack.pop()
        if here.eq(leaf):
            return True
        stack.extend(here.children())
    return False


def _uniqueness(
    quotients: Sequence[tuple[Expr, Expr, Expr]], results: Sequence[Expr], told: Sequence[Expr]
) -> Iterable[Expr]:
    """Instances of: if a - t*b lies between 0 and b, then t is the quotient of a by b.

    True for every t; the solver finds no t by itself. Tried are the other quotients, the factors that divisibility
    brought in, the results of both sides, and for another quotient by b what the difference of the dividends adds.
    """
    shared: dict[int, Expr] = {}
    for term in [*[q for _, _, q in quotients], *_factors(told), *results]:
        shared.setdefault(term.get_id(), term)
    for a, b, q in quotients:
        own = [quotient_part(a, b)]
        own += [other + quotient_part(a - dividend, b) for dividend, divisor, other in quotients if divisor.eq(b)]
        for t in {z3.simplify(term).get_id(): z3.simplify(term) for term in [*shared.values(), *own]}.values():
            if t.eq(q):
                continue
            rest = z3.simplify(a - t * b, som=True)
            positive = z3.And(b > 0, 0 <= rest, rest < b)
            negative = z3.And(b < 0, b < rest, rest <= 0)
            yield z3.Implies(z3.Or(positive, negative), q == t)


def _factors(told: Sequence[Expr]) -> list[Expr]:
    found: dict[str, Expr] = {}
    stack = list(told)
    while stack:
        here = stack.pop()
        if z3.is_const(here) and here.decl().name().startswith("factor!"):
            found[here.decl().name()] = here
        stack.extend(here.children())
    return [found[name] for name in sorted(found)]
