"""Instances of a rule's left side that satisfy its guard, built from a string of decisions.

A first description of every atom is drawn; then, as long as a condition of the guard does not hold, one atom that it
mentions is exchanged for another that makes it hold: an interval, a multiple, a constant, built from the numbers that
the condition and its neighbours mention. The facts themselves decide, through the engine's own functions, so the search
knows nothing of single rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..engine import dtypes, facts, ops
from ..engine.dtypes import DType
from ..engine.errors import GraphError
from ..engine.language.syntax import Chain, Formula, Instance, Rule
from ..engine.ops import Op
from ..engine.rewriting.scope import Sort
from ..engine.target import Context, Target
from ..engine.uop import UOp
from .atoms import Atom, Pattern, Role, names_below, pattern_of
from .builder import Builder, Unbuildable
from .choices import Choices
from .conditions import Condition, condition
from .leaves import (
    Accumulator,
    Constant,
    Leaf,
    Memory,
    Same,
    Stored,
    Variable,
    Varying,
    alternatives,
    first_constant,
    first_loop,
    first_upcast,
    first_variable,
)
from .shapes import HOPELESS, KEPT, Shape, admitted, choices_of_types
from .values import edges

ROUNDS = 10
"""Conditions mended before a draw is given up."""

Parts = dict[str, tuple[Leaf, ...]]
"""The description of each atom; of a `...xs` one for each of its nodes."""

_UNBUILDABLE = (Unbuildable, GraphError, ValueError, IndexError, AssertionError)


@dataclass(frozen=True, slots=True)
class Drawn:
    """An instance: a graph that the rule should match, and where it runs."""

    graph: UOp
    context: Context
    dtype: DType
    satisfied: bool  # whether the guard was made to hold


@dataclass
class Case:
    """One instance of a rule's parameters in one type: everything that is the same for all draws."""

    rule: Rule
    instance: Instance
    dtype: DType
    flags: frozenset[str]

    @cached_property
    def pattern(self) -> Pattern:
        return pattern_of(self.instance)

    @cached_property
    def numbers(self) -> dict[str, object]:
        return dict(self.instance.bindings)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        return tuple(condition(formula, self.sorts) for formula in self.pattern.conditions)

    @cached_property
    def share_conditions(self) -> dict[str, Condition]:
        return {
            name: condition(formula, self.sorts | {name: Sort.NODE}) for name, formula in self.pattern.shares.items()
        }

    @cached_property
    def sorts(self) -> dict[str, Sort]:
        """What each name that a condition may mention stands for."""
        found: dict[str, Sort] = {}
        for name, value in self.numbers.items():
            found[name] = Sort.ARG if isinstance(value, Op) else Sort.NUMBER
        for atom in self.pattern.atoms.values():
            several = atom.several and not isinstance(atom.holder, Chain)
            found[atom.name] = Sort.PACK if several else Sort.CONST if atom.role is Role.CONSTANT else Sort.NODE
        found |= dict.fromkeys(self.pattern.counts, Sort.NUMBER)
        blank = Builder(self.pattern, Shape({}, {}, {}), {}, self.numbers, [0] * 8, True, self.dtype)
        found |= dict.fromkeys(blank.binds, Sort.NODE)
        for formula in (*self.pattern.conditions, *self.pattern.shares.values()):
            for name in _unknown(formula, found):
                found[name] = Sort.TYPE if _is_type(self.instance, name) else Sort.ARG
        return found

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The choices of types that make a graph and satisfy the conditions on types; the simplest first."""
        typed = [one for one in self.conditions if one.typed]
        found: list[Shape] = []
        numbers = [n for n in self.numbers.values() if isinstance(n, int)]
        numbers += [n for one in self.conditions for n in one.numbers]
        named = [dtype for one in self.conditions for dtype in one.types]
        tries = choices_of_types(self.instance, self.pattern, self.dtype, numbers, named)
        for tried, shape in enumerate(tries):
            if tried == HOPELESS and not found:
                break
            builder = self._blank(shape)
            try:
                graph = builder.graph()
                context = Context(Target("tested", frozenset(), (2, 4, 8, 16)))
                if self._works_in(graph) is self.dtype and all(one.holds(_View(builder), context) for one in typed):
                    found.append(shape)
            except _UNBUILDABLE:
                continue
            if len(found) >= KEPT:
                break
        return tuple(found)

    def _works_in(self, graph: UOp) -> DType:
        """What `on` speaks of."""
        if graph.op.negated is not None:
            return graph.src[0].dtype.scalar
        return graph.src[2].dtype.scalar if graph.op is ops.STORE else graph.dtype.scalar

    def _blank(self, shape: Shape) -> Builder:
        simplest = Choices(b"")
        parts = {atom.name: _first(simplest, atom, shape, self, {}) for atom in self.pattern.atoms.values()}
        return Builder(self.pattern, shape, parts, self.numbers, [0] * 8, True, self.dtype)

    # --- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, choices: Choices) -> Drawn | None:
        """An instance; None if the decisions lead to none."""
        if not self.shapes:
            return None
        scalars = [shape for shape in self.shapes if all(t.lanes == 1 for t in shape.names.values())]
        shape = choices.pick(self.shapes if choices.rarely(3) or not scalars else scalars)
        parts: Parts = {}
        for atom in self.pattern.atoms.values():
            parts[atom.name] = _first(choices, atom, shape, self, parts)
        raw = [choices.below(256) for _ in range(8)]
        search = _Search(self, shape, parts, raw, choices, self._first_context(choices))
        try:
            satisfied = search.satisfy()
            graph = search.builder().graph()
        except _UNBUILDABLE:
            return None
        return Drawn(graph, search.context, self.dtype, satisfied)

    def _first_context(self, choices: Choices) -> Context:
        features = sorted({f for one in self.conditions for f in one.features})
        asked = any(one.widths for one in self.conditions)
        granted = frozenset(f for f in features if choices.rarely(2))
        return Context(Target("tested", granted, choices.pick(WIDTHS) if asked else ()), self.flags)


WIDTHS = ((16, 8, 4, 2), (4, 2), (2,), ())


def cases_of(rule: Rule) -> Iterator[Case]:
    """Every instance of a rule's parameters in every type that it admits."""
    for instance in rule.instances:
        for dtype, flags in admitted(rule, instance):
            yield Case(rule, instance, dtype, flags)


def _unknown(formula: Formula, known: Mapping[str, Sort]) -> list[str]:
    from .atoms import names_in

    return sorted(names_in(formula) - set(known))


def _is_type(instance: Instance, name: str) -> bool:
    """Whether the left side binds the name to a type."""
    from ..engine.language.syntax import Apply, Var, VarKind
    from ..engine.language.terms import walk

    for part in walk(instance.left):
        for attr in part.attrs if isinstance(part, Apply) else ():
            if isinstance(attr, Var) and attr.name == name:
                return attr.kind is VarKind.TYPE
    return False


# --- the first description of an atom ---------------------------------------------------------------------------------


def _first(choices: Choices, atom: Atom, shape: Shape, case: Case, before: Parts) -> tuple[Leaf, ...]:
    count = shape.lengths.get(atom.name, 1) if atom.several else 1
    if atom.name in case.pattern.shares:
        count = max(1, count)
    return tuple(_leaf(choices, atom, shape, case, before) for _ in range(count))


def _type_of(atom: Atom, shape: Shape, case: Case) -> DType:
    """The type of an atom; the nodes of a `...xs` are indices, or of the type that the rule works in."""
    known = shape.names.get(atom.name)
    return known if known is not None else dtypes.index if atom.index_of is not None else case.dtype


def _leaf(choices: Choices, atom: Atom, shape: Shape, case: Case, before: Parts) -> Leaf:
    match atom.role:
        case Role.RANGE:
            return first_loop(choices)
        case Role.UPCAST:
            return first_upcast(choices)
        case Role.BUFFER:
            return Memory(choices.pick((16, 64, 4, 8, 1)))
        case Role.ACCUMULATOR:
            loops = choices.pick((1, 2, 1, 0))
            return Accumulator(tuple(first_loop(choices) for _ in range(loops)))
        case Role.STORE | Role.BARRIER:
            return Stored(choices.rarely(3))
        case Role.CONSTANT:
            return first_constant(choices, _type_of(atom, shape, case))
    dtype = _type_of(atom, shape, case)
    if atom.scope and choices.rarely(2):
        return Varying(choices.below(12))
    if before and choices.rarely(7):
        twins = [n for n in before if shape.names.get(n) is dtype and not case.pattern.atoms[n].several]
        twins = [n for n in twins if case.pattern.atoms[n].role is Role.VALUE and not case.pattern.atoms[n].scope]
        if twins and not atom.several:
            return Same(choices.pick(twins))
    size = None
    if atom.index_of is not None:
        memory = before.get(atom.index_of, (None,))[0]
        size = memory.size if isinstance(memory, Memory) else 16
    if dtype.lanes > 1:
        return Variable()
    if dtype.kind in ("void", "pointer"):
        return Variable()
    bounded = any(atom.name in one.names for one in case.conditions)
    return first_variable(choices, dtype, bounded, size)


# --- the search -------------------------------------------------------------------------------------------------------


class _View(Mapping[str, object]):
    """The names of a builder, one of them exchanged: what a condition sees."""

    def __init__(self, builder: Builder, name: str = "", node: object = None) -> None:
        self.builder, self.name, self.node = builder, name, node

    def __getitem__(self, name: str) -> object:
        return self.node if name == self.name and name else self.builder[name]

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass
class _Search:
    """Exchanges descriptions until the guard holds."""

    case: Case
    shape: Shape
    parts: Parts
    raw: list[int]
    choices: Choices
    context: Context

    def builder(self, parts: Parts | None = None) -> Builder:
        return Builder(
            self.case.pattern, self.shape, parts or self.parts, self.case.numbers, self.raw, self.case.rule.ordered,
            self.case.dtype,
        )  # fmt: skip

    def satisfy(self) -> bool:
        """Whether the guard could be made to hold; then, half of the time, goes to where it just holds."""
        for _ in range(ROUNDS):
            failing = self._failing()
            if not failing:
                break
            if not self._mend(failing[0], len(failing)):
                self._shake(failing[0])
        satisfied = not self._failing()
        if satisfied and self.case.conditions and self.choices.rarely(2):
            self._explore()
        return satisfied and not self._failing()

    def _failing(self, parts: Parts | None = None, context: Context | None = None) -> list[Condition]:
        builder = self.builder(parts)
        return [one for one in self.case.conditions if not self._holds(one, builder, context)] + [
            one for name, one in self.case.share_conditions.items() if not self._share_holds(name, one, builder)
        ]

    def _holds(self, one: Condition, builder: Builder, context: Context | None = None) -> bool:
        try:
            return one.holds(_View(builder), context or self.context)
        except (Unbuildable, GraphError, IndexError):
            return False

    def _share_holds(self, name: str, one: Condition, builder: Builder) -> bool:
        nodes = builder.node(name)
        assert isinstance(nodes, tuple)
        return bool(nodes) and all(one.holds(_View(builder, name, node), self.context) for node in nodes)

    def _mend(self, one: Condition, failing: int) -> bool:
        """Exchanges one description, or the target, so that the condition holds and no other that did before breaks."""
        if self._rebracket(one, failing):
            return True
        fallback: Parts | None = None
        for parts, context in self._exchanges(one):
            left = self._failing(parts, context)
            if one not in left and len(left) < failing:
                self.parts, self.context = parts, context
                return True
            if one not in left and fallback is None:
                fallback = parts
        if fallback is not None:
            self.parts = fallback
        return fallback is not None

    def _rebracket(self, one: Condition, failing: int) -> bool:
        """Takes another number for a name in brackets, if the condition mentions one."""
        if all(self.case.sorts.get(name) is not Sort.ARG or name in self.case.numbers for name in one.names):
            return False
        before = list(self.raw)
        for place in range(2, len(self.raw)):
            for value in self.choices.rotated(range(8)):
                self.raw[place] = value
                if len(self._failing()) < failing:
                    return True
            self.raw[place] = before[place]
        return False

    def _exchanges(self, one: Condition) -> Iterator[tuple[Parts, Context]]:
        if one.features or one.widths:
            for context in self._contexts(one):
                yield self.parts, context
        pool = self._pool(one)
        for name in self.choices.rotated(sorted(self._atoms(one))):
            atom = self.case.pattern.atoms[name]
            for k, leaf in enumerate(self.parts[name]):
                for other in self.choices.rotated(self._alternatives(atom, leaf, pool))[:90]:
                    some = (*self.parts[name][:k], other, *self.parts[name][k + 1 :])
                    yield {**self.parts, name: some}, self.context

    def _alternatives(self, atom: Atom, leaf: Leaf, pool: Sequence[int]) -> list[Leaf]:
        dtype = _type_of(atom, self.shape, self.case).scalar
        if atom.role is Role.CONSTANT:
            if dtype.is_float or dtype.kind == "bool":
                return [Constant(value) for value in edges(dtype)]
            inside = (n for n in pool if dtype.kind == "index" or dtype.lowest <= n <= dtype.highest)
            return [*(Constant(n) for n in inside), *(Constant(value) for value in edges(dtype)[:12])]
        return alternatives(leaf, dtype, pool, bool(atom.scope))

    def _contexts(self, one: Condition) -> list[Context]:
        features = one.features
        found = []
        for bits in range(1 << len(features)):
            mentioned = frozenset(f for k, f in enumerate(features) if bits >> k & 1)
            kept = (self.context.target.features - frozenset(features)) | mentioned
            widths = WIDTHS if one.widths else (self.context.target.widths,)
            found += [replace(self.context, target=Target("tested", kept, some)) for some in widths]
        return self.choices.rotated(found)

    def _atoms(self, one: Condition) -> set[str]:
        """The atoms that decide a condition: those that it names, and those below what it names."""
        atoms = self.case.pattern.atoms
        builder = self.builder()
        found: set[str] = set()
        for name in one.names:
            names = names_below(builder.binds[name]) if name in builder.binds else {name}
            found |= {n for n in names if n in atoms}
        return found

    def _pool(self, one: Condition) -> list[int]:
        """Whole numbers that may decide a condition."""
        base: dict[int, None] = {}
        builder = self.builder()
        for name in sorted(one.names):
            for number in self._numbers_of(name, builder):
                base[number] = None
        for number in one.numbers:
            base[number] = None
        own = list(base)[:8]
        found = dict.fromkeys([*own, *(n + d for n in own for d in (-1, 1)), 0, 1, 2, 3, 4])
        for a in own[:4]:
            for b in own[:4]:
                for value in (a * b, a + b, a - b, -a, a // b if b else 0):
                    found[value] = None
        for extra in (*(2 * n for n in own[:3]), *(3 * n for n in own[:3]), 8, 12, 16, -1, -2, -3, -5):
            found[extra] = None
        return [n for n in found if abs(n) < 1 << 70]

    def _numbers_of(self, name: str, builder: Builder) -> list[int]:
        try:
            value = builder[name]
        except _UNBUILDABLE:
            return []
        except KeyError:
            return []
        if isinstance(value, int):
            return [int(value)]
        if isinstance(value, UOp) and value.dtype.kind in ("index", "sint", "uint"):
            return [int(bound) for bound in facts.interval(value) if isinstance(bound, int)]
        if isinstance(value, DType) and value.is_int:
            return [int(value.lowest), int(value.highest)]
        return []

    def _shake(self, one: Condition) -> None:
        """Nothing mends the condition alone: one of its atoms becomes anything."""
        names = sorted(self._atoms(one))
        if not names:
            return
        name = self.choices.pick(names)
        options = self._alternatives(self.case.pattern.atoms[name], self.parts[name][0], self._pool(one))
        if options and self.parts[name]:
            self.parts = {**self.parts, name: (self.choices.pick(options), *self.parts[name][1:])}

    def _explore(self) -> None:
        """Exchanges descriptions as long as the guard holds: the first found is rarely at the edge."""
        for one in self.choices.rotated(self.case.conditions)[:2]:
            exchanges = list(self._exchanges(one))
            if not exchanges:
                continue
            for parts, context in self.choices.rotated(exchanges)[:6]:
                if not self._failing(parts, context):
                    self.parts, self.context = parts, context
                    break
