"""The value of a side of a rule in one shape: a walk over the term, in the world of a domain.

Loops are unrolled for the number of steps that the shape says: a name that may vary with a range is another leaf in
each step. Vectors are tuples of lanes. A store is a list of writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from ...engine import dtypes, ops
from ...engine.dtypes import DType
from ...engine.language.syntax import (
    Apply,
    Attr,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Formula,
    Lanes,
    Literal,
    Name,
    Number,
    Operation,
    Pack,
    Term,
    TypeName,
    Var,
    VarKind,
)
from ...engine.ops import Op
from .domain import Buffer, Domain, Lane
from .exact import Unsupported
from .shapes import Shape

SAME_TYPE = frozenset(
    op for op in ops.ELEMENTWISE if op.negated is None and op not in (ops.WHERE, ops.CAST, ops.BITCAST)
)
"""Operators whose operands and result have one type."""


class Impossible(Exception):
    """The shape does not fit the rule: a lane that is not there, types that do not agree. No graph looks like this."""


@dataclass(frozen=True, slots=True)
class Value:
    """The lanes of a value."""

    dtype: DType
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """One element that is stored where `gate` holds."""

    buffer: Buffer
    at: Lane
    index: DType
    offset: int
    value: Lane
    gate: Lane


Effect = tuple[Write, ...]
Result = Value | Effect | Buffer


@dataclass(slots=True)
class Sides:
    """The walk over the terms of one rule in one shape."""

    domain: Domain
    shape: Shape
    parameters: dict[str, Op | int] = field(default_factory=dict)
    named: dict[str, Result] = field(default_factory=dict)  # by `n@…` on the left
    lets: dict[str, tuple[Term, DType | None]] = field(default_factory=dict)
    known: dict[tuple[object, ...], Result] = field(default_factory=dict)  # values of `let`s
    counters: dict[str, int] = field(default_factory=dict)
    operands: dict[str, tuple[int, DType]] = field(default_factory=dict)  # of packs: which one a name stands for here
    steps: dict[str, int] = field(default_factory=dict)  # of the ranges around this place
    accumulators: dict[str, Value] = field(default_factory=dict)
    computed: list[Lane] = field(default_factory=list)  # of `{…}`: without a value the rule does not fire
    opaque: bool = False  # whether a name may stand for something with an accumulator in it
    is_left: bool = True
    formula: FormulaValue | None = None

    # --- terms -------------------------------------------------------------------------------------------------------

    def value(self, term: Term, expected: DType | None = None) -> Value:
        """The value of a term that has one."""
        result = self.term(term, expected)
        if not isinstance(result, Value):
            raise Impossible
        return result

    def term(self, term: Term, expected: DType | None = None) -> Result:
        """A term's value; `expected` is the type of a constant that says none itself."""
        match term:
            case Var():
                return self._variable(term, expected)
            case Literal():
                return self._constant(expected, term.value)
            case Compute():
                return self._computed(term, expected)
            case Bind():
                result = self.named[term.name] = self.term(term.term, expected)
                return result
            case Apply():
                return self._application(term, expected)
            case Lanes():
                return self._vector(term, expected)
            case Chain():
                return self._chain(term, expected)
            case _:
                raise Unsupported(f"a {type(term).__name__.lower()}")

    def _constant(self, dtype: DType | None, value: bool | float) -> Value:
        if dtype is None or dtype.kind in ("void", "pointer"):
            raise Impossible
        if isinstance(value, float) and not dtype.is_float:
            raise Impossible
        return Value(dtype, (self.domain.constant(dtype.scalar, value),) * dtype.lanes)

    def _variable(self, term: Var, expected: DType | None) -> Result:
        name = term.name
        if name in self.counters:
            return self._constant(expected, self.counters[name])
        if name in self.operands:
            which, dtype = self.operands[name]
            return self.leaf(f"{name}.{which}", dtype)
        if name in self.lets:
            return self._let(name)
        if name in self.named:
            return self.named[name]
        number = self.shape.numbers.get(name, self.parameters.get(name))
        if isinstance(number, int):
            return self._constant(expected, number)
        return self.leaf(name, constant=term.kind is VarKind.CONST)

    def _let(self, name: str) -> Result:
        """A part of the right side: its value in the steps around this place, not around the `let`; read once in each."""
        if self.accumulators:  # whose values change from step to step
            return self.term(*self.lets[name])
        around = (self.steps, self.counters, self.operands)
        key = (name, *(tuple(sorted(part.items(), key=str)) for part in around))
        if key not in self.known:
            self.known[key] = self.term(*self.lets[name])
        return self.known[key]

    def leaf(self, name: str, dtype: DType | None = None, constant: bool = False) -> Result:
        """What a name of the rule stands for, in this step of the loops around it."""
        if name in self.steps:
            return Value(dtypes.index, (self.domain.constant(dtypes.index, self.steps[name]),))
        if name in self.shape.steps:
            return Value(dtypes.index, (self.domain.leaf(f"{name}!outside", dtypes.index),))
        dtype = dtype or self.shape.names.get(name)
        if dtype is None:
            raise Unsupported(f"`{name}`, whose type the rule does not say")
        if dtype.element is not None:
            return Buffer(name, dtype.element)
        if dtype.kind in ("void", "pointer"):
            raise Unsupported(f"`{name}`, which has no value")
        if self.opaque and not constant:
            raise Unsupported("an accumulator that a name may contain")
        steps = "" if constant else self._suffix(name)
        if constant:  # the same number in each lane
            return Value(dtype, (self.domain.leaf(name, dtype.scalar),) * dtype.lanes)
        lanes = [f".{k}" for k in range(dtype.lanes)] if dtype.lanes > 1 else [""]
        return Value(dtype, tuple(self.domain.leaf(f"{name}{lane}{steps}", dtype.scalar) for lane in lanes))

    def _suffix(self, name: str) -> str:
        """The step of each loop around that the name may vary with."""
        varies = [r for r in sorted(self.steps) if self.shape.uses.get((name, r.split(".")[0]), True)]
        return "".join(f"@{r}={self.steps[r]}" for r in varies)

    def _computed(self, term: Compute, expected: DType | None) -> Value:
        assert self.formula is not None
        formula = term.formula
        if isinstance(formula, Operation) and formula.op in (ops.CAST, ops.BITCAST) and formula.attrs:
            lanes = expected.lanes if expected is not None else 1
            expected = self.type(formula.attrs[0]).vec(lanes)
        if isinstance(formula, Name) and expected is None:
            found = self.leaf(formula.name, constant=True)
            expected = found.dtype if isinstance(found, Value) else None
        if expected is None or expected.kind in ("void", "pointer"):
            raise Impossible
        lane = self.formula.computed(formula, expected.scalar)
        self.computed.append(lane)
        return Value(expected, (lane,) * expected.lanes)

    def _chain(self, term: Chain, expected: DType | None) -> Value:
        """The terms of a chain and what is left, in one order: the operator is associative and commutative.

        On floats it is not associative; there the rest stands on both sides of the terms, as in `(a + x) + b`. A share
        is two terms, for each of which its guard holds.
        """
        if not term.terms and not term.shares and term.rest is not None:
            return self.value(term.rest, expected)
        values = self.alike(term.terms, expected) if term.terms else []
        dtype = values[0].dtype if values else expected or self.shape.root
        for share in term.shares:
            both = [self._other(share.name.name, f".{number}", dtype) for number in (0, 1)]
            self.named[share.name.name] = shared = self._operator(term.op, both)
            values.append(shared)
        if term.rest is not None:
            values = self._with_rest(term.op, values, term.rest.name, dtype)
        result = values[0]
        for one in values[1:]:
            result = self._operator(term.op, [result, one])
        return result

    def _with_rest(self, op: Op, values: list[Value], name: str, dtype: DType) -> list[Value]:
        if not dtype.is_float:
            return [*values, self._other(name, "", dtype)]
        before, after = (self._other(name, side, dtype) for side in (".0", ".1"))
        self.named[name] = self._operator(op, [before, after])
        return [before, *values, after]

    def _other(self, name: str, which: str, dtype: DType) -> Value:
        found = self.leaf(f"{name}{which}", dtype)
        assert isinstance(found, Value)
        return found

    # --- operators ---------------------------------------------------------------------------------------------------

    def _application(self, term: Apply, expected: DType | None) -> Result:
        op = term.op
        if op in SAME_TYPE:
            return self._operator(op, self.alike(term.args, expected))
        if op.negated is not None:
            return self._operator(op, self.alike(term.args, None))
        match op:
            case ops.WHERE:
                branches = self.alike(term.args[1:], expected)
                condition = self.value(term.args[0], dtypes.bool_.vec(branches[0].dtype.lanes))
                return self._operator(op, [condition, *branches])
            case ops.CAST | ops.BITCAST:
                return self._conversion(term)
            case ops.GEP:
                return self._lane(term)
            case ops.WIDEN:
                return self._widen(term, expected)
            case ops.FOLD_LANES:
                return self._fold_lanes(term, expected)
            case ops.LOAD:
                return self._load(term, expected)
            case ops.STORE:
                return self._store(term)
            case ops.SINK:
                return tuple(write for effect in self._spread(term.args) for write in self._effect(effect))
            case ops.REDUCE:
                return self._reduce(term, expected)
            case ops.PHI:
                return self._phi(term, expected)
            case ops.DEFINE_ACC:
                return self._accumulator(term)
            case ops.RANGE | ops.SPECIAL | ops.VAR:
                return self._counter(term, expected)
            case _:
                raise Unsupported(f"`{op.name}`")

    def alike(self, terms: Sequence[Term], expected: DType | None) -> list[Value]:
        """Operands of one type: constants take it from the first that says it."""
        dtype = expected
        for term in terms:
            if self._says_type(term):
                dtype = self.value(term, expected).dtype
                break
        values = [self.value(term, dtype) for term in terms]
        if any(one.dtype is not values[0].dtype for one in values):
            raise Impossible
        return values

    def _says_type(self, term: Term) -> bool:
        match term:
            case Literal() | Compute():
                return False
            case Var():
                number = self.shape.numbers.get(term.name, self.parameters.get(term.name))
                return term.name not in self.counters and number is None
            case Apply():
                if term.op in SAME_TYPE:
                    return any(self._says_type(arg) for arg in term.args)
                return term.op is not ops.WHERE or any(self._says_type(arg) for arg in term.args[1:])
            case Bind():
                return self._says_type(term.term)
            case Chain():
                return not term.terms or any(map(self._says_type, term.terms))
            case _:
                return True

    def _operator(self, op: Op, operands: Sequence[Value]) -> Value:
        """An elementwise operator, lane by lane."""
        source = operands[-1].dtype
        _check(all(one.dtype.lanes == source.lanes for one in operands))
        target = dtypes.bool_.vec(source.lanes) if op.negated is not None else source
        if op.evaluate is not None:
            try:
                op.typing(None, tuple(one.dtype for one in operands), None)
            except Exception as problem:
                raise Impossible from problem
        rows = zip(*[one.lanes for one in operands], strict=True)
        return Value(target, tuple(self.domain.apply(op, source.scalar, target.scalar, row) for row in rows))

    def _conversion(self, term: Apply) -> Value:
        target = self.type(term.attrs[0]) if term.attrs else None
        if target is None:
            raise Unsupported("a conversion to a type that has no name")
        source = self.value(term.args[0])
        _check(not source.dtype.kind == target.kind == "index")
        if term.op is ops.BITCAST:
            kinds = {source.dtype.kind, target.kind}
            _check(source.dtype.bits == target.bits and not kinds & {"index", "bool"})
        rows = [self.domain.apply(term.op, source.dtype.scalar, target, [lane]) for lane in source.lanes]
        return Value(target.vec(len(rows)), tuple(rows))

    def type(self, attr: Attr | Formula) -> DType:
        """The type that stands in brackets."""
        if isinstance(attr, TypeName):
            return attr.dtype
        if isinstance(attr, Var | Name) and attr.name in self.shape.types:
            return self.shape.types[attr.name]
        raise Unsupported("a type that is not named")

    def number(self, attr: Attr | Formula) -> int:
        """The number that stands in brackets, or bounds lanes."""
        if isinstance(attr, Number) and isinstance(attr.value, int):
            return attr.value
        if isinstance(attr, Var | Name):
            known = self.counters.get(attr.name, self.shape.numbers.get(attr.name, self.parameters.get(attr.name)))
            if isinstance(known, int):
                return known
        assert self.formula is not None
        if not isinstance(attr, Var | Op | TypeName):
            found = self.formula.number(attr)
            if isinstance(found, int):
                return found
        raise Unsupported("a number that is not known")

    def reducer(self, attr: Attr) -> Op:
        """The operator that stands in brackets."""
        if isinstance(attr, Op):
            return attr
        if isinstance(attr, Var | Name):
            found = self.shape.numbers.get(attr.name, self.parameters.get(attr.name))
            if isinstance(found, Op):
                return found
        raise Unsupported("an operator that is not known")

    # --- lanes -------------------------------------------------------------------------------------------------------

    def _lane(self, term: Apply) -> Result:
        (argument,) = term.args
        number = self.number(term.attrs[0]) if term.attrs else 0
        if isinstance(argument, Pack):
            found = list(self._spread([argument]))
            _check(0 <= number < len(found))
            return found[number]
        vector = self.value(argument)
        if vector.dtype.lanes == 1 and not self.is_left:
            return vector
        _check(vector.dtype.lanes > 1 and 0 <= number < vector.dtype.lanes)
        return Value(vector.dtype.scalar, (vector.lanes[number],))

    def _vector(self, term: Lanes, expected: DType | None) -> Value:
        scalar = expected.scalar if expected is not None else None
        elements = list(self._elements(term.elements, scalar))
        typed = next((one.dtype for one in elements if isinstance(one, Value)), None)
        _check(typed is not None and all(isinstance(one, Value) and one.dtype is typed for one in elements))
        assert typed is not None
        _check(typed.lanes == 1 and (len(elements) > 1 or not self.is_left))
        lanes = tuple(one.lanes[0] for one in elements if isinstance(one, Value))
        return Value(typed.vec(len(lanes)), lanes)

    def _elements(self, elements: Sequence[Term], scalar: DType | None) -> Iterator[Result]:
        for element in elements:
            if isinstance(element, Comprehension):
                shadowed = self.counters.get(element.counter)
                for number in range(self.number(element.low), self.number(element.high)):
                    self.counters[element.counter] = number
                    yield from self._elements([element.term], scalar)
                self.counters.pop(element.counter, None)
                if shadowed is not None:
                    self.counters[element.counter] = shadowed
            elif isinstance(element, Pack):
                yield from self._spread([element], scalar)
            else:
                yield self.term(element, scalar)

    def _widen(self, term: Apply, expected: DType | None) -> Result:
        over = self._range_names(term.args[1:])
        _check(len(over) == 1)
        parts = [self._at(over[0], step, term.args[0], expected) for step in range(self.shape.steps[over[0]])]
        if all(isinstance(one, tuple) for one in parts):
            return tuple(write for one in parts if isinstance(one, tuple) for write in one)
        values = [one for one in parts if isinstance(one, Value)]
        _check(len(values) == len(parts) and bool(values))
        lanes = tuple(lane for one in values for lane in one.lanes)
        return Value(values[0].dtype.vec(len(lanes)), lanes)

    def _at(self, name: str, step: int, term: Term, expected: DType | None) -> Result:
        """A term in one step of a range."""
        outer = self.steps.get(name)
        self.steps[name] = step
        if expected is not None and expected.lanes > 1 and expected.lanes % max(1, self.shape.steps[name]) == 0:
            expected = expected.vec(expected.lanes // max(1, self.shape.steps[name]))
        result = self.term(term, expected)
        del self.steps[name]
        if outer is not None:
            self.steps[name] = outer
        return result

    def _fold_lanes(self, term: Apply, expected: DType | None) -> Value:
        value = self.value(term.args[0])
        if len(term.attrs) < 2:
            raise Unsupported("`fold_lanes` without brackets")
        reducer, width = self.reducer(term.attrs[0]), self.number(term.attrs[1])
        _check(width > 0 and value.dtype.lanes % width == 0)
        groups = [value.lanes[start : start + width] for start in range(0, value.dtype.lanes, width)]
        result = Value(value.dtype.vec(width), groups[0])
        for group in groups[1:]:
            result = self._operator(reducer, [result, Value(result.dtype, group)])
        return result

    # --- several operands --------------------------------------------------------------------------------------------

    def _spread(self, terms: Sequence[Term], scalar: DType | None = None) -> Iterator[Result]:
        """The operands, packs spread out."""
        for term in terms:
            if not isinstance(term, Pack):
                yield self.term(term, scalar)
                continue
            names = sorted({part.name for part in _variables(term.term) if part.name in self.shape.packs})
            if not names:
                raise Unsupported("`...` of something else than a name")
            for number in range(self.shape.packs[names[0]]):
                yield self._element(term.term, names, number, scalar)

    def _element(self, term: Term, names: Sequence[str], number: int, scalar: DType | None) -> Result:
        """One operand of a pack: the names in it stand for their operand of that number."""
        dtype = scalar if scalar is not None else self.shape.root.scalar
        self.operands.update((name, (number, dtype)) for name in names)
        result = self.term(term, scalar)
        for name in names:
            del self.operands[name]
        return result

    def _range_names(self, terms: Sequence[Term]) -> list[str]:
        """The names of the ranges that a reduction runs over."""
        found: list[str] = []
        for term in terms:
            inner = term.term if isinstance(term, Pack) else term
            if not isinstance(inner, Var):
                raise Unsupported("a range that is no plain name")
            if isinstance(term, Pack):
                found += [f"{inner.name}.{number}" for number in range(self.shape.packs[inner.name])]
            else:
                found.append(inner.name)
        _check(all(name in self.shape.steps for name in found))
        return found

    # --- reductions --------------------------------------------------------------------------------------------------

    def _reduce(self, term: Apply, expected: DType | None) -> Value:
        if not term.attrs:
            raise Unsupported("a reduction by an operator that has no name")
        reducer = self.reducer(term.attrs[0])
        names = self._range_names(term.args[1:])
        result: Value | None = None
        dtype = expected
        for steps in self._iterations(names):
            one = self._in_steps(steps, term.args[0], expected)
            dtype = one.dtype
            if result is not None:
                result = self._operator(reducer, [result, one])
            else:
                result = self._first(reducer, one)
        if result is not None:
            return result
        return self._identity(reducer, self._type_without_steps(term.args[0], names, dtype))

    def _first(self, reducer: Op, one: Value) -> Value:
        """After the first step. A float sum may start with the step itself: -0.0 alone may stay, or become 0.0."""
        if not (reducer is ops.ADD and one.dtype.is_float):
            return one
        begun = self._operator(reducer, [self._identity(reducer, one.dtype), one])
        return Value(one.dtype, tuple(map(self.domain.either, begun.lanes, one.lanes)))

    def _type_without_steps(self, term: Term, names: Sequence[str], expected: DType | None) -> DType:
        """The type of a reduction that has no step: that of its value in any."""
        return self._in_steps(dict.fromkeys(names, 0), term, expected).dtype

    def _identity(self, reducer: Op, dtype: DType) -> Value:
        if dtype.kind == "index" and reducer in (ops.MAX, ops.MIN):
            raise Unsupported("the start of an extremum of indices, which is infinite")
        start = self.domain.constant(dtype.scalar, ops.identity_of(reducer, dtype.scalar))
        return Value(dtype, (start,) * dtype.lanes)

    def _iterations(self, names: Sequence[str]) -> Iterator[dict[str, int]]:
        for numbers in product(*(range(self.shape.steps[name]) for name in names)):
            yield dict(zip(names, numbers, strict=True))

    def _in_steps(self, steps: dict[str, int], term: Term, expected: DType | None) -> Value:
        outer = dict(self.steps)
        self.steps.update(steps)
        result = self.value(term, expected)
        self.steps = outer
        return result

    def _phi(self, term: Apply, expected: DType | None) -> Value:
        """The loop: the accumulator starts at its first operand, and each step gives it the new value."""
        accumulator = term.args[0]
        if not (isinstance(accumulator, Apply) and accumulator.op is ops.DEFINE_ACC):
            raise Unsupported("an accumulator that has only a name")
        self.opaque = self.is_left
        key = _key(accumulator)
        current = self.value(accumulator.args[0], expected)
        for steps in self._iterations(self._range_names(accumulator.args[1:])):
            self.accumulators[key] = current
            current = self._in_steps(steps, term.args[1], current.dtype)
        self.accumulators.pop(key, None)
        return current

    def _accumulator(self, term: Apply) -> Value:
        key = _key(term)
        if key in self.accumulators:
            return self.accumulators[key]
        raise Unsupported("an accumulator outside of its loop")

    def _counter(self, term: Apply, expected: DType | None) -> Value:
        """A loop, a thread or a variable that the brackets name: one number, whatever its type is."""
        if not term.attrs or not isinstance(term.attrs[0], Var | Name):
            raise Unsupported(f"`{term.op.name}` without a name in brackets")
        if term.op is ops.VAR:
            dtype, end = self.type(term.attrs[1]) if len(term.attrs) > 1 else self.shape.root, None
        else:
            bound = self.value(term.args[0], expected)
            dtype, end = bound.dtype, bound.lanes[0]
        _check(dtype.kind in ("sint", "uint", "index"))
        return Value(dtype, (self.domain.count(f"{term.op.name}!{term.attrs[0].name}", end, dtype),))

    # --- memory ------------------------------------------------------------------------------------------------------

    def _buffer(self, term: Term) -> Buffer:
        result = self.term(term)
        if not isinstance(result, Buffer):
            raise Impossible
        return result

    def _effect(self, result: Result) -> Effect:
        if not isinstance(result, tuple):
            raise Impossible
        return result

    def _load(self, term: Apply, expected: DType | None) -> Value:
        if any(isinstance(arg, Pack) for arg in term.args[:2]):
            raise Unsupported("a load whose operands have no names")
        buffer, at = self._buffer(term.args[0]), self.value(term.args[1], dtypes.index)
        _check(at.dtype.kind in ("index", "sint", "uint"))
        count = self.number(term.attrs[0]) if term.attrs else at.dtype.lanes
        _check(at.dtype.lanes == 1 or count == at.dtype.lanes)
        dtype = buffer.element.vec(count)
        rest = self._gate_operands(term.args[2:], at.dtype, dtype)
        loaded = [
            self.domain.load(buffer, at.lanes[k if at.dtype.lanes > 1 else 0], at.dtype,
                             0 if at.dtype.lanes > 1 else k)
            for k in range(count)
        ]  # fmt: skip
        if rest:
            gate, other = rest
            _check(other.dtype is dtype)
            gates = gate.lanes * count if gate.dtype.lanes == 1 else gate.lanes
            _check(len(gates) == count)
            loaded = [
                self.domain.apply(ops.WHERE, dtype.scalar, dtype.scalar, row)
                for row in zip(gates, loaded, other.lanes, strict=True)
            ]
        return Value(dtype, tuple(loaded))

    def _gate_operands(self, terms: Sequence[Term], at: DType, dtype: DType) -> list[Value]:
        """Gate and alternative of a load; a pack stands for both, or for nothing."""
        if len(terms) == 1 and isinstance(terms[0], Pack) and isinstance(terms[0].term, Var):
            name = terms[0].term.name
            if self.shape.packs[name] != 2:
                _check(self.shape.packs[name] == 0)
                return []
            gate, other = self.leaf(f"{name}.0", dtypes.bool_.vec(at.lanes)), self.leaf(f"{name}.1", dtype)
            return [one for one in (gate, other) if isinstance(one, Value)]
        if len(terms) == 1 and isinstance(terms[0], Pack):
            return []
        if len(terms) == 2 and isinstance(terms[1], Pack):  # `load(x, y, true, ..._)`
            alternative = Value(dtype, tuple(self.domain.leaf(f"alternative!{k}", dtype.scalar)
                                             for k in range(dtype.lanes)))  # fmt: skip
            return [self.value(terms[0], dtypes.bool_), alternative]
        if not terms:
            return []
        gate_value = self.value(terms[0], dtypes.bool_)
        _check(gate_value.dtype.kind == "bool" and gate_value.dtype.lanes in (1, at.lanes))
        return [gate_value, self.value(terms[1], dtype)]

    def _store(self, term: Apply) -> Effect:
        buffer, at = self._buffer(term.args[0]), self.value(term.args[1], dtypes.index)
        value = self.value(term.args[2], buffer.element)
        _check(value.dtype.scalar is buffer.element and at.dtype.lanes in (1, value.dtype.lanes))
        _check(at.dtype.kind in ("index", "sint", "uint"))
        gates = self._store_gate(term.args[3:], value.dtype.lanes)
        many = at.dtype.lanes > 1
        return tuple(
            Write(buffer, at.lanes[k if many else 0], at.dtype, 0 if many else k, value.lanes[k], gates[k])
            for k in range(value.dtype.lanes)
        )

    def _store_gate(self, terms: Sequence[Term], count: int) -> Sequence[Lane]:
        always = [self.domain.constant(dtypes.bool_, True)] * count
        if not terms:
            return always
        if isinstance(terms[0], Pack):
            if isinstance(terms[0].term, Var) and self.shape.packs[terms[0].term.name] == 1:
                found = self.leaf(f"{terms[0].term.name}.0", dtypes.bool_)
                assert isinstance(found, Value)
                return found.lanes * count
            return always
        gate = self.value(terms[0], dtypes.bool_)
        _check(gate.dtype.kind == "bool" and gate.dtype.lanes in (1, count))
        return gate.lanes * count if gate.dtype.lanes == 1 else gate.lanes


class FormulaValue:
    """What the walk needs of formulas (`guards`): the value of `{…}` and of a number."""

    def computed(self, formula: Formula, dtype: DType) -> Lane:
        raise NotImplementedError

    def number(self, formula: Formula) -> object:
        raise NotImplementedError


def _check(fits: bool) -> None:
    if not fits:
        raise Impossible


def _variables(term: Term) -> Iterator[Var]:
    from ...engine.language.terms import walk

    return (part for part in walk(term) if isinstance(part, Var))


def _key(term: Apply) -> str:
    """A text that is equal for equal terms, wherever they stand in the file."""
    return repr(_bare(term))


def _bare(part: object) -> object:
    match part:
        case Apply():
            return (part.op.name, tuple(map(_bare, part.attrs)), tuple(map(_bare, part.args)))
        case Bind() | Pack():
            return (type(part).__name__, _bare(part.term))
        case Var() | Name():
            return part.name
        case Literal() | Number():
            return part.value
        case Compute():
            return ("{}", _bare(part.formula))
        case Op():
            return part.name
        case Operation():
            return (part.op.name, tuple(map(_bare, part.args)))
        case _:
            return repr(part)
