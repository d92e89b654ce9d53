"""The shapes in which an instance of a rule is looked at: a type for each name, numbers of lanes, steps and operands.

What does not bear on lanes or loops has one lane. What does is looked at with a few lanes, steps and operands: such a
proof is bounded, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from ...engine import dtypes, ops
from ...engine.dtypes import DType, Kind
from ...engine.language.syntax import (
    Apply,
    Comprehension,
    Instance,
    Lanes,
    Name,
    Pack,
    Rule,
    Term,
    Var,
    VarKind,
)
from ...engine.language.terms import walk
from ...engine.language.types import NameType, name_types
from ...engine.ops import Op
from ...engine.rewriting.compiler import admits
from .formula_parts import functions

TYPES: dict[Kind, tuple[DType, ...]] = {
    "bool": (dtypes.bool_,),
    "sint": (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    "uint": (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    "index": (dtypes.index,),
    "float": (dtypes.float16, dtypes.float32),
}
"""The types that are tried, by kind."""

_REPRESENTATIVE: dict[Kind, tuple[DType, ...]] = {
    kind: types[:1] for kind, types in TYPES.items()
}  # where lanes, memory or loops are what matters
WIDTHS, STEPS, OPERANDS = (1, 2, 3, 4), (0, 1, 2, 3), (0, 1, 2)
MOST, MOST_WITH_LANES = 400, 40
"""At most so many shapes of a rule are looked at, evenly chosen: of a scalar one, and of others …"""
LEAST = 20
"""… but so many of each instance."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One choice of everything that has finitely many values."""

    names: Mapping[str, DType] = field(default_factory=dict)
    types: Mapping[str, DType] = field(default_factory=dict)
    root: DType = dtypes.index
    flags: frozenset[str] = frozenset()
    packs: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, int | Op] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)  # of the names that are ranges
    uses: Mapping[tuple[str, str], bool] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{name}: {dtype}" for name, dtype in self.names.items()]
        parts += [f"{name} = {dtype}" for name, dtype in self.types.items()]
        parts += [f"{name}: {number} operands" for name, number in self.packs.items()]
        parts += [f"{name} = {number}" for name, number in self.numbers.items()]
        parts += [f"{name}: {number} steps" for name, number in self.steps.items()]
        parts += [f"{'' if used else 'not '}uses({a}, {b})" for (a, b), used in self.uses.items()]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Parts:
    """What an instance is made of, as far as shapes depend on it."""

    ranges: tuple[str, ...]
    packs: tuple[str, ...]
    range_packs: tuple[str, ...]
    widened: bool
    has_lanes: bool
    has_memory: bool

    @property
    def is_scalar(self) -> bool:
        """Whether it is about values of one lane, without loops and memory."""
        return not (self.ranges or self.packs or self.range_packs or self.has_lanes or self.has_memory)


def parts_of(instance: Instance) -> Parts:
    """Reads off the terms of an instance what its shapes depend on."""
    terms = [instance.left, *(term for _, term in instance.lets), instance.right]
    ranges: dict[str, None] = {}
    packs: dict[str, None] = {}
    range_packs: dict[str, None] = {}
    found: set[Op] = set()
    lanes = _asks_for_lanes(instance)
    for part in (part for term in terms for part in walk(term)):
        if isinstance(part, Lanes):
            lanes = True
        if isinstance(part, Pack) and isinstance(part.term, Var):
            packs[part.term.name] = None
        if isinstance(part, Apply):
            found.add(part.op)
            for arg in _range_operands(part):
                inner = arg.term if isinstance(arg, Pack) else arg
                if isinstance(inner, Var):
                    (range_packs if isinstance(arg, Pack) else ranges)[inner.name] = None
    bearing_on_lanes = {ops.GEP, ops.WIDEN, ops.FOLD_LANES, ops.VECTORIZE}
    return Parts(
        tuple(ranges), tuple(name for name in packs if name not in range_packs), tuple(range_packs),
        ops.WIDEN in found, lanes or bool(found & bearing_on_lanes), bool(found & {ops.LOAD, ops.STORE}),
    )  # fmt: skip


def _asks_for_lanes(instance: Instance) -> bool:
    return instance.when is not None and any(f.name == "width" for f in functions(instance.when))


def _range_operands(term: Apply) -> Sequence[Term]:
    if term.op in (ops.REDUCE, ops.DEFINE_ACC):
        return term.args[1:]
    return term.args[1:2] if term.op is ops.WIDEN else ()


def shapes(rule: Rule, instance: Instance) -> Iterator[Shape]:
    """Every shape that the rule's `on` admits, in a fixed order. Raises TypeConflict where the rule has no types."""
    typed = name_types(instance, rule.on)
    parts = parts_of(instance)
    types = TYPES if parts.is_scalar else _REPRESENTATIVE
    names = {
        name: one
        for name, one in typed.names.items()
        if name not in parts.ranges + parts.packs + parts.range_packs and name not in dict(instance.bindings)
    }
    most = MOST if parts.is_scalar else MOST_WITH_LANES
    choices = _Choices(max(most // len(rule.instances), LEAST))
    _choose_types(choices, [*names.values(), *typed.types.values(), typed.root], types)
    for one in names.values():
        choices.add(("count", one.count), (one.lanes,) if one.lanes else WIDTHS if parts.has_lanes else (1,))
    choices.add(
        ("count", typed.root.count), (typed.root.lanes,) if typed.root.lanes else WIDTHS if parts.has_lanes else (1,)
    )
    _choose_numbers(choices, instance, parts)
    for combination in choices.combinations():
        shape = _shape(combination, names, typed.types, typed.root, rule)
        if shape is not None:
            yield shape


class _Choices:
    """Independent choices, in the order in which they were added."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.options: dict[object, Sequence[object]] = {}

    def add(self, key: object, options: Sequence[object]) -> None:
        self.options.setdefault(key, options)

    def combinations(self) -> Iterator[dict[object, object]]:
        total = 1
        for options in self.options.values():
            total *= len(options)
        step = max(1, -(-total // self.most))
        step += step % 2 == 0 and step > 1  # odd, so that no choice of two is left out
        for number, values in enumerate(product(*self.options.values())):
            if number % step == 0:
                yield dict(zip(self.options, values, strict=True))


def _choose_types(choices: _Choices, found: Sequence[NameType], types: Mapping[Kind, tuple[DType, ...]]) -> None:
    many = len({one.lane for one in found if one.dtype is None}) > 1
    for one in found:
        if types is _REPRESENTATIVE and one.dtype is None and one.kinds == _COUNTS:
            choices.add(("lane", one.lane), (dtypes.index,))  # where memory is accessed, integers count its elements
        element = one.element
        if element is not None:
            choices.add(("lane", element.lane), _types(element, types, many))
        elif "pointer" not in one.kinds or one.kinds & set(types):
            choices.add(("lane", one.lane), _types(one, types, many))


_COUNTS: frozenset[Kind] = frozenset({"sint", "uint", "index"})
_ENDS: dict[Kind, tuple[DType, ...]] = {
    kind: (types[0], types[-1])[: len(types)] if kind in ("sint", "uint") else types[:1]
    for kind, types in TYPES.items()
}
"""Where several types are independent: the narrowest and the widest."""


def _types(one: NameType, types: Mapping[Kind, tuple[DType, ...]], few: bool) -> Sequence[DType]:
    if one.dtype is not None:
        return (one.dtype,)
    table = types if not few else _ENDS if types is TYPES else _REPRESENTATIVE
    found = [dtype for kind, some in table.items() if kind in one.kinds for dtype in some]
    return found or (dtypes.void,)


def _choose_numbers(choices: _Choices, instance: Instance, parts: Parts) -> None:
    steps = STEPS[1:] if parts.widened else STEPS
    for name in parts.ranges:
        choices.add(("steps", name), steps)
    for name in parts.packs:
        choices.add(("pack", name), (1, 2, 3) if parts.has_lanes else OPERANDS)
    for name in parts.range_packs:
        choices.add(("pack", name), OPERANDS)
        for number in range(OPERANDS[-1]):
            choices.add(("steps", f"{name}.{number}"), (2, 1))
    bound = {name for name, _ in instance.bindings}
    for name, options in _bracket_names(instance.left):
        if name not in bound:
            choices.add(("number", name), options)
    for pair in _use_pairs(instance):
        choices.add(("uses", pair), (True, False))


def _bracket_names(left: Term) -> Iterator[tuple[str, Sequence[int | Op]]]:
    """The names that the left side binds to numbers, with what they may be."""
    for part in walk(left):
        if isinstance(part, Comprehension) and isinstance(part.high, Name):
            yield part.high.name, WIDTHS
        if isinstance(part, Apply):
            for position, attr in enumerate(part.attrs):
                if isinstance(attr, Name) or isinstance(attr, Var) and attr.kind is VarKind.ARG:
                    options = _bracket_options(part.op, position)
                    if options:
                        yield attr.name, options


def _bracket_options(op: Op, position: int) -> Sequence[int | Op]:
    match op:
        case ops.GEP:
            return tuple(range(max(WIDTHS)))
        case ops.LOAD | ops.VECTORIZE:
            return WIDTHS
        case ops.FOLD_LANES:
            return ops.REDUCERS if position == 0 else WIDTHS
        case ops.REDUCE:
            return ops.REDUCERS
        case _:
            return ()


def _use_pairs(instance: Instance) -> Iterator[tuple[str, str]]:
    for function in functions(instance.when) if instance.when is not None else ():
        if function.name == "uses":
            a, b = function.args
            if isinstance(a, Name) and isinstance(b, Name):
                yield a.name, b.name


def _shape(
    made: Mapping[object, object],
    names: Mapping[str, NameType],
    types: Mapping[str, NameType],
    root: NameType,
    rule: Rule,
) -> Shape | None:
    """The shape of one combination; None where the rule's `on` does not admit it."""

    def lane(one: NameType) -> DType:
        chosen = made[("lane", one.lane)]
        assert isinstance(chosen, DType)
        return chosen

    def dtype(one: NameType) -> DType:
        if one.element is not None:
            return lane(one.element).ptr("global")
        count = made[("count", one.count)]
        assert isinstance(count, int)
        return lane(one).vec(count) if lane(one) is not dtypes.void else dtypes.void

    spoken = dtype(root) if root.element is None else dtypes.void
    flags = _flags(rule, spoken)
    if flags is None:
        return None

    def numbers(kind: str) -> dict[str, int]:
        return {key[1]: value for key, value in made.items() if isinstance(key, tuple) and key[0] == kind}  # type: ignore[misc] # the keys say what the values are

    return Shape(
        {name: dtype(one) for name, one in names.items()}, {name: lane(one) for name, one in types.items()}, spoken,
        flags, numbers("pack"), numbers("number"), numbers("steps"), numbers("uses"),  # type: ignore[arg-type] # as above
    )  # fmt: skip


def _flags(rule: Rule, dtype: DType) -> frozenset[str] | None:
    """The flags that the kernel grants where the rule works on `dtype`: those it asks for; None if it does not."""
    if not rule.on:
        return frozenset()
    for one in rule.on:
        if admits(((one.name, frozenset(one.flags)),), dtype, frozenset(one.flags)):
            return frozenset(one.flags) if dtype.is_float else frozenset()
    return None
