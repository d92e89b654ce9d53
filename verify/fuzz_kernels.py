"""Random kernels and random legal schedules: strategies of Hypothesis, which shrink to small ones.

A kernel is made as kernel JSON would say it: views that permute, flip, pad, shrink, repeat and reshape, operators on
values of all types, reductions one after another, one or two outputs. What has no defined value (a division by zero, a
float beyond an integer's range) is never made, nor is what rounding may turn over: a comparison, a `floor` or a cast to
an integer of a float that was rounded differently on two devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from ..engine import dtypes as d
from ..engine import ops
from ..engine.dtypes import DType, Scalar
from ..engine.ops import Op
from ..engine.target import Target
from ..kernels.kernel import Const, Elementwise, Kernel, Load, Node, Reduce, Store
from ..kernels.plan import is_legal
from ..kernels.schedule import Option, OptionKind, Schedule, reduced_and_mixed
from ..kernels.view import View, Views

Draw = Callable[[st.SearchStrategy[int]], int]

SIZES = (1, 2, 3, 4, 5, 6, 8, 12, 16)
MAX_POINTS = 1024
INTEGERS = (d.int32, d.int8, d.uint8, d.int16, d.uint16, d.uint32, d.int64, d.uint64)
KINDS = tuple(kind for kind in OptionKind if kind is not OptionKind.NOLOCALS) * 3 + (OptionKind.NOLOCALS,)
AMOUNTS = (2, 4, 0, 3, 8, 1, 5, 6, 12)
TYPES = (d.float32, *INTEGERS, d.bool_, d.float16, d.float64)


@st.composite
def kernels(draw: Draw, types: Sequence[DType] = TYPES) -> Kernel:
    """A kernel of up to three axes and about ten nodes, with values of the given types."""
    return _Maker(draw, tuple(types)).kernel()


@st.composite
def schedules(draw: Draw, kernel: Kernel, target: Target) -> Schedule:
    """Up to six options that are legal one after another; what the plan refuses is left out."""
    options: list[Option] = []
    reduced, mixed = (sorted(axes) for axes in reduced_and_mixed(kernel))
    axes = {
        OptionKind.UNROLL: reduced + mixed,
        OptionKind.PARTIAL: reduced + mixed,
        OptionKind.GROUP: reduced + mixed,
        OptionKind.GROUPTOP: reduced + mixed,
        OptionKind.SHARE: reduced + mixed,
    }
    stored = [axis for axis in range(len(kernel.axis_sizes)) if axis not in reduced]
    for _ in range(draw(st.integers(0, 8))):
        kind = KINDS[draw(st.integers(0, len(KINDS) - 1))]
        wanted = axes.get(kind, stored)
        if wanted:
            axis = wanted[draw(st.integers(0, len(wanted) - 1))]
            amount = AMOUNTS[draw(st.integers(0, len(AMOUNTS) - 1))]
            option = Option(kind) if kind is OptionKind.NOLOCALS else Option(kind, axis, amount)
            if is_legal(kernel, [*options, option], target):
                options.append(option)
    return tuple(options)


@dataclass
class _Maker:
    """One kernel being made. `exact` are the nodes that no device may round differently."""

    draw: Draw
    types: tuple[DType, ...]
    nodes: list[Node] = field(default_factory=list)
    dtypes: list[DType] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    exact: set[int] = field(default_factory=set)
    buffers: int = 0

    def kernel(self) -> Kernel:
        shape = self._shape()
        for _ in range(self._number(1, 3)):
            self._leaf(shape)
        for _ in range(self._number(1, 10)):
            self._step(shape)
        if self._number(0, 1):
            self._reduce(len(self.nodes) - 1)
            for _ in range(self._number(0, 3)):
                self._step(shape)
        self._stores(shape)
        return Kernel(tuple(self._renumbered()))

    def _number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def _pick(self, choices: Sequence[int]) -> int:
        return choices[self._number(0, len(choices) - 1)]

    def _shape(self) -> tuple[int, ...]:
        sizes: list[int] = []
        for _ in range(self._number(1, 3)):
            sizes.append(self._pick([size for size in SIZES if math.prod(sizes) * size <= MAX_POINTS]))
        return tuple(sizes)

    def _add(self, node: Node, dtype: DType, shape: tuple[int, ...], *, exact: bool) -> int:
        self.nodes.append(node)
        self.dtypes.append(dtype)
        self.shapes.append(shape)
        if exact:
            self.exact.add(len(self.nodes) - 1)
        return len(self.nodes) - 1

    # --- leaves ---

    def _leaf(self, shape: tuple[int, ...]) -> int:
        """A load or, seldom, a constant; some of its axes have size 1."""
        small = tuple(1 if self._number(0, 5) == 0 else size for size in shape)
        dtype = self.types[self._number(0, len(self.types) - 1)]
        if self._number(0, 6) == 0:
            view, _ = self._view(small, injective=False)
            return self._add(Const(self._value(dtype), dtype, (view,)), dtype, small, exact=True)
        self.buffers += 1
        return self._add(Load(self.buffers, dtype, self._views(small, injective=False)), dtype, small, exact=True)

    def _value(self, dtype: DType) -> Scalar:
        value = self._number(-3, 3)
        return value / 2 if dtype.is_float else dtype.canonical(value)

    def _views(self, shape: tuple[int, ...], *, injective: bool) -> Views:
        """One to three views, each over the elements that the next can reach."""
        views: list[View] = []
        while True:
            view, elements = self._view(shape, injective=injective)
            views.insert(0, view)
            if len(views) == 3 or self._number(0, 3):
                return tuple(views)
            shape = self._factors(elements)

    def _factors(self, count: int) -> tuple[int, ...]:
        sizes = []
        for _ in range(self._number(0, 2)):
            divisors = [n for n in range(1, count + 1) if count % n == 0]
            sizes.append(self._pick(divisors))
            count //= sizes[-1]
        return (*sizes, count)

    def _view(self, shape: tuple[int, ...], *, injective: bool) -> tuple[View, int]:
        """A view over the shape, and of how many elements: it touches none beyond them where it is valid."""
        moves = [self._move(size, injective=injective) for size in shape]
        order = self.draw(st.permutations(range(len(shape))))  # type: ignore[arg-type] # a strategy of lists
        offset = self._pick([0, 0, 0, 0, 1, 2, 4])
        strides = [0] * len(shape)
        elements = 1
        for axis in order:  # type: ignore[attr-defined]
            move = moves[axis]
            strides[axis] = move.step * elements
            offset += move.start * elements
            elements *= move.elements
        mask = tuple(move.valid for move in moves)
        whole = all(valid == (0, size) for valid, size in zip(mask, shape, strict=True))
        extra = self._pick([0, 0, 0, 1, 2, 4])
        first = self._pick([0, 0, 0, extra])
        return View(shape, tuple(strides), offset + first, None if whole else mask), elements + extra + 4

    def _move(self, size: int, *, injective: bool) -> _Move:
        """How one axis runs over its part of the elements."""
        kind = self._number(0, 8)
        if kind == 5:
            return _Move(size, -1, size - 1, (0, size))  # flip
        if kind == 1 and size > 1:  # pad
            low = self._number(0, size - 1)
            high = self._number(low + 1, size)
            return _Move(high - low, 1, -low, (low, high))
        if kind == 2:  # shrink
            start, behind = self._number(0, 3), self._number(0, 3)
            return _Move(start + size + behind, 1, start, (0, size))
        if kind == 3:  # every second or third
            step = self._number(2, 3)
            return _Move(size * step, step, 0, (0, size))
        if kind == 4 and not injective:
            return _Move(1, 0, 0, (0, size))  # expand
        return _Move(size, 1, 0, (0, size))

    # --- operators ---

    def _step(self, shape: tuple[int, ...]) -> None:
        """One more node of a random kind, if there are operands for it."""
        steps = (
            self._unary,
            self._binary,
            self._binary,
            self._compare,
            self._choose,
            self._cast,
            self._reduce,
            self._reduce,
        )
        kind = self._number(0, len(steps))
        if kind == len(steps):
            self._leaf(shape)
        else:
            last = len(self.nodes) - 1
            steps[kind](last if self._number(0, 2) else self._number(0, last))

    def _elementwise(self, op: Op, *src: int, dtype: DType | None = None, exact: bool = True) -> int:
        made = op.typing(dtype, tuple(self.dtypes[s] for s in src), None)
        shape = tuple(max(sizes) for sizes in zip(*(self.shapes[s] for s in src), strict=True))
        known = exact and all(s in self.exact for s in src)
        return self._add(Elementwise(op, src, dtype), made, shape, exact=known)

    def _unary(self, a: int) -> None:
        dtype = self.dtypes[a]
        if not dtype.is_float:
            self._elementwise((ops.NEG, ops.NOT)[self._number(0, 1)], a)
            return
        if a in self.exact and self._number(0, 1):
            self._elementwise((ops.FLOOR, ops.CEIL, ops.TRUNC, ops.ROUND)[self._number(0, 3)], a)
            return
        op = (ops.NEG, ops.SQRT, ops.RECIP, ops.EXP2, ops.SIN, ops.LOG2)[self._number(0, 5)]
        self._elementwise(op, a, exact=op is ops.NEG or op is ops.SQRT)

    def _partner(self, a: int) -> int:
        """Another node of the same type, or a constant."""
        others = [n for n, dtype in enumerate(self.dtypes) if dtype is self.dtypes[a]]
        if len(others) > 1 and self._number(0, 3):
            return self._pick(others)
        rank = len(self.shapes[a])
        ones = (1,) * rank
        value = self._value(self.dtypes[a])
        return self._add(Const(value, self.dtypes[a], (View(ones, (0,) * rank),)), self.dtypes[a], ones, exact=True)

    def _binary(self, a: int) -> None:
        dtype = self.dtypes[a]
        if dtype.is_int and self._number(0, 3) == 0:
            self._divide(a)
            return
        both = (ops.ADD, ops.MUL, ops.MAX, ops.MIN)
        more = (ops.AND, ops.OR, ops.XOR) if not dtype.is_float else (ops.SUB,)
        choices = (*both, *more, *((ops.SUB,) if dtype.is_int else ()))
        op = choices[self._number(0, len(choices) - 1)]
        self._elementwise(op, a, self._partner(a))

    def _divide(self, a: int) -> None:
        """By a constant that is not 0; shifts by a number of bits that there are."""
        dtype = self.dtypes[a]
        rank = len(self.shapes[a])
        op = (ops.FLOORDIV, ops.FLOORMOD, ops.TRUNCDIV, ops.TRUNCMOD, ops.SHL, ops.SHR)[self._number(0, 5)]
        value = (
            self._number(1, 7)
            if op in (ops.SHL, ops.SHR) or dtype.kind == "uint"
            else self._pick([1, 2, 3, 4, 7, -2, -3, -5])
        )
        b = self._add(Const(value, dtype, (View((1,) * rank, (0,) * rank),)), dtype, (1,) * rank, exact=True)
        self._elementwise(op, a, b)

    def _compare(self, a: int) -> None:
        if a in self.exact:
            b = self._partner(a)
            if b in self.exact:
                self._elementwise((ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)[self._number(0, 5)], a, b)

    def _choose(self, a: int) -> None:
        conditions = [n for n, dtype in enumerate(self.dtypes) if dtype is d.bool_]
        if conditions:
            self._elementwise(ops.WHERE, self._pick(conditions), a, self._partner(a))

    def _cast(self, a: int) -> None:
        """To another type; of floats only what was loaded, which every integer type but an unsigned one holds."""
        source, target = self.dtypes[a], self.types[self._number(0, len(self.types) - 1)]
        if source.is_float and not target.is_float and (not isinstance(self.nodes[a], Load) or target.kind == "uint"):
            return
        exact = not target.is_float or a in self.exact
        self._elementwise(ops.CAST, a, dtype=target, exact=exact)

    def _reduce(self, a: int) -> None:
        wide = [axis for axis, size in enumerate(self.shapes[a]) if size != 1]
        axes = tuple(axis for axis in wide if self._number(0, 2))
        if not axes:
            return
        dtype = self.dtypes[a]
        op = (ops.ADD, ops.MAX, ops.MIN, ops.MUL)[self._number(0, 2 if dtype.is_float else 3)]
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(self.shapes[a]))
        exact = a in self.exact and not (op is ops.ADD and dtype.is_float)
        self._add(Reduce(op, a, axes), dtype, shape, exact=exact)

    # --- stores ---

    def _stores(self, shape: tuple[int, ...]) -> None:
        """The last node and, seldom, another; what no store needs is left out later."""
        sources = [len(self.nodes) - 1]
        if self._number(0, 3) == 0:
            sources.append(self._number(0, len(self.nodes) - 1))
        for source in dict.fromkeys(sources):
            own = self.shapes[source]
            wide = tuple(big if self._number(0, 4) == 0 else size for big, size in zip(shape, own, strict=True))
            self.buffers += 1
            views = self._views(wide, injective=True)
            self.nodes.append(Store(self.buffers, self.dtypes[source], views, source))

    def _renumbered(self) -> list[Node]:
        """The nodes that the stores need, buffers numbered from 0, outputs first."""
        needed: set[int] = {n for n, node in enumerate(self.nodes) if isinstance(node, Store)}
        for number in range(len(self.nodes) - 1, -1, -1):
            if number in needed:
                node = self.nodes[number]
                needed |= set(
                    node.src
                    if isinstance(node, Elementwise)
                    else [node.src]
                    if isinstance(node, Reduce | Store)
                    else []
                )
        kept = sorted(needed)
        place = {old: new for new, old in enumerate(kept)}
        chosen = [self.nodes[number] for number in kept]
        stores = [node.buffer for node in chosen if isinstance(node, Store)]
        loads = [node.buffer for node in chosen if isinstance(node, Load)]
        slot = {buffer: number for number, buffer in enumerate(dict.fromkeys(stores + loads))}
        return [_moved(node, place, slot) for node in chosen]


@dataclass(frozen=True)
class _Move:
    """An axis over `elements` places: index i is at start + i*step, valid in a half-open range."""

    elements: int
    step: int
    start: int
    valid: tuple[int, int]


def _moved(node: Node, place: dict[int, int], slot: dict[int, int]) -> Node:
    match node:
        case Load():
            return Load(slot[node.buffer], node.dtype, node.views)
        case Store():
            return Store(slot[node.buffer], node.dtype, node.views, place[node.src])
        case Elementwise():
            return Elementwise(node.op, tuple(place[s] for s in node.src), node.dtype)
        case Reduce():
            return Reduce(node.op, place[node.src], node.axes)
        case Const():
            return node
