"""Builds the graph of a term without pattern forms. A literal takes the type of what stands beside it.

The term is built from the leaves up. Literals, and operations on nothing but literals, stay drafts until a typed
operand beside them, or the operator above, says what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .. import ops
from ..dtypes import DType, Scalar, bool_, float32, index
from ..errors import GraphError
from ..ops import AxisKind, Op, RangeArg
from ..uop import UOp, const, make
from .diagnostics import RuleError
from .syntax import (
    Apply,
    Attr,
    Comprehension,
    Compute,
    Formula,
    Lanes,
    Literal,
    Name,
    Number,
    Operation,
    Span,
    Term,
    TypeName,
    Var,
)


class TermError(RuleError):
    """A term has no graph: its types do not fit, or it has a form that only patterns have."""

    def __init__(self, span: Span, problem: str) -> None:
        super().__init__(f"{span}: {problem}")
        self.span, self.problem = span, problem


@dataclass(frozen=True, slots=True)
class Draft:
    """A literal (no operator), or an operator on drafts that all have its type."""

    span: Span
    op: Op | None
    value: Scalar
    parts: tuple[Part, ...]


Part = UOp | Draft
_Counters = dict[str, int]

SAME_TYPE = frozenset(
    op for op in ops.ELEMENTWISE if op.negated is None and op not in (ops.WHERE, ops.CAST, ops.BITCAST)
)
"""Operators whose operands and result have one type."""


def build_term(term: Term, names: Mapping[str, UOp], dtype: DType | None = None) -> UOp:
    """The graph of a term. `names` gives its free names; `dtype` is the type of a literal that stands alone.

    A literal whose type nothing says is an index, with a fraction a float32. Raises TermError with the place.
    """
    done: list[Part] = []
    stack: list[tuple[Term, _Counters, int]] = [(term, {}, -1)]
    while stack:
        here, counters, count = stack.pop()
        if count < 0:
            below = _below(here, counters)
            stack.append((here, counters, len(below)))
            stack += [(part, inner, -1) for part, inner in reversed(below)]
        else:
            parts = done[len(done) - count :]
            del done[len(done) - count :]
            done.append(_combine(here, parts, counters, names))
    return _settle(done[0], dtype)


def _below(term: Term, counters: _Counters) -> list[tuple[Term, _Counters]]:
    """The operands of a term; a comprehension gives its term once for each value of its counter."""
    match term:
        case Apply():
            return [(arg, counters) for arg in term.args]
        case Lanes():
            found: list[tuple[Term, _Counters]] = []
            for element in term.elements:
                if isinstance(element, Comprehension):
                    low, high = _whole(element.low, counters), _whole(element.high, counters)
                    found += [(element.term, {**counters, element.counter: k}) for k in range(low, high)]
                else:
                    found.append((element, counters))
            return found
        case _:
            return []


def _combine(term: Term, parts: list[Part], counters: _Counters, names: Mapping[str, UOp]) -> Part:
    match term:
        case Var():
            if term.name not in names:
                raise TermError(term.span, f"`{term.name}` is not described")
            return names[term.name]
        case Literal():
            return Draft(term.span, None, term.value, ())
        case Compute():
            return _computed(term, counters)
        case Lanes():
            return _lanes(term, parts)
        case Apply() if term.op is ops.ADD and _is_step_zero(term.args[1], counters):
            return parts[0]
        case Apply():
            return _apply(term, parts, counters)
        case _:
            raise TermError(term.span, "only a pattern can hold this")


def _is_step_zero(term: Term, counters: _Counters) -> bool:
    """Whether this is a lane counter in its first lane: `i + k` is then `i`, as everywhere in real graphs."""
    return isinstance(term, Compute) and isinstance(term.formula, Name) and counters.get(term.formula.name) == 0


def _computed(term: Compute, counters: _Counters) -> Part:
    """`int32(5)` is a constant of its type, any other `{…}` a number."""
    formula = term.formula
    if isinstance(formula, Operation) and formula.op is ops.CAST and isinstance(formula.args[0], Number):
        (dtype,) = formula.attrs
        assert isinstance(dtype, TypeName)
        return _constant(dtype.dtype, formula.args[0].value, term.span)
    return Draft(term.span, None, _number(formula, counters), ())


# --- operators -------------------------------------------------------------------------------------------------------


def _lanes(term: Lanes, parts: list[Part]) -> Part:
    if not parts:
        raise TermError(term.span, "a vector needs at least one lane")
    if len(parts) == 1:
        return parts[0]
    return _alike(ops.VECTORIZE, parts, term.span)


def _alike(op: Op, parts: list[Part], span: Span) -> Part:
    """An operator on operands of one type: a draft as long as none of them has one."""
    dtype = _type_among(parts)
    if dtype is None:
        return Draft(span, op, 0, tuple(parts))
    return _make(op, [_settle(part, dtype) for part in parts], span)


def _type_among(parts: list[Part]) -> DType | None:
    return next((part.dtype for part in parts if isinstance(part, UOp)), None)


def _apply(term: Apply, parts: list[Part], counters: _Counters) -> Part:
    op, span = term.op, term.span
    if op in SAME_TYPE or op is ops.VECTORIZE:
        return _alike(op, parts, span)
    if op is ops.WHERE:
        return _where(parts, span)
    if op.negated is not None or op is ops.PHI:
        dtype = _type_among(parts) or _default(parts)
        return _make(op, [_settle(part, dtype) for part in parts], span)
    special = _BUILDERS.get(op)
    if special is not None:
        return special(term, parts, [_attr(attr, counters, term) for attr in term.attrs])
    if op.arity == 0:
        raise TermError(span, f"a {op.name} is described after `given`")
    return _make(op, [_settle(part, None) for part in parts], span)


def _where(parts: list[Part], span: Span) -> Part:
    condition, *branches = parts
    dtype = _type_among(branches)
    if dtype is None:
        return Draft(span, ops.WHERE, 0, tuple(parts))
    return _make(ops.WHERE, [_settle(condition, bool_.vec(dtype.lanes)), *(_settle(b, dtype) for b in branches)], span)


def _make(op: Op, src: list[UOp], span: Span, dtype: DType | None = None, arg: object = None) -> UOp:
    try:
        return make(op, *src, dtype=dtype, arg=arg)
    except GraphError as problem:
        raise TermError(span, str(problem)) from None


_Builder = Callable[[Apply, list[Part], list[object]], UOp]


def _convert(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    operand = _settle(parts[0], None)
    dtype = attrs[0]
    assert isinstance(dtype, DType)
    return _make(term.op, [operand], term.span, dtype.vec(operand.dtype.lanes))


def _pick(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    return _make(term.op, [_settle(parts[0], None)], term.span, arg=attrs[0])


def _load(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    memory, at = _memory(term, parts), _settle(parts[1], index)
    element = memory.dtype.element
    assert element is not None
    lanes = attrs[0] if attrs else at.dtype.lanes
    assert isinstance(lanes, int)
    rest = [_settle(part, dtype) for part, dtype in zip(parts[2:], (bool_, element.vec(lanes)), strict=False)]
    return _make(ops.LOAD, [memory, at, *rest], term.span, element.vec(lanes))


def _store(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    memory, at = _memory(term, parts), _settle(parts[1], index)
    element = memory.dtype.element
    assert element is not None
    rest = [_settle(part, dtype) for part, dtype in zip(parts[2:], (element.vec(at.dtype.lanes), bool_), strict=False)]
    return _make(ops.STORE, [memory, at, *rest], term.span)


def _memory(term: Apply, parts: list[Part]) -> UOp:
    memory = parts[0]
    if isinstance(memory, Draft) or memory.dtype.element is None:
        raise TermError(term.args[0].span, "this must be a buffer: describe it after `given`, as `b: buffer[float32]`")
    return memory


def _reduce(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    return _make(term.op, [_settle(part, None) for part in parts], term.span, arg=attrs[0] if attrs else None)


def _fold_lanes(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    value = _settle(parts[0], None)
    reducer, lanes = attrs
    assert isinstance(lanes, int)
    return _make(term.op, [value], term.span, value.dtype.vec(lanes), reducer)


def _widen(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    value, over = (_settle(part, None) for part in parts)
    steps = over.src[0].arg if over.op is ops.RANGE and over.src[0].op is ops.CONST else None
    if not isinstance(steps, int):
        raise TermError(term.span, "the second operand must be a range of known length")
    dtype = value.dtype if value.dtype.kind == "void" else value.dtype.vec(value.dtype.lanes * steps)
    return _make(term.op, [value, over], term.span, dtype)


def _range(term: Apply, parts: list[Part], attrs: list[object]) -> UOp:
    axis = attrs[0]
    if not isinstance(axis, int):
        raise TermError(term.span, "the brackets of a range hold its number")
    return _make(term.op, [_settle(parts[0], index)], term.span, arg=RangeArg(axis, AxisKind.LOOP))


_BUILDERS: dict[Op, _Builder] = {
    ops.CAST: _convert, ops.BITCAST: _convert, ops.GEP: _pick, ops.LOAD: _load, ops.STORE: _store,
    ops.REDUCE: _reduce, ops.GROUP_REDUCE: _reduce, ops.DEFINE_ACC: _reduce, ops.FOLD_LANES: _fold_lanes, ops.WIDEN: _widen, ops.RANGE: _range,
}  # fmt: skip


# --- drafts to nodes -------------------------------------------------------------------------------------------------


def _settle(part: Part, dtype: DType | None) -> UOp:
    """The node of a part; a draft becomes one of type `dtype`, or of its default type."""
    if isinstance(part, UOp):
        return part
    done: list[UOp] = []
    stack: list[tuple[Part, DType, bool]] = [(part, dtype or _default([part]), False)]
    while stack:
        here, wanted, expanded = stack.pop()
        if isinstance(here, UOp):
            done.append(here)
        elif here.op is None:
            done.append(_constant(wanted, here.value, here.span))
        elif expanded:
            src = done[len(done) - len(here.parts) :]
            del done[len(done) - len(here.parts) :]
            done.append(_make(here.op, src, here.span))
        else:
            stack.append((here, wanted, True))
            types = _operand_types(here, wanted)
            stack += [(p, t, False) for p, t in zip(reversed(here.parts), reversed(types), strict=True)]
    return done[0]


def _operand_types(draft: Draft, dtype: DType) -> list[DType]:
    if draft.op is ops.WHERE:
        return [bool_.vec(dtype.lanes), dtype, dtype]
    return [dtype.scalar if draft.op is ops.VECTORIZE else dtype] * len(draft.parts)


def _default(parts: list[Part]) -> DType:
    """The type of literals that nothing types: bool if all are truth values, else index, with a fraction float32."""
    values: list[Scalar] = []
    lanes = 1
    stack = list(parts)
    while stack:
        here = stack.pop()
        if isinstance(here, UOp):
            continue
        if here.op is None:
            values.append(here.value)
        elif here.op is ops.VECTORIZE:
            lanes = len(here.parts)
        stack += here.parts[1:] if here.op is ops.WHERE else here.parts
    if any(isinstance(value, float) for value in values):
        return float32.vec(lanes)
    return (bool_ if all(isinstance(value, bool) for value in values) else index).vec(lanes)


def _constant(dtype: DType, value: Scalar, span: Span) -> UOp:
    """A literal of a type that can hold it."""
    if isinstance(value, bool) and dtype.kind != "bool" or isinstance(value, float) and not dtype.is_float:
        raise TermError(span, f"`{_written(value)}` is no value of type {dtype}")
    if dtype.kind == "bool" and value not in (0, 1) or dtype.kind in ("void", "pointer"):
        raise TermError(span, f"`{_written(value)}` is no value of type {dtype}")
    return const(dtype, value)


def _written(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


# --- numbers and brackets --------------------------------------------------------------------------------------------


def _whole(formula: Formula, counters: _Counters) -> int:
    value = _number(formula, counters)
    if not isinstance(value, int):
        raise TermError(formula.span, "this must be a whole number")
    return value


def _number(formula: Formula, counters: _Counters) -> Scalar:
    """The value of a formula on numbers and lane counters."""
    match formula:
        case Number():
            return formula.value
        case Name() if formula.name in counters:
            return counters[formula.name]
        case Operation() if formula.op.evaluate is not None:
            values = [_number(part, counters) for part in formula.args]
            dtype = float32 if any(isinstance(value, float) for value in values) else index
            result = formula.op.evaluate(dtype, *values)
            if result is not None:
                return result
    raise TermError(formula.span, "this has no value here")


def _attr(attr: Attr, counters: _Counters, term: Apply) -> object:
    match attr:
        case Op():
            return attr
        case TypeName():
            return attr.dtype
        case Var():
            raise TermError(term.span, f"in the brackets of an expression no name can stand: `{attr.name}`")
        case _:
            return _whole(attr, counters)
