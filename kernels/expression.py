"""Expressions below the tensors: loads and constants, elementwise operators, reductions, over a kernel's own axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from ..engine.dtypes import DType, Scalar, bool_
from ..engine.errors import KernelError
from ..engine.ops import WHERE, Op
from ..engine.uop import walk
from . import movement
from .sizes import Dim
from .view import View, Views

Shape = tuple[Dim, ...]


@dataclass(frozen=True, eq=False)
class Expression:
    """A node; `shape` is over the kernel's axes, reduced ones with size 1."""

    shape: Shape
    dtype: DType

    @property
    def src(self) -> tuple[Expression, ...]:
        return ()

    def rebuilt(self, src: tuple[Expression, ...]) -> Expression:
        return self

    def walk(self) -> Iterator[Expression]:
        """Every node below once, operands first."""
        return walk(self)

    def placed(self, places: Mapping[int, int], rank: int) -> Expression:
        """The same over `rank` axes: axis k becomes axis `places[k]`; an axis without a place has size 1 throughout."""
        if rank == len(self.shape) and all(places.get(axis) == axis for axis in range(rank)):
            return self
        done: dict[Expression, Expression] = {}
        for node in self.walk():
            src = tuple(done[s] for s in node.src)
            if isinstance(node, Leaf):
                done[node] = node.with_views(_placed_views(node.views, places, rank))
            elif isinstance(node, Reduced):
                axes = tuple(sorted(places[axis] for axis in node.axes if axis in places))
                done[node] = Reduced.make(node.op, src[0], axes) if axes else src[0]  # over one element: that element
            else:
                done[node] = node.rebuilt(src)
        return done[self]


def _placed_views(views: Views, places: Mapping[int, int], rank: int) -> Views:
    last = views[-1]
    kept = [axis for axis in range(len(last.shape)) if axis in places]
    mask = None if last.mask is None else tuple(last.mask[axis] for axis in kept)
    dropped = [last.mask[axis] for axis in range(len(last.shape)) if last.mask is not None and axis not in places]
    small = View(tuple(last.shape[a] for a in kept), tuple(last.strides[a] for a in kept), last.offset, mask)
    result = movement.place((*views[:-1], small), [places[a] for a in kept], rank)
    if any(low != 0 or high != 1 for low, high in dropped):  # valid nowhere: an axis of size 1 outside of its mask
        nowhere = View((1,), (0,), 0, ((0, 0),))  # a view of its own: with rank 0 there is no axis to mask
        result = (nowhere, View(result[-1].shape, (0,) * rank))
    return result


@final
@dataclass(frozen=True, eq=False)
class Leaf(Expression):
    """A load of the input `name` of shape `declared`, or, without a name, the constant `value`."""

    views: Views
    name: str | None
    declared: Shape
    value: Scalar | None

    def with_views(self, views: Views) -> Leaf:
        return Leaf(views[-1].shape, self.dtype, views, self.name, self.declared, self.value)

    def changed(self, axis: int, change: Callable[..., Views], *arguments: Any) -> Leaf:
        """With its views moved along an axis; a leaf that is only repeated there stays as it is."""
        if self.shape[axis] == 1 and change is not movement.pad:
            return self
        return self.with_views(change(self.views, *arguments))


@final
@dataclass(frozen=True, eq=False)
class Mapped(Expression):
    """An elementwise operator."""

    op: Op
    operands: tuple[Expression, ...]

    @classmethod
    def make(cls, op: Op, operands: tuple[Expression, ...], dtype: DType | None) -> Mapped:
        """Raises GraphError for operands of types that the operator does not take."""
        result = op.typing(dtype, tuple(operand.dtype for operand in operands), None)
        return cls(broadcast_shapes([operand.shape for operand in operands]), result, op, operands)

    @property
    def src(self) -> tuple[Expression, ...]:
        return self.operands

    def rebuilt(self, src: tuple[Expression, ...]) -> Mapped:
        return Mapped.make(self.op, src, self.dtype)


@final
@dataclass(frozen=True, eq=False)
class Reduced(Expression):
    """A reduction over axes, which keep size 1."""

    op: Op
    operand: Expression
    axes: tuple[int, ...]

    @classmethod
    def make(cls, op: Op, operand: Expression, axes: tuple[int, ...]) -> Reduced:
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(operand.shape))
        return cls(shape, operand.dtype, op, operand, axes)

    @property
    def src(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def rebuilt(self, src: tuple[Expression, ...]) -> Reduced:
        return Reduced.make(self.op, src[0], self.axes)


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcasting of shapes. Raises KernelError naming them if they do not fit."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = []
    for axis in range(rank):
        sizes = [shape[axis - rank + len(shape)] for shape in shapes if axis - rank + len(shape) >= 0]
        wide = [size for size in sizes if size != 1]
        if any(size != wide[0] for size in wide):
            texts = ", ".join(f"({', '.join(map(str, shape))})" for shape in dict.fromkeys(shapes))
            raise KernelError(f"cannot broadcast the shapes {texts} together")
        result.append(wide[0] if wide else 1)
    return tuple(result)


def move(root: Expression, change: Callable[[Leaf], Leaf]) -> Expression:
    """The expression with its loads and constants looked at through other views."""
    done: dict[Expression, Expression] = {}
    for node in root.walk():
        done[node] = change(node) if isinstance(node, Leaf) else node.rebuilt(tuple(done[s] for s in node.src))
    return done[root]


def padded(root: Expression, axis: int, before: int, behind: int) -> Expression:
    """Zeros along an axis: in the views of a lone load; around an expression by a choice, since f(0) need not be 0."""
    size = root.shape[axis]

    def change(leaf: Leaf) -> Leaf:
        if leaf.shape[axis] == 1 and size != 1:
            return leaf
        return leaf.with_views(movement.pad(leaf.views, axis, before, behind))

    if isinstance(root, Leaf):
        return change(root)
    if any(isinstance(node, Reduced) and axis in node.axes for node in root.walk()):
        raise KernelError(
            "a reduced axis cannot be padded inside a kernel; store the value in a kernel of its own first"
        )
    moved = move(root, change)
    rank = len(root.shape)
    shape = tuple(size + before + behind if number == axis else 1 for number in range(rank))
    mask = tuple((before, before + size) if number == axis else (0, 1) for number in range(rank))
    views = (View(shape, (0,) * rank, 0, mask),)
    inside = Leaf(shape, bool_, views, None, (), True)
    zero = Leaf((1,) * rank, root.dtype, (View((1,) * rank, (0,) * rank),), None, (), root.dtype.canonical(0))
    return Mapped.make(WHERE, (inside, moved, zero), None)
