"""Whether a rule can have types: both sides one type, operands that their operators accept.

The type of every part is an unknown of two halves, the type of a lane and the number of lanes. Operators equate and
narrow them; what narrows to nothing is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import dtypes, ops
from ..dtypes import DType, Kind
from ..errors import GraphError
from ..ops import Op
from .names import type_named
from .syntax import (
    Apply,
    Attr,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Instance,
    Lanes,
    Literal,
    Number,
    OnType,
    Operation,
    Pack,
    Span,
    Term,
    TypeName,
    Var,
)

NUMBERS: frozenset[Kind] = frozenset({"bool", "sint", "uint", "index", "float"})
COUNTS: frozenset[Kind] = frozenset({"sint", "uint", "index"})
BOOL: frozenset[Kind] = frozenset({"bool"})
EVERY: frozenset[Kind] = NUMBERS | {"pointer", "void"}

_SAMPLES = (dtypes.bool_, dtypes.int32, dtypes.uint32, dtypes.index, dtypes.float32)


def accepted(op: Op) -> frozenset[Kind]:
    """The kinds of operands that an operator on operands of one type takes, asked of its own type rule."""
    assert op.arity is not None
    found: set[Kind] = set()
    for sample in _SAMPLES:
        try:
            op.typing(None, (sample,) * op.arity, None)
        except GraphError:
            continue
        found.add(sample.kind)
    return frozenset(found)


_ACCEPTED: dict[Op, frozenset[Kind]] = {
    op: accepted(op) for op in ops.ELEMENTWISE if op.negated is None and op not in (ops.WHERE, ops.CAST, ops.BITCAST)
}


class TypeConflict(Exception):
    """Two types that must be one are not."""

    def __init__(self, problem: str, span: Span) -> None:
        super().__init__(problem)
        self.problem, self.span = problem, span


@dataclass(eq=False, slots=True)
class _Lane:
    """The type of one lane: unknown among `kinds`, or known. `same` is what it was equated with."""

    kinds: frozenset[Kind] = EVERY
    dtype: DType | None = None
    element: _Lane | None = None  # of a pointer
    same: _Lane | None = None


@dataclass(eq=False, slots=True)
class _Count:
    """A number of lanes, or unknown."""

    value: int | None = None
    same: _Count | None = None


@dataclass(frozen=True, slots=True)
class _Type:
    lane: _Lane = field(default_factory=_Lane)
    count: _Count = field(default_factory=_Count)


def _root(lane: _Lane) -> _Lane:
    while lane.same is not None:
        lane = lane.same
    return lane


def _root_count(count: _Count) -> _Count:
    while count.same is not None:
        count = count.same
    return count


_SCALAR = _Count(1)

# --- what messages say -----------------------------------------------------------------------------------------------

_WORDS: dict[Kind, str] = {
    "bool": "bool", "sint": "a signed integer", "uint": "an unsigned integer", "index": "an index", "float": "a float",
    "pointer": "a buffer", "void": "nothing",
}  # fmt: skip


def _described(lane: _Lane) -> str:
    lane = _root(lane)
    if lane.dtype is not None:
        return lane.dtype.name
    return kinds_in_words(lane.kinds)


def kinds_in_words(kinds: frozenset[Kind]) -> str:
    """`a float`, `an integer or an index`."""
    words = [word for kind, word in _WORDS.items() if kind in kinds]
    if {"sint", "uint"} <= kinds:
        words = ["an integer" if word == _WORDS["sint"] else word for word in words if word != _WORDS["uint"]]
    if kinds >= NUMBERS:
        words = ["a number"]
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


# --- equations -------------------------------------------------------------------------------------------------------


def _equate(a: _Type, b: _Type, span: Span) -> None:
    """`b`, the part at `span`, has the type of `a`."""
    _equate_lanes(a.lane, b.lane, span)
    _equate_counts(a.count, b.count, span)


def _equate_lanes(a: _Lane, b: _Lane, span: Span) -> None:
    a, b = _root(a), _root(b)
    if a is b:
        return
    kinds = a.kinds & b.kinds
    if not kinds or a.dtype is not None and b.dtype is not None and a.dtype is not b.dtype:
        raise TypeConflict(f"this is {_described(b)}, where {_described(a)} must stand", span)
    b.same = a
    a.kinds, a.dtype = kinds, a.dtype or b.dtype
    if a.element is not None and b.element is not None:
        _equate_lanes(a.element, b.element, span)
    a.element = a.element or b.element


def _equate_counts(a: _Count, b: _Count, span: Span) -> None:
    a, b = _root_count(a), _root_count(b)
    if a is b:
        return
    if a.value is not None and b.value is not None and a.value != b.value:
        raise TypeConflict(f"this has {_lanes(b.value)}, where {_lanes(a.value)} must stand", span)
    b.same, a.value = a, a.value if a.value is not None else b.value


def _lanes(count: int) -> str:
    return "one lane" if count == 1 else f"{count} lanes"


def _narrow(lane: _Lane, kinds: frozenset[Kind], span: Span, who: str) -> None:
    lane = _root(lane)
    left = lane.kinds & kinds
    if not left:
        raise TypeConflict(f"{who} takes {kinds_in_words(kinds)}, this is {_described(lane)}", span)
    lane.kinds = left


def _known(dtype: DType) -> _Lane:
    return _Lane(frozenset({dtype.kind}), dtype)


# --- terms -----------------------------------------------------------------------------------------------------------


class _Typing:
    """The types of the names and parts of one instance of a rule."""

    def __init__(self) -> None:
        self.names: dict[str, _Type] = {}
        self.type_names: dict[str, _Lane] = {}

    def of(self, term: Term) -> _Type:
        """The type of a term; a name's is the same at each place."""
        match term:
            case Var():
                return self.names.setdefault(term.name, _Type())
            case Literal():
                return _Type(_Lane(_literal_kinds(term.value)))
            case Bind():
                found = self.of(term.term)
                _equate(self.names.setdefault(term.name, found), found, term.span)
                return found
            case Apply():
                return self._apply(term)
            case Lanes():
                return self._vector(term)
            case Chain():
                names = [*(share.name for share in term.shares), *([term.rest] if term.rest is not None else [])]
                return self._alike(term.op, [*term.terms, *names])
            case Compute():
                return self._computed(term)
            case Comprehension():
                return self.of(term.term)
            case Pack():
                if not isinstance(term.term, Var):
                    self.of(term.term)
                return _Type()
            case _:
                return _Type()

    def _computed(self, term: Compute) -> _Type:
        formula = term.formula
        if isinstance(formula, Operation) and formula.op in (ops.CAST, ops.BITCAST):
            attr = formula.attrs[0] if formula.attrs else None
            if isinstance(attr, TypeName) and attr.dtype.lanes > 1:
                return _Type(_known(attr.dtype.scalar), _Count(attr.dtype.lanes))
            return _Type(self._lane_in_brackets(attr))
        return _Type(_Lane(NUMBERS))

    def _lane_in_brackets(self, attr: Attr | None) -> _Lane:
        match attr:
            case TypeName():
                return _known(attr.dtype)
            case Var():
                return self.type_names.setdefault(attr.name, _Lane(NUMBERS))
            case _:
                return _Lane(NUMBERS)

    def _apply(self, term: Apply) -> _Type:
        op = term.op
        if op in _ACCEPTED:
            return self._alike(op, list(term.args))
        if op.negated is not None:
            operands = self._alike(op, list(term.args))
            return _Type(_known(dtypes.bool_), operands.count)
        match op:
            case ops.WHERE:
                return self._where(term)
            case ops.CAST | ops.BITCAST:
                (source,) = (self.of(arg) for arg in term.args)
                _narrow(source.lane, NUMBERS, term.args[0].span, f"`{op.name}`")
                return _Type(self._lane_in_brackets(term.attrs[0] if term.attrs else None), source.count)
            case ops.LOAD | ops.STORE:
                return self._access(term)
            case _:
                return self._other(term)

    def _alike(self, op: Op, parts: list[Term]) -> _Type:
        """Operands of one type; the first says which."""
        result = _Type()
        for part in parts:
            if not isinstance(part, Pack):
                here = self.of(part)
                _narrow(here.lane, _ACCEPTED.get(op, NUMBERS), part.span, f"`{op.symbol or op.name}`")
                _equate(result, here, part.span)
        return result

    def _where(self, term: Apply) -> _Type:
        condition, *branches = term.args
        if any(isinstance(arg, Pack) for arg in term.args):
            return _Type()
        here = self.of(condition)
        _narrow(here.lane, BOOL, condition.span, "the condition of `where`")
        result = _Type(_Lane(NUMBERS), here.count)
        for branch in branches:
            _equate(result, self.of(branch), branch.span)
        return result

    def _access(self, term: Apply) -> _Type:
        """`load(buffer, index, gate, alternative)`, `store(buffer, index, value, gate)`."""
        is_load = term.op is ops.LOAD
        element = _Type(_Lane(NUMBERS))
        if is_load and term.attrs and isinstance(term.attrs[0], Number) and isinstance(term.attrs[0].value, int):
            element = _Type(element.lane, _Count(term.attrs[0].value))
        for position, arg in enumerate(term.args):
            if isinstance(arg, Pack):
                continue
            here, who = self.of(arg), f"`{term.op.name}`"
            if position == 0:
                _narrow(here.lane, frozenset({"pointer"}), arg.span, who)
                _equate_lanes(_Lane(frozenset({"pointer"}), element=element.lane), here.lane, arg.span)
            elif position == 1:
                _narrow(here.lane, COUNTS, arg.span, f"the index of {who}")
            elif position == (2 if is_load else 3):
                _narrow(here.lane, BOOL, arg.span, f"the gate of {who}")
            else:
                _equate(element, here, arg.span)
        return element if is_load else _Type(_known(dtypes.void), _SCALAR)

    def _vector(self, term: Lanes) -> _Type:
        lane = _Lane(NUMBERS)
        known = not any(isinstance(element, Pack | Comprehension) for element in term.elements)
        for element in term.elements:
            if not (isinstance(element, Pack) and isinstance(element.term, Var)):
                _equate(_Type(lane, _SCALAR), self.of(element), element.span)
        return _Type(lane, _Count(len(term.elements) if known else None))

    def _other(self, term: Apply) -> _Type:
        """Operators on memory, lanes and loops: what their type takes from their operands."""
        types = [self.of(arg) for arg in term.args]
        first = types[0] if types and not isinstance(term.args[0], Pack) else _Type()
        match term.op:
            case ops.GEP:
                return _Type(first.lane, _SCALAR)
            case ops.VECTORIZE | ops.WIDEN | ops.FOLD_LANES:
                return _Type(first.lane)
            case ops.REDUCE | ops.GROUP_REDUCE | ops.DEFINE_ACC | ops.AFTER:
                return first
            case ops.TEXEL:
                for arg, here in zip(term.args[1:], types[1:], strict=True):
                    _equate(first, here, arg.span)
                return first
            case ops.PHI:
                for arg, here in zip(term.args[1:], types[1:], strict=True):
                    _equate(first, here, arg.span)
                return first
            case ops.RANGE | ops.SPECIAL:
                _narrow(first.lane, COUNTS, term.span, f"`{term.op.name}`")
                return first
            case ops.BARRIER | ops.SINK:
                return _Type(_known(dtypes.void), _SCALAR)
            case _:
                return _Type()


def _literal_kinds(value: bool | float) -> frozenset[Kind]:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, float):
        return frozenset({"float"})
    return NUMBERS if value in (0, 1) else NUMBERS - BOOL


# --- rules -----------------------------------------------------------------------------------------------------------


def check_types(instance: Instance, on: tuple[OnType, ...]) -> None:
    """Raises TypeConflict if no types make the rule meaningful."""
    typing = _Typing()
    left = typing.of(instance.left)
    _check_on(typing, instance.left, left, on)
    for name, term in instance.lets:
        typing.names[name] = typing.of(term)
    right = typing.of(instance.right)
    try:
        _equate(left, right, instance.right.span)
    except TypeConflict:
        raise TypeConflict(
            f"the left side is {_shown(left)}, the right side {_shown(right)}", instance.right.span
        ) from None


@dataclass(frozen=True, slots=True)
class NameType:
    """What a rule fixes of a name's type. Names with the same `lane` have the same lane type, as with `count`.

    `dtype` and `lanes` are None where the rule leaves them open; `element` is what a buffer holds.
    """

    lane: int
    kinds: frozenset[Kind]
    dtype: DType | None
    count: int
    lanes: int | None
    element: NameType | None


@dataclass(frozen=True, slots=True)
class NameTypes:
    """The types of an instance's names, of its names for types, and of what its `on` speaks of."""

    names: dict[str, NameType]
    types: dict[str, NameType]
    root: NameType


def name_types(instance: Instance, on: tuple[OnType, ...]) -> NameTypes:
    """What the left side, the right side and `on` fix. Raises TypeConflict as `check_types` does."""
    typing = _Typing()
    left = typing.of(instance.left)
    spoken = _check_on(typing, instance.left, left, on)
    for name, term in instance.lets:
        typing.names[name] = typing.of(term)
    _equate(left, typing.of(instance.right), instance.right.span)
    lanes: dict[_Lane, int] = {}
    counts: dict[_Count, int] = {}

    def read(type_: _Type) -> NameType:
        lane, count = _root(type_.lane), _root_count(type_.count)
        return NameType(
            lanes.setdefault(lane, len(lanes)), lane.kinds, lane.dtype, counts.setdefault(count, len(counts)),
            count.value, None if lane.element is None else read(_Type(lane.element)),
        )  # fmt: skip

    names = {name: read(type_) for name, type_ in typing.names.items() if name not in dict(instance.lets)}
    types = {name: read(_Type(lane)) for name, lane in typing.type_names.items()}
    return NameTypes(names, types, read(_Type(spoken)))


def _shown(type_: _Type) -> str:
    count = _root_count(type_.count).value
    return _described(type_.lane) + ("" if count in (None, 1) else f" of {count} lanes")


def _check_on(typing: _Typing, left: Term, type_: _Type, on: tuple[OnType, ...]) -> _Lane:
    """Narrows the lane type that `on` speaks of: what a comparison compares, what a store stores, else the node's."""
    while isinstance(left, Bind):
        left = left.term
    lane = type_.lane
    if isinstance(left, Apply) and left.op.negated is not None and not isinstance(left.args[0], Pack):
        lane = typing.of(left.args[0]).lane
    elif isinstance(left, Apply) and left.op is ops.STORE and not isinstance(left.args[2], Pack):
        lane = typing.of(left.args[2]).lane
    here = _root(lane)
    allowed = [one for one in on if _kinds_of(one) & here.kinds and here.dtype in (None, _type_of(one) or here.dtype)]
    if not on:
        return lane
    if not allowed:
        raise TypeConflict(f"the rule works on {_described(here)}, which `on` does not name", on[0].span)
    here.kinds = here.kinds & frozenset().union(*(_kinds_of(one) for one in allowed))
    if len(allowed) == 1 and _type_of(allowed[0]) is not None:
        here.dtype = _type_of(allowed[0])
    return lane


_CLASSES: dict[str, frozenset[Kind]] = {
    "int": frozenset({"sint", "uint"}), "sint": frozenset({"sint"}), "uint": frozenset({"uint"}),
    "bool": BOOL, "float": frozenset({"float"}), "index": frozenset({"index"}),
}  # fmt: skip


def _kinds_of(on: OnType) -> frozenset[Kind]:
    if on.name in _CLASSES:
        return _CLASSES[on.name]
    dtype = type_named(on.name)
    return frozenset({dtype.kind}) if dtype is not None else NUMBERS


def _type_of(on: OnType) -> DType | None:
    return None if on.name in _CLASSES else type_named(on.name)
