"""Guards and computed values as formulas.

What a guard says of an expression is what the engine has *proven* of it, so it becomes an assumption about every value
that the expression can have: `min(x)` and `max(x)` are fresh numbers around x, `divides(c, x)` is a truth value that,
where it holds, makes every value a multiple of c. Nothing is assumed where it does not hold: unknown is not false.
Every function of guards has its meaning here; what a function without a meaning says is left open, which is sound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import z3  # type: ignore[import-untyped] # has no types

from ...engine import ops
from ...engine.dtypes import DType, bool_, index
from ...engine.language.syntax import (
    Formula,
    Function,
    InRange,
    Logic,
    Name,
    Operation,
    Text,
    TypeName,
)
from ...engine.language.syntax import Number as Literal
from ...engine.ops import Op
from .conversions import TRUE
from .division import Division
from .domain import FALSE, Concrete, Lane, Symbolic
from .exact import Ieee, Number, Unsupported, Whole, Wide, operate
from .meanings import Expr
from .sides import FormulaValue, Sides, Value

Truth = bool | Expr
Fact = Callable[[Expr, DType], Expr]
"""(a value of an expression, its scalar type) -> what is known of it."""


@dataclass(slots=True)
class Guard(FormulaValue):
    """The formulas of one rule in one shape; `known` collects what they say of names."""

    sides: Sides
    domain: Symbolic | Concrete
    externs: dict[str, Callable[..., Truth]] = field(default_factory=dict)
    known: list[tuple[str, Fact, bool]] = field(default_factory=list)  # bool: of each term of a share alone
    in_share: bool = False
    factors: int = 0
    needed: list[Expr] = field(default_factory=list)  # else the guard has no value, and the rule does not fire
    bounds: dict[str, tuple[Number, Number]] = field(default_factory=dict)
    open: dict[str, Expr] = field(default_factory=dict)  # truth values that nothing is known of
    untold: set[str] = field(default_factory=set)  # functions without a meaning

    # --- truth -------------------------------------------------------------------------------------------------------

    def share(self, formula: Formula) -> Truth:
        """The guard of a share of a chain: what holds of each of its terms alone."""
        self.in_share = True
        holds = self.truth(formula, certain=True)
        self.in_share = False
        return holds

    def truth(self, formula: Formula, certain: bool = False) -> Truth:
        """Whether a formula holds. `certain` says that it must, or the rule does not fire."""
        match formula:
            case Logic():
                return self._logic(formula, certain)
            case InRange():
                low, high = self._bounds_of(formula.value)
                return _both(
                    [
                        self._compare(ops.LE, self.number(formula.low), low),
                        self._compare(ops.LT, high, self.number(formula.high)),
                    ]
                )
            case Operation() if formula.op.negated is not None:
                return self._comparison(formula, certain)
            case Function():
                return self._predicate(formula, certain)
            case Literal() if isinstance(formula.value, bool):
                return formula.value
            case _:
                raise Unsupported("a guard that is no condition")

    def _logic(self, formula: Logic, certain: bool) -> Truth:
        if formula.word == "and":
            found: list[Truth] = []
            for part in formula.args:  # in order, as the engine does: what follows a false part has no value to have
                found.append(self.truth(part, certain))
                if found[-1] is False:
                    return False
            return _both(found)
        parts = [self.truth(part) for part in formula.args]
        if formula.word == "not":
            return not parts[0] if isinstance(parts[0], bool) else z3.Not(parts[0])
        if any(part is True for part in parts):
            return True
        left = [part for part in parts if not isinstance(part, bool)]
        return z3.Or(*left) if left else False

    def _comparison(self, formula: Operation, certain: bool) -> Truth:
        a, b = formula.args
        types = [self._type(part) for part in (a, b)]
        if any(one is not None for one in types):
            return (types[0] is types[1]) == (formula.op is ops.EQ)
        if isinstance(a, Text) or isinstance(b, Text):
            return self._open(f"{_text(a)} = {_text(b)}", formula.op is ops.EQ)
        if certain and formula.op is ops.EQ:
            multiple = self._multiple(a, b)
            if multiple is not None:
                return multiple
        return self._compare(formula.op, self.number(a, certain), self.number(b, certain))

    def _multiple(self, a: Formula, b: Formula) -> Truth | None:
        """`c1 % c2 == 0` on indices as c1 = k*c2 with a fresh k, which nonlinear arithmetic understands better."""
        if not (isinstance(a, Operation) and a.op is ops.FLOORMOD and isinstance(b, Literal) and b.value == 0):
            return None
        dividend, divisor = (self.number(part, certain=True) for part in a.args)
        if not isinstance(dividend, Whole) or not isinstance(divisor, Whole) or z3.is_int_value(divisor.term):
            return None
        self.needed.append(divisor.term != 0)
        factor = self._factor()
        return dividend.term == self.domain.division.exact(factor, divisor.term)

    def _factor(self) -> Expr:
        """A fresh whole number."""
        self.factors += 1
        return self.domain.leaf(f"factor!{self.factors}", index).term

    def _compare(self, op: Op, a: Number, b: Number) -> Truth:
        result = operate(op, a, b, self.domain.division)
        assert not isinstance(result, int | float | Wide | Whole | Ieee) or isinstance(result, bool)
        return result

    def _open(self, key: str, holds: bool = True) -> Expr:
        """A truth value that nothing is known of; the same for the same question."""
        found = self.open.setdefault(key, z3.Bool(f"open!{len(self.open)}"))
        return found if holds else z3.Not(found)

    def _predicate(self, formula: Function, certain: bool) -> Truth:
        name, args = formula.name, formula.args
        match name:
            case "uses":
                return self._uses(formula)
            case "divides" | "aligned":
                number, node = args if name == "divides" else (args[1], args[0])
                return self._fact(formula, node, self._divisible(self.number(number, certain)), certain)
            case "fits":
                dtype = self._type(args[1])
                if dtype is None:
                    raise Unsupported("`fits` in a type that is not known")
                return self._fact(formula, args[0], _fits(dtype, self.domain.number), certain)
            case "constant" | "varies" | "target.has" | "target.width":  # bear on no value
                return self._open(_text(formula))
        if name in self.externs:
            return self.externs[name](*[self.number(arg) for arg in args])
        self.untold.add(name)
        return self._open(_text(formula))

    def _uses(self, formula: Function) -> Truth:
        a, b = formula.args
        if isinstance(a, Name) and isinstance(b, Name):
            if a.name == b.name and a.name in self.sides.shape.steps:
                return True
            used = self.sides.shape.uses.get((a.name, b.name))
            if used is not None and a.name in self.sides.shape.names:
                return used
        return self._open(_text(formula))

    def _fact(self, formula: Function, node: Formula, fact: Fact, certain: bool) -> Truth:
        """A fact about an expression: holds if its truth value does."""
        assert isinstance(node, Name)
        if certain:
            self.known.append((node.name, fact, self.in_share))
            return True
        holds = self._open(_text(formula))
        self.known.append((node.name, lambda term, dtype: z3.Implies(holds, fact(term, dtype)), self.in_share))
        return holds

    def _divisible(self, number: Number) -> Fact:
        def fact(term: Expr, dtype: DType) -> Expr:
            value = self.domain.number(term, dtype)
            if isinstance(value, Ieee):
                return FALSE
            if isinstance(value, Whole) and not isinstance(number, Wide | Ieee | float):
                divisor = number.term if isinstance(number, Whole) else z3.IntVal(int(number))
                factor = self._factor()
                return value.term == self.domain.division.exact(factor, divisor)
            rest = operate(ops.FLOORMOD, value, number, self.domain.division)
            assert isinstance(rest, Wide | Whole)
            zero = operate(ops.EQ, number, 0, self.domain.division)
            none = operate(ops.EQ, value, 0, self.domain.division)
            some = operate(ops.EQ, rest, 0, self.domain.division)
            if isinstance(zero, bool):
                return none if zero else some
            return z3.If(zero, none, some)

        return fact

    # --- bounds ------------------------------------------------------------------------------------------------------

    def _bounds_of(self, formula: Formula) -> tuple[Number, Number]:
        """The bounds that are known of an expression: two fresh numbers with all its values between them."""
        assert isinstance(formula, Name)
        name = formula.name
        if name in self.sides.counters or name in self.sides.shape.numbers or name in self.sides.parameters:
            number = self.number(formula)
            return number, number
        key = f"{name} alone" if self.in_share else name
        if key not in self.bounds:
            self.bounds[key] = self._fresh_bounds(name, key)
        return self.bounds[key]

    def _fresh_bounds(self, name: str, key: str) -> tuple[Number, Number]:
        if name in self.sides.shape.steps:
            return 0, max(0, self.sides.shape.steps[name] - 1)
        found = self.sides.named.get(name)
        dtype = found.dtype if isinstance(found, Value) else self.sides.shape.names.get(name)
        if dtype is None:
            raise Unsupported(f"the bounds of `{name}`")
        if dtype.is_float:
            return float("-inf"), float("inf")
        low, high = self._between(key, dtype.scalar)
        self.known.append((name, lambda term, dtype: _all([
            self._truth_of(ops.LE, low, self.domain.number(term, dtype)),
            self._truth_of(ops.LE, self.domain.number(term, dtype), high),
        ]), self.in_share))  # fmt: skip
        return low, high

    def _between(self, name: str, dtype: DType) -> tuple[Number, Number]:
        low, high = (self.domain.leaf(f"{side}({name})", dtype).term for side in ("min", "max"))
        return self.domain.number(low, dtype), self.domain.number(high, dtype)

    def _truth_of(self, op: Op, a: Number, b: Number) -> Expr:
        result = operate(op, a, b, self.domain.division)
        return z3.BoolVal(result) if isinstance(result, bool) else result

    # --- numbers -----------------------------------------------------------------------------------------------------

    def number(self, formula: Formula, certain: bool = False) -> Number:
        """The mathematical value of a formula."""
        match formula:
            case Literal():
                return formula.value
            case Name():
                return self._named(formula.name)
            case Operation():
                return self._operation(formula, certain)
            case Function():
                return self._call(formula)
            case _:
                raise Unsupported("a formula that is no number")

    def _named(self, name: str) -> Number:
        sides = self.sides
        known = sides.counters.get(name, sides.shape.numbers.get(name, sides.parameters.get(name)))
        if isinstance(known, int):
            return known
        found = sides.named.get(name) or sides.leaf(name, constant=True)
        if not isinstance(found, Value):
            raise Unsupported(f"the number `{name}`")
        return self.domain.number(found.lanes[0].term, found.dtype.scalar)

    def _operation(self, formula: Operation, certain: bool) -> Number:
        op = formula.op
        parts = [self.number(part, certain) for part in formula.args]
        if op is ops.NEG:
            op, parts = ops.SUB, [0, parts[0]]
            if isinstance(parts[1], Ieee):
                return Ieee(z3.fpNeg(parts[1].term), parts[1].dtype)
        if op is ops.NOT:
            op, parts = ops.SUB, [-1, parts[0]]
        if op in (ops.FLOORDIV, ops.FLOORMOD):
            if parts[1] == 0 and isinstance(parts[1], int):
                raise Unsupported("a division by zero in a guard")
            if certain and isinstance(parts[1], Wide | Whole):
                self.needed.append(self._truth_of(ops.NE, parts[1], 0))
        result = operate(op, parts[0], parts[1], self.domain.division)
        if not isinstance(result, bool | int | float | Wide | Whole | Ieee):
            raise Unsupported("a truth value as a number")
        return result

    def _call(self, formula: Function) -> Number:
        name, args = formula.name, formula.args
        shape = self.sides.shape
        if name in ("min", "max"):
            if len(args) == 2:
                op = ops.MIN if name == "min" else ops.MAX
                result = operate(op, self.number(args[0]), self.number(args[1]), self.domain.division)
                assert isinstance(result, bool | int | float | Wide | Whole | Ieee)
                return result
            return self._bounds_of(args[0])[name == "max"]
        first = args[0].name if args and isinstance(args[0], Name) else ""
        if name == "extent" and first in shape.steps:
            return shape.steps[first]
        if name == "width":
            return self._width(first)
        if name == "target.half":  # one of the places where a target may have a vector split
            lanes = self.number(args[0])
            if isinstance(lanes, int):
                return max(1, lanes // 2)
        if name == "bits":
            dtype = self._type(args[0]) or self._dtype_of(first)
            if dtype is not None:
                return dtype.bits
        if name == "size":
            return self.domain.size(first)
        self.untold.add(name)
        raise Unsupported(f"`{name}`")

    def _width(self, name: str) -> int:
        if name in self.sides.shape.packs:
            return self.sides.shape.packs[name]
        dtype = self._dtype_of(name)
        if dtype is None:
            raise Unsupported(f"the width of `{name}`")
        return dtype.lanes

    def _dtype_of(self, name: str) -> DType | None:
        found = self.sides.named.get(name)
        if isinstance(found, Value):
            return found.dtype
        if name in self.sides.shape.steps:
            return index
        return self.sides.shape.names.get(name)

    def _type(self, formula: Formula) -> DType | None:
        """The type that a formula stands for, if it does for one."""
        match formula:
            case TypeName():
                return formula.dtype
            case Name():
                return self.sides.shape.types.get(formula.name)
            case Function() if formula.name == "dtype" and isinstance(formula.args[0], Name):
                dtype = self._dtype_of(formula.args[0].name)
                return dtype.scalar if dtype is not None else None
            case _:
                return None

    # --- {…} ---------------------------------------------------------------------------------------------------------

    def computed(self, formula: Formula, dtype: DType) -> Lane:
        """The value of `{formula}` as a constant of a scalar type, each step in its type, as the engine folds it."""
        match formula:
            case Operation() if formula.op in (ops.CAST, ops.BITCAST):
                source = self._constant_type(formula.args[0]) or dtype
                target = self.sides.type(formula.attrs[0]) if formula.attrs else dtype
                inner = self.computed(formula.args[0], source)
                return self._in(self.domain.apply(formula.op, source, target, [inner]), target, dtype)
            case Operation():
                return self._folded(formula, dtype)
            case Function() if formula.name == "identity":
                reducer = self.sides.reducer(Name(_name(formula.args[0]), formula.span))
                return self.domain.constant(dtype, ops.identity_of(reducer, dtype))
            case Name() if self._constant_type(formula) is not None:
                found = self.sides.named.get(formula.name) or self.sides.leaf(formula.name, constant=True)
                assert isinstance(found, Value)
                return self._in(found.lanes[0], found.dtype.scalar, dtype)
            case _:
                number = self.number(formula)
                if isinstance(number, bool | int | float):
                    if isinstance(number, float) and not dtype.is_float:
                        raise Unsupported(f"{number} as {dtype}")
                    return self.domain.constant(dtype, number)
                return self.domain.in_type(number, dtype)

    def _folded(self, formula: Operation, dtype: DType) -> Lane:
        op = formula.op
        inner = self._constant_type(formula) or dtype
        if op is ops.LOG2 and inner.is_int:
            return self._in(self.domain.whole_log2(self.computed(formula.args[0], inner), inner), inner, dtype)
        if op is ops.WHERE:
            condition = self._constant_type(formula.args[0]) or bool_
            parts = [self.computed(formula.args[0], condition), *(self.computed(a, inner) for a in formula.args[1:])]
        else:
            parts = [self.computed(part, inner) for part in formula.args]
        target = bool_ if op.negated is not None else inner
        return self._in(self.domain.apply(op, inner, target, parts), target, dtype)

    def _in(self, lane: Lane, source: DType, target: DType) -> Lane:
        return lane if source is target else self.domain.apply(ops.CAST, source, target, [lane])

    def _constant_type(self, formula: Formula) -> DType | None:
        """The type of the first constant in a formula: its arithmetic is done in that."""
        match formula:
            case Name():
                known = (self.sides.counters, self.sides.shape.numbers, self.sides.parameters)
                if any(formula.name in names for names in known):
                    return None
                dtype = self._dtype_of(formula.name)
                return dtype.scalar if dtype is not None and dtype.kind != "pointer" else None
            case Operation() if formula.op in (ops.CAST, ops.BITCAST):
                return self.sides.type(formula.attrs[0]) if formula.attrs else None
            case Operation() if formula.op is ops.WHERE:
                return self._constant_type(formula.args[1]) or self._constant_type(formula.args[2])
            case Operation():
                return next(filter(None, map(self._constant_type, formula.args)), None)
            case _:
                return None

    # --- what is known -----------------------------------------------------------------------------------------------

    def assumptions(self) -> list[Expr]:
        """What the guard says of every value of the names, in each lane and step, after both sides were walked."""
        found = list(self.needed)
        for name, fact, alone in self.known:
            for term, dtype, defined in self._values(name, alone):
                said = fact(term, dtype)
                found.append(said if z3.is_true(defined) else z3.Implies(defined, said))
        return found

    def _values(self, name: str, alone: bool) -> Iterable[tuple[Expr, DType, Expr]]:
        value = self.sides.named.get(name)
        if isinstance(value, Value) and not alone:
            return [(lane.term, value.dtype.scalar, lane.defined) for lane in value.lanes]
        assert isinstance(self.domain, Symbolic)
        leaves = list(self.domain.leaves.items())
        return [(term, dtype, TRUE) for key, (dtype, term) in leaves if _LEAF.split(key)[0] == name]


_LEAF = re.compile(r"[.@]")


def _fits(dtype: DType, number: Callable[[Expr, DType], Number]) -> Fact:
    def fact(term: Expr, source: DType) -> Expr:
        value = number(term, source)
        if isinstance(value, Ieee):
            return FALSE
        if dtype.kind == "index":
            return TRUE
        if dtype.is_float:
            whole = 1 << {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype.scalar.name]
            low, high = -whole, whole
        else:
            low, high = int(dtype.lowest), int(dtype.highest)
        division = Division()
        return _all([_expr(operate(ops.LE, low, value, division)), _expr(operate(ops.LE, value, high, division))])

    return fact


def _expr(truth: object) -> Expr:
    return z3.BoolVal(truth) if isinstance(truth, bool) else truth


def _both(parts: Iterable[Truth]) -> Truth:
    found = list(parts)
    if any(part is False for part in found):
        return False
    left = [part for part in found if not isinstance(part, bool)]
    return z3.And(*left) if len(left) > 1 else left[0] if left else True


def _all(parts: list[Expr]) -> Expr:
    return z3.And(*parts)


def _name(formula: Formula) -> str:
    assert isinstance(formula, Name)
    return formula.name


def _text(formula: Formula) -> str:
    """The same for the same formula, wherever it stands."""
    match formula:
        case Name():
            return formula.name
        case Literal() | Text():
            return repr(formula.value)
        case TypeName():
            return formula.dtype.name
        case Function():
            return f"{formula.name}({', '.join(map(_text, formula.args))})"
        case Operation():
            return f"{formula.op.name}({', '.join(map(_text, formula.args))})"
        case Logic():
            return f"{formula.word}({', '.join(map(_text, formula.args))})"
        case InRange():
            return f"in({_text(formula.value)}, {_text(formula.low)}, {_text(formula.high)})"
