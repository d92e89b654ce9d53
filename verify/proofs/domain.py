"""Two worlds in which the sides of a rule have a value: formulas of the solver, and plain numbers.

The walk over a rule (`sides`) asks a *domain* for leaves, constants and operators, one lane at a time. `Symbolic` gives
formulas; `Concrete` gives the reference semantics of a counterexample, so that nothing is reported that is not so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import z3  # type: ignore[import-untyped] # has no types

from ...engine import ops
from ...engine.dtypes import DType, Scalar, bool_, int32
from ...engine.interpret import apply as evaluate
from ...engine.ops import Op
from .conversions import TRUE, bitcast, cast
from .division import Division
from .exact import Number, Unsupported, Whole, in_type, number_of
from .meanings import ALTERNATIVES, BY_KIND, REAL, Expr, constant, sort_of

FALSE = z3.BoolVal(False)


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane's value, and whether it is defined; of a plain number `term` is None where it is not."""

    term: Expr
    defined: Expr


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer that a name of the rule stands for."""

    name: str
    element: DType


class Domain(Protocol):
    """What the walk over a rule needs of a world."""

    def constant(self, dtype: DType, value: Scalar) -> Lane: ...

    def leaf(self, name: str, dtype: DType) -> Lane:
        """The value of a name, in one lane and one iteration: the same at each call."""

    def apply(self, op: Op, source: DType, target: DType, operands: Sequence[Lane]) -> Lane:
        """An elementwise operator on scalars of type `source`, giving one of type `target`."""

    def either(self, a: Lane, b: Lane) -> Lane:
        """One of two results that an operator may choose from."""

    def count(self, name: str, end: Lane | None, dtype: DType) -> Lane:
        """What a loop, a thread (below `end`) or a variable counts, in a type."""

    def load(self, buffer: Buffer, at: Lane, index: DType, offset: int) -> Lane:
        """The element at `at` + `offset` before anything is stored; undefined outside of the buffer."""


@dataclass(slots=True)
class Symbolic:
    """Formulas. `reals` counts floats as real numbers; `choices` are the results that an operator may choose."""

    division: Division = field(default_factory=Division)
    reals: bool = False
    leaves: dict[str, tuple[DType, Expr]] = field(default_factory=dict)
    facts: list[Expr] = field(default_factory=list)  # what holds of leaves by their nature
    indices: list[Expr] = field(default_factory=list)  # the values of all operators that give an index
    choices: dict[str, Expr] = field(default_factory=dict)
    shared: bool = True  # equal operators on equal operands choose alike
    any_zero: bool = False  # the sign of a zero does not matter
    wide: bool = False  # indices are bit-vectors in which nothing that is computed here wraps
    fixed: Mapping[str, int] = field(default_factory=dict)  # constants that are given a value

    def typed(self, dtype: DType) -> DType:
        """The type as which the solver sees a scalar type."""
        return WIDE_INDEX if self.wide and dtype.kind == "index" else dtype

    def sort(self, dtype: DType) -> z3.SortRef:
        dtype = self.typed(dtype)
        return z3.RealSort() if self.reals and dtype.is_float else sort_of(dtype)

    def constant(self, dtype: DType, value: Scalar) -> Lane:
        if self.reals and dtype.is_float:
            if value != value or abs(value) == float("inf"):
                raise Unsupported("infinities and NaN are no real numbers")
            numerator, denominator = float(value).as_integer_ratio()
            return Lane(z3.RealVal(f"{numerator}/{denominator}"), TRUE)
        return Lane(constant(self.typed(dtype), value), TRUE)

    def leaf(self, name: str, dtype: DType) -> Lane:
        if name in self.fixed:
            return self.constant(dtype, self.fixed[name])
        if name not in self.leaves:
            self.leaves[name] = (dtype, z3.Const(name, self.sort(dtype)))
        return Lane(self.leaves[name][1], TRUE)

    def count(self, name: str, end: Lane | None, dtype: DType) -> Lane:
        """What a loop, a thread or a variable counts: one number, whatever its type is; from 0 up to below `end`."""
        number = self.leaf(name, int32)
        found = self.apply(ops.CAST, int32, dtype, [number])
        if end is not None:
            least = self.constant(dtype, 0)
            for op, a, b in ((ops.LE, least, found), (ops.LT, found, end)):
                self.facts.append(self.apply(op, dtype, bool_, [a, b]).term)
        return found

    def both(self, *conditions: Expr) -> Expr:
        wanted = [one for one in conditions if not z3.is_true(one)]
        return z3.And(*wanted) if len(wanted) > 1 else wanted[0] if wanted else TRUE

    # --- operators ---------------------------------------------------------------------------------------------------

    def apply(self, op: Op, source: DType, target: DType, operands: Sequence[Lane]) -> Lane:
        result = self._apply(op, self.typed(source), self.typed(target), operands)
        if target.kind == "index":
            self.indices.append(result.term)
        return result

    def _apply(self, op: Op, source: DType, target: DType, operands: Sequence[Lane]) -> Lane:
        if op is ops.WHERE:
            return self._where(*operands)
        terms = [one.term for one in operands]
        defined = self.both(*[one.defined for one in operands])
        if op in (ops.CAST, ops.BITCAST):
            term, here = self._convert(op, terms[0], source, target)
        else:
            term, here = self._meaning(op, source, terms), self._defined(op, source, terms)
        return Lane(term, self.both(defined, here))

    def _where(self, condition: Lane, a: Lane, b: Lane) -> Lane:
        term = z3.If(condition.term, a.term, b.term)
        branches = TRUE
        if not (z3.is_true(a.defined) and z3.is_true(b.defined)):
            branches = z3.If(condition.term, a.defined, b.defined)
        return Lane(term, self.both(condition.defined, branches))

    def _convert(self, op: Op, a: Expr, source: DType, target: DType) -> tuple[Expr, Expr]:
        if self.reals and (source.is_float or target.is_float):
            return self._real_cast(op, a, source, target), TRUE
        return cast(a, source, target) if op is ops.CAST else bitcast(a, source, target)

    def _real_cast(self, op: Op, a: Expr, source: DType, target: DType) -> Expr:
        if op is ops.CAST and source.is_float and target.is_float:
            return a
        if op is ops.CAST and source.kind == "bool":
            return z3.If(a, z3.RealVal(1), z3.RealVal(0))
        if op is ops.CAST and target.is_float:
            return z3.ToReal(a if source.kind == "index" else z3.BV2Int(a, source.kind == "sint"))
        raise Unsupported(f"`{op.name}` from {source} to {target} with floats as real numbers")

    def _meaning(self, op: Op, dtype: DType, terms: list[Expr]) -> Expr:
        if dtype.kind == "index":
            return self._integer(op, terms)
        if self.reals and dtype.is_float:
            if op not in REAL:
                raise Unsupported(f"`{op.name}` with floats as real numbers")
            return REAL[op](*terms)
        usual = BY_KIND[dtype.kind][op](*terms)
        if not dtype.is_float or op not in ALTERNATIVES or self.any_zero and op is not ops.MULACC:
            return usual
        key = f"{op.name} {' '.join(term.sexpr() for term in terms)}" if self.shared else ""
        return self._choice(ALTERNATIVES[op](*terms), usual, key)

    def either(self, a: Lane, b: Lane) -> Lane:
        if self.reals:
            return a
        key = f"start {b.term.sexpr()}" if self.shared else ""
        return Lane(self._choice(a.term, b.term, key), self.both(a.defined, b.defined))

    def _choice(self, a: Expr, b: Expr, key: str) -> Expr:
        number = len(self.choices)
        choice = self.choices.setdefault(key or f"!{number}", z3.Bool(f"choice!{number}"))
        return z3.If(choice, a, b)

    def _integer(self, op: Op, terms: list[Expr]) -> Expr:
        match op:
            case ops.FLOORDIV:
                return self.division.floor(*terms)[0]
            case ops.FLOORMOD:
                return self.division.floor(*terms)[1]
            case ops.TRUNCDIV:
                return self.division.trunc(*terms)[0]
            case ops.TRUNCMOD:
                return self.division.trunc(*terms)[1]
            case ops.SHL:
                return terms[0] * _power(terms[1])
            case ops.SHR:
                return self.division.floor(terms[0], _power(terms[1]))[0]
            case ops.AND | ops.OR | ops.XOR:
                in_order = sorted(terms, key=lambda term: str(term.sexpr()))
                return z3.Function(f"bit{op.name}", *[z3.IntSort()] * 3)(*in_order)
            case _:
                return BY_KIND["index"][op](*terms)

    def _defined(self, op: Op, dtype: DType, terms: list[Expr]) -> Expr:
        if op in DIVISIONS:
            return terms[1] != constant(dtype, 0)
        if op in SHIFTS:
            bits = dtype.bits if dtype.is_int else 64
            if dtype.kind == "uint":
                return z3.ULT(terms[1], constant(dtype, bits))
            return z3.And(terms[1] >= constant(dtype, 0), terms[1] < constant(dtype, bits))
        if self.reals and op in (ops.DIV, ops.RECIP):
            return terms[-1] != 0
        return TRUE

    def whole_log2(self, lane: Lane, dtype: DType) -> Lane:
        """The logarithm of an integer, rounded down; none of what is not positive."""
        dtype = self.typed(dtype)
        result = constant(dtype, 0)
        for exponent in range(1, dtype.bits - (dtype.kind == "sint")):
            power = constant(dtype, 1 << exponent)
            above = z3.UGE(lane.term, power) if dtype.kind == "uint" else lane.term >= power
            result = z3.If(above, constant(dtype, exponent), result)
        positive = lane.term != 0 if dtype.kind == "uint" else lane.term > 0
        return Lane(result, self.both(lane.defined, positive))

    def number(self, term: Expr, dtype: DType) -> Number:
        """The mathematical value of a constant."""
        return number_of(term, self.typed(dtype), self.reals)

    def in_type(self, number: Number, dtype: DType) -> Lane:
        """A number that is no plain one as a constant of a type."""
        return Lane(in_type(number, self.typed(dtype)), TRUE)

    def size(self, name: str) -> Number:
        """The number of elements of the buffer that a name stands for."""
        return Whole(z3.Int(f"size!{name}"))

    # --- memory ------------------------------------------------------------------------------------------------------

    def load(self, buffer: Buffer, at: Lane, index: DType, offset: int) -> Lane:
        place = self.place(at.term, index, offset)
        return Lane(z3.Select(self.memory(buffer), place), self.both(at.defined, self.inside(buffer, place)))

    def memory(self, buffer: Buffer) -> Expr:
        """The contents of a buffer before anything is stored."""
        return z3.Array(f"memory!{buffer.name}", z3.IntSort(), self.sort(buffer.element))

    def place(self, at: Expr, index: DType, offset: int) -> Expr:
        """An index of any integer type, and so many elements more, as a mathematical integer."""
        dtype = self.typed(index)
        whole = at if dtype.kind == "index" else z3.BV2Int(at, dtype.kind == "sint")
        return whole + offset if offset else whole

    def inside(self, buffer: Buffer, place: Expr) -> Expr:
        """Whether there is an element at `place`."""
        return z3.And(0 <= place, place < z3.Int(f"size!{buffer.name}"))


WIDE_INDEX = DType("index", "sint", 140)
"""Wide enough for the product of any two values of 64 bits, and for a shift of one."""
DIVISIONS = frozenset({ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD})
SHIFTS = frozenset({ops.SHL, ops.SHR})


def _power(exponent: Expr) -> Expr:
    """2 to an exponent from 0 to 63."""
    if z3.is_int_value(exponent):
        return z3.IntVal(1 << max(0, min(63, exponent.as_long())))
    result = z3.IntVal(1 << 63)
    for number in reversed(range(63)):
        result = z3.If(exponent == number, z3.IntVal(1 << number), result)
    return result


@dataclass(slots=True)
class Concrete:
    """Plain numbers: the values of leaves and the elements of buffers as a counterexample gives them."""

    values: Mapping[str, Scalar]
    memory: Mapping[str, Mapping[int, Scalar]]  # of a buffer; -1: of every other place
    sizes: Mapping[str, int]
    division: Division = field(default_factory=Division)
    too_large: bool = False  # whether an index left its 64 bits: no kernel has such a value

    def constant(self, dtype: DType, value: Scalar) -> Lane:
        return _lane(dtype.scalar.canonical(value))

    def leaf(self, name: str, dtype: DType) -> Lane:
        return _lane(self.values[name] if name in self.values else dtype.scalar.canonical(0))

    def either(self, a: Lane, b: Lane) -> Lane:
        return b

    def count(self, name: str, end: Lane | None, dtype: DType) -> Lane:
        return self.apply(ops.CAST, int32, dtype, [self.leaf(name, int32)])

    def apply(self, op: Op, source: DType, target: DType, operands: Sequence[Lane]) -> Lane:
        result = evaluate(op, source, target, *[one.term for one in operands])
        if target.kind == "index" and result is not None and not -(1 << 63) <= result < 1 << 63:
            self.too_large = True
        return _lane(result)

    def whole_log2(self, lane: Lane, dtype: DType) -> Lane:
        return _lane(lane.term.bit_length() - 1 if lane.defined and lane.term > 0 else None)

    def number(self, term: Scalar, dtype: DType) -> Number:
        return int(term) if isinstance(term, bool) else term

    def in_type(self, number: Number, dtype: DType) -> Lane:
        raise Unsupported("a number that is no plain one")

    def size(self, name: str) -> Number:
        return self.sizes.get(name, 0)

    def load(self, buffer: Buffer, at: Lane, index: DType, offset: int) -> Lane:
        if not at.defined or not 0 <= at.term + offset < self.sizes.get(buffer.name, 0):
            return _lane(None)
        elements = self.memory.get(buffer.name, {})
        return _lane(elements.get(at.term + offset, elements.get(-1, buffer.element.canonical(0))))


def _lane(value: Scalar | None) -> Lane:
    return Lane(value, value is not None)
