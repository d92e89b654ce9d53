"""The Python form of a kernel: expressions over arrays that read like NumPy.

A `Tensor` is what a user sees: a shape and a type. Below it stands an expression whose axes are those of the whole
kernel: a reduced axis stays there with size 1, and `axes` says which of them the user sees. Movement operations go
down to the loads and constants, where they are views.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType

import numpy as np

from ..engine import dtypes, ops
from ..engine.dtypes import DType, Scalar
from ..engine.errors import GraphError, KernelError
from ..engine.ops import Op
from . import movement
from .detaching import detached, full_shape, reduces
from .expression import Expression, Leaf, Mapped, Reduced, broadcast_shapes, move, padded
from .sizes import Dim, Size
from .view import View, contiguous

Shape = tuple[Dim, ...]
Key = int | slice | None | EllipsisType


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An array expression. `shape` may be larger than the expression's where an axis of size 1 is repeated."""

    expression: Expression
    axes: tuple[int, ...]  # for each visible axis, the axis of the expression
    shape: Shape

    @property
    def dtype(self) -> DType:
        return self.expression.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape or not isinstance(self.shape[0], int):
            raise TypeError("this tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"Tensor(shape=({', '.join(map(str, self.shape))}), dtype={self.dtype})"

    def __bool__(self) -> bool:
        raise KernelError("a tensor has no truth value before the kernel runs; use where(condition, a, b)")

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Tensor:
        return apply(ops.ADD, self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return apply(ops.ADD, other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return apply(ops.SUB, self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return apply(ops.SUB, other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return apply(ops.MUL, self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return apply(ops.MUL, other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return divide(self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return divide(other, self)

    def __floordiv__(self, other: Operand) -> Tensor:
        return apply(ops.FLOORDIV, self, other)

    def __rfloordiv__(self, other: Operand) -> Tensor:
        return apply(ops.FLOORDIV, other, self)

    def __mod__(self, other: Operand) -> Tensor:
        return apply(ops.FLOORMOD, self, other)

    def __rmod__(self, other: Operand) -> Tensor:
        return apply(ops.FLOORMOD, other, self)

    def __and__(self, other: Operand) -> Tensor:
        return apply(ops.AND, self, other)

    def __rand__(self, other: Operand) -> Tensor:
        return apply(ops.AND, other, self)

    def __or__(self, other: Operand) -> Tensor:
        return apply(ops.OR, self, other)

    def __ror__(self, other: Operand) -> Tensor:
        return apply(ops.OR, other, self)

    def __xor__(self, other: Operand) -> Tensor:
        return apply(ops.XOR, self, other)

    def __rxor__(self, other: Operand) -> Tensor:
        return apply(ops.XOR, other, self)

    def __lshift__(self, other: Operand) -> Tensor:
        return apply(ops.SHL, self, other)

    def __rlshift__(self, other: Operand) -> Tensor:
        return apply(ops.SHL, other, self)

    def __rshift__(self, other: Operand) -> Tensor:
        return apply(ops.SHR, self, other)

    def __rrshift__(self, other: Operand) -> Tensor:
        return apply(ops.SHR, other, self)

    def __neg__(self) -> Tensor:
        return apply(ops.NEG, self)

    def __invert__(self) -> Tensor:
        return apply(ops.NOT, self)

    def __lt__(self, other: Operand) -> Tensor:
        return apply(ops.LT, self, other)

    def __le__(self, other: Operand) -> Tensor:
        return apply(ops.LE, self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return apply(ops.GT, self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return apply(ops.GE, self, other)

    def __eq__(self, other: Operand) -> Tensor:  # type: ignore[override] # elementwise, as NumPy has it
        return apply(ops.EQ, self, other)

    def __ne__(self, other: Operand) -> Tensor:  # type: ignore[override] # elementwise, as NumPy has it
        return apply(ops.NE, self, other)

    __hash__ = object.__hash__
    __array_ufunc__ = None  # a NumPy operand leaves the operator to the tensor

    def cast(self, dtype: str | DType) -> Tensor:
        """The values converted to another type."""
        to = named_type(dtype)
        return self if to is self.dtype else self._with(Mapped.make(ops.CAST, (self.expression,), to))

    def __matmul__(self, other: Tensor) -> Tensor:
        """The matrix product over the last axis and the other's last but one; leading axes broadcast."""
        if self.ndim < 2 or other.ndim < 2:
            raise KernelError("@ needs two tensors of at least two dimensions; use einsum for vectors")
        return (self[..., :, :, None] * other[..., None, :, :]).sum(-2)

    # --- reductions --------------------------------------------------------------------------------------------------

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The sum over axes. Small integers and bools are summed in 32 bits; float16 in float32, rounded once."""
        dtype = self.dtype
        if dtype is dtypes.bool_ or (dtype.kind == "sint" and dtype.bits < 32):
            return self.cast("int32").sum(axis, keepdims)
        if dtype.kind == "uint" and dtype.bits < 32:
            return self.cast("uint32").sum(axis, keepdims)
        return self._reduce(ops.ADD, axis, keepdims)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return self._reduce(ops.MAX, axis, keepdims)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return self._reduce(ops.MIN, axis, keepdims)

    def prod(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        return self._reduce(ops.MUL, axis, keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The sum divided by the number of elements."""
        sizes = [self.shape[number] for number in self._axis_numbers(axis)]
        if any(not isinstance(size, int) for size in sizes):
            raise KernelError("mean over a symbolic axis: divide the sum by the size yourself")
        narrow = self.dtype.is_float and self.dtype.bits < 32  # their sum may overflow before it is divided
        value = self if self.dtype.is_float and not narrow else self.cast("float32")
        mean = value.sum(axis, keepdims) / math.prod(size for size in sizes if isinstance(size, int))
        return mean.cast(self.dtype) if narrow else mean

    def _reduce(self, op: Op, axis: int | Sequence[int] | None, keepdims: bool) -> Tensor:
        numbers = self._axis_numbers(axis)
        full = self._materialized()
        inner = [full.axes[number] for number in numbers]
        expression = Reduced.make(op, full.expression, tuple(sorted(inner))) if inner else full.expression
        if keepdims:
            return Tensor(expression, full.axes, tuple(1 if n in numbers else s for n, s in enumerate(self.shape)))
        kept = [number for number in range(self.ndim) if number not in numbers]
        return Tensor(expression, tuple(full.axes[n] for n in kept), tuple(self.shape[n] for n in kept))

    def _axis_numbers(self, axis: int | Sequence[int] | None) -> list[int]:
        if axis is None:
            return list(range(self.ndim))
        numbers = [self._axis(a) for a in (axis if isinstance(axis, list | tuple) else [axis])]
        if len(set(numbers)) != len(numbers):
            raise KernelError(f"an axis stands twice in {axis}")
        return numbers

    def _axis(self, axis: object) -> int:
        if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
            raise KernelError(f"an axis is a whole number, got {axis!r}")
        axis = int(axis)
        if not -self.ndim <= axis < self.ndim:
            raise KernelError(f"axis {axis} is out of bounds for a tensor of {self.ndim} dimensions")
        return axis % self.ndim

    # --- movement ----------------------------------------------------------------------------------------------------

    def _with(self, expression: Expression) -> Tensor:
        return Tensor(expression, self.axes, self.shape)

    def permute(self, *order: int) -> Tensor:
        """The axes in another order."""
        numbers = [self._axis(axis) for axis in order]
        if sorted(numbers) != list(range(self.ndim)):
            raise KernelError(f"permute needs each of the {self.ndim} axes once, got {order}")
        return Tensor(self.expression, tuple(self.axes[n] for n in numbers), tuple(self.shape[n] for n in numbers))

    def transpose(self, first: int = -1, second: int = -2) -> Tensor:
        """Two axes exchanged, the last two by default."""
        order = list(range(self.ndim))
        a, b = self._axis(first), self._axis(second)
        order[a], order[b] = order[b], order[a]
        return self.permute(*order)

    @property
    def T(self) -> Tensor:
        """All axes reversed."""
        return self.permute(*reversed(range(self.ndim)))

    def expand(self, *shape: Dim) -> Tensor:
        """Axes of size 1 repeated; -1 keeps a size."""
        if len(shape) != self.ndim:
            raise KernelError(f"expand needs {self.ndim} sizes, got {len(shape)}")
        result = tuple(old if new == -1 else new for old, new in zip(self.shape, shape, strict=True))
        for old, new in zip(self.shape, result, strict=True):
            if old not in (1, new):
                raise KernelError(f"cannot expand the shape {self.shape} to {result}: only an axis of size 1 repeats")
        return Tensor(self.expression, self.axes, result)

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The same elements, row-major, in another shape; one size may be -1."""
        wanted = _resolve_shape(self.shape, shape)
        if wanted == self.shape:
            return self
        squeezed = self._squeezed()
        core = tuple(size for size in wanted if size != 1)
        moved = squeezed if core == squeezed.shape else squeezed._reshaped(core)
        keys: list[Key] = [None if size == 1 else slice(None) for size in wanted]
        return moved[tuple(keys)]

    def _squeezed(self) -> Tensor:
        kept = [number for number, size in enumerate(self.shape) if size != 1]
        return Tensor(self.expression, tuple(self.axes[n] for n in kept), tuple(self.shape[n] for n in kept))

    def _reshaped(self, shape: Shape) -> Tensor:
        full = self._materialized()
        if any(isinstance(part, Reduced) for part in full.expression.walk()):
            raise KernelError(
                "a reduced value cannot be reshaped inside a kernel; store it in a kernel of its own first"
            )
        axes, rank = full.axes, len(full.expression.shape)
        hidden = [axis for axis in range(rank) if axis not in axes]

        def change(leaf: Leaf) -> Leaf:
            order = (*axes, *hidden)
            back = tuple(order.index(axis) for axis in range(rank))
            views = movement.place(_broadcast_leaf(leaf, full.expression.shape), back, rank)
            return leaf.with_views(movement.reshape(views, shape))

        return Tensor(move(full.expression, change), tuple(range(len(shape))), shape)

    def pad(self, widths: Sequence[tuple[int, int]]) -> Tensor:
        """Zeros around: for each axis how many before and behind."""
        if not _are_pairs(widths, self.ndim) or any(before < 0 or behind < 0 for before, behind in widths):
            raise KernelError(f"pad needs {self.ndim} pairs of numbers that are not negative, got {widths}")
        result = self
        for axis, (before, behind) in enumerate(widths):
            if before or behind:
                full = result._materialized()._detached(axis)
                expression = padded(full.expression, full.axes[axis], before, behind)
                size = full.shape[axis] + before + behind
                result = Tensor(expression, full.axes, (*full.shape[:axis], size, *full.shape[axis + 1 :]))
        return result

    def shrink(self, bounds: Sequence[tuple[int, int]]) -> Tensor:
        """For each axis the half-open interval to keep."""
        if not _are_pairs(bounds, self.ndim):
            raise KernelError(f"shrink needs {self.ndim} pairs of whole numbers, got {bounds}")
        return self[tuple(slice(low, high) for low, high in bounds)]

    def flip(self, *axes: int) -> Tensor:
        """These axes read backwards."""
        result = self._materialized()
        for axis in axes:
            result = result._with(_flipped(result.expression, result.axes[self._axis(axis)]))
        return result

    def _materialized(self) -> Tensor:
        """With every repeated axis really there, so that it can be sliced or summed."""
        result = self
        for number, size in enumerate(self.shape):
            axis = self.axes[number]
            if result.expression.shape[axis] != size:
                result = result._detached(number)
                result = result._with(_repeated(result.expression, axis, size))
        return result

    def _detached(self, number: int) -> Tensor:
        """With no reduction over the kernel's axis below the visible axis `number`."""
        axis = self.axes[number]
        return self._with(detached(self.expression, axis)) if reduces(self.expression, axis) else self

    def __getitem__(self, key: Key | tuple[Key, ...]) -> Tensor:
        keys = list(key) if isinstance(key, tuple) else [key]
        return _index(self, _without_ellipsis(keys, self.ndim))


Operand = Tensor | bool | int | float


def tensor(name: str, shape: Sequence[Dim], dtype: str | DType = "float32") -> Tensor:
    """An input of the kernel, of this shape and type.

    Raises KernelError for a name that is no identifier, a negative size or an unknown type.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise KernelError(f"{name!r} cannot name an input; use letters, digits and _")
    sizes = _sizes(name, shape)
    leaf = Leaf(sizes, named_type(dtype), (contiguous(sizes),), name, sizes, None)
    return Tensor(leaf, tuple(range(len(sizes))), sizes)


def _sizes(name: str, shape: Sequence[Dim]) -> Shape:
    """The shape of an input; NumPy's integers become Python's."""
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise KernelError(f"{name}: the shape must be a tuple of sizes, such as (64, 32), got {shape!r}")
    sizes = tuple(int(size) if isinstance(size, np.integer) else size for size in shape)
    for size in sizes:
        if not isinstance(size, int | Size) or isinstance(size, bool):
            raise KernelError(f"{name}: a size must be a whole number or made by var(…), got {size!r}")
        if isinstance(size, int) and size < 0:
            raise KernelError(f"{name}: the shape {sizes} has a negative size")
    return sizes


def constant(value: Scalar, dtype: str | DType) -> Tensor:
    """A number as a tensor without axes."""
    to = named_type(dtype)
    return Tensor(Leaf((), to, (View((), ()),), None, (), to.canonical(value)), (), ())


def named_type(dtype: str | DType) -> DType:
    """A data type by name. Raises KernelError with the names that there are."""
    if isinstance(dtype, DType):
        return dtype
    for known in dtypes.DATA_TYPES:
        if known.name == str(dtype):
            return known
    raise KernelError(f"unknown type {dtype!r}; the types are {', '.join(d.name for d in dtypes.DATA_TYPES)}")


def promote(*operands: Operand) -> DType:
    """NumPy 2's promotion: Python numbers adapt to the arrays' type. bfloat16 with float16 gives float32."""
    types = {operand.dtype for operand in operands if isinstance(operand, Tensor)}
    plain = [operand for operand in operands if not isinstance(operand, Tensor)]
    result = _joined(sorted(types, key=lambda dtype: dtype.name))
    if any(isinstance(p, float) for p in plain) and not result.is_float:
        return dtypes.float64 if result.bits == 64 else dtypes.float32
    if result is dtypes.bool_ and any(not isinstance(p, bool) for p in plain):
        return dtypes.int32
    return result


def _joined(types: Sequence[DType]) -> DType:
    if len(types) == 1:
        return types[0]
    if dtypes.bfloat16 in types:
        others = [t for t in types if t is not dtypes.bfloat16]
        if not any(t.is_float for t in others):
            return dtypes.bfloat16
        return _joined([dtypes.float32 if t is dtypes.float16 else t for t in others])
    return named_type(np.result_type(*(np.bool_ if t is dtypes.bool_ else t.name for t in types)).name)


def apply(op: Op, *operands: Operand) -> Tensor:
    """An elementwise operator with NumPy's broadcasting and promotion."""
    if not any(isinstance(operand, Tensor) for operand in operands):
        raise KernelError(f"{op.name} needs at least one tensor")
    dtype = promote(*operands)
    return combine(op, [_as_tensor(operand, dtype) for operand in operands])


def divide(a: Operand, b: Operand) -> Tensor:
    """True division: integers become floats, 64-bit ones float64."""
    dtype = promote(a, b)
    if not dtype.is_float:
        dtype = dtypes.float64 if dtype.bits == 64 else dtypes.float32
    return combine(ops.DIV, [_as_tensor(operand, dtype) for operand in (a, b)])


def where(condition: Tensor, a: Operand, b: Operand) -> Tensor:
    """Elements of `a` where the condition holds, else of `b`."""
    if not isinstance(condition, Tensor) or condition.dtype is not dtypes.bool_:
        raise KernelError("the condition of where must be a bool tensor, such as x > 0")
    tensors = [operand for operand in (a, b) if isinstance(operand, Tensor)]
    numbers = any(isinstance(operand, float) for operand in (a, b))
    dtype = promote(a, b) if tensors else (dtypes.float32 if numbers else dtypes.int32)
    return combine(ops.WHERE, [condition, _as_tensor(a, dtype), _as_tensor(b, dtype)])


def _as_tensor(operand: Operand, dtype: DType) -> Tensor:
    if isinstance(operand, Tensor):
        return operand.cast(dtype)
    if not isinstance(operand, bool | int | float | np.generic):
        raise KernelError(f"cannot compute with {type(operand).__name__}; make inputs with tensor(name, shape, dtype)")
    value = operand.item() if isinstance(operand, np.generic) else operand
    if dtype.is_int and not dtype.lowest <= value <= dtype.highest:  # as NumPy: a plain number never wraps
        raise KernelError(f"{value} is no value of {dtype} ({dtype.lowest}..{dtype.highest}); cast the tensor first")
    try:
        return constant(value, dtype)
    except (ValueError, OverflowError):
        raise KernelError(f"{operand} is not a value of {dtype}") from None


def combine(op: Op, tensors: Sequence[Tensor]) -> Tensor:
    """Elementwise on tensors of the types that the operator needs, broadcast against each other."""
    shape = broadcast_shapes([t.shape for t in tensors])
    aligned, axes = align(tensors, len(shape))
    try:
        return Tensor(Mapped.make(op, tuple(aligned), None), axes, shape)
    except GraphError as problem:
        raise KernelError(str(problem)) from None


def align(tensors: Sequence[Tensor], rank: int) -> tuple[list[Expression], tuple[int, ...]]:
    """The expressions over common axes: the visible ones where they broadcast, hidden ones shared where sizes agree."""
    tensors = _without_conflicts(tensors, rank)
    hidden_sizes: list[Dim] = []
    places: list[dict[int, int]] = []
    for one in tensors:
        place = {axis: rank - one.ndim + number for number, axis in enumerate(one.axes)}
        free = list(range(len(hidden_sizes)))
        for axis, size in enumerate(full_shape(one.expression)):
            if axis in place:
                continue
            if size == 1:
                continue
            slot = next((s for s in free if hidden_sizes[s] == size), None)
            if slot is None:
                slot = len(hidden_sizes)
                hidden_sizes.append(size)
            else:
                free.remove(slot)
            place[axis] = rank + slot
        places.append(place)
    total = rank + len(hidden_sizes)
    result = [one.expression.placed(place, total) for one, place in zip(tensors, places, strict=True)]
    return result, tuple(range(rank))


def _without_conflicts(tensors: Sequence[Tensor], rank: int) -> list[Tensor]:
    """A reduction keeps its axis among the visible ones where the sizes agree, as in a softmax, else gets its own."""
    shape = broadcast_shapes([one.shape for one in tensors])
    taken = {rank - len(shape) + number: size for number, size in enumerate(shape) if size != 1}
    result = []
    for one in tensors:
        full = full_shape(one.expression)
        for number, axis in enumerate(one.axes):
            if full[axis] != 1 and taken.setdefault(rank - one.ndim + number, full[axis]) != full[axis]:
                one = one._detached(number)
        result.append(one)
    return result


def _resolve_shape(old: Shape, shape: Sequence[int | Sequence[int]]) -> Shape:
    sizes: list[int] = []
    for part in shape:
        sizes += [int(part)] if isinstance(part, int | np.integer) else [int(size) for size in part]
    if any(not isinstance(size, int) for size in old):
        raise KernelError("a tensor with a symbolic size cannot be reshaped")
    count = math.prod(size for size in old if isinstance(size, int))
    if sizes.count(-1) == 1:
        known = math.prod(size for size in sizes if size != -1)
        if known and count % known == 0:
            sizes[sizes.index(-1)] = count // known
    if math.prod(sizes) != count or any(size < 0 for size in sizes):
        raise KernelError(f"cannot reshape {count} elements of shape {old} into {tuple(sizes)}")
    return tuple(sizes)


def _are_pairs(value: object, count: int) -> bool:
    """Whether a user's argument is a list of so many pairs of whole numbers."""
    return (
        isinstance(value, list | tuple)
        and len(value) == count
        and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value)
        and all(isinstance(number, int | np.integer) for pair in value for number in pair)
    )


def _flipped(expression: Expression, axis: int) -> Expression:
    return move(expression, lambda leaf: leaf.changed(axis, movement.flip, axis))


def _repeated(expression: Expression, axis: int, size: Dim) -> Expression:
    return move(expression, lambda leaf: leaf.with_views(movement.expand(leaf.views, axis, size)))


def _broadcast_leaf(leaf: Leaf, shape: Shape) -> tuple[View, ...]:
    views = leaf.views
    for axis, (own, wanted) in enumerate(zip(leaf.shape, shape, strict=True)):
        if own != wanted:
            views = movement.expand(views, axis, wanted)
    return views


def diagonal(source: Tensor, first: int, second: int) -> Tensor:
    """Two visible axes walked together, as the first; the second is gone. One of size 1 repeats."""
    full = source._detached(first)._detached(second)
    sizes = (full.shape[first], full.shape[second])
    size = sizes[1] if sizes[0] == 1 else sizes[0]
    if sizes[1] not in (1, size):
        raise KernelError(f"a diagonal needs two axes of one size, got {sizes[0]} and {sizes[1]}")
    shape = tuple(size if number in (first, second) else s for number, s in enumerate(full.shape))
    full = Tensor(full.expression, full.axes, shape)._materialized()
    a, b = full.axes[first], full.axes[second]
    expression = move(full.expression, lambda leaf: leaf.with_views(movement.diagonal(leaf.views, a, b)))
    keep = [number for number in range(full.ndim) if number != second]
    return Tensor(expression, tuple(full.axes[n] for n in keep), tuple(full.shape[n] for n in keep))


# --- indexing --------------------------------------------------------------------------------------------------------


def _without_ellipsis(keys: list[Key], rank: int) -> list[Key]:
    used = sum(key is not None and key is not Ellipsis for key in keys)
    if used > rank:
        raise KernelError(f"too many indices: {used} for a tensor of {rank} dimensions")
    rest: list[Key] = [slice(None)] * (rank - used)
    dots = [number for number, key in enumerate(keys) if key is Ellipsis]
    if len(dots) > 1:
        raise KernelError("an index can have one `...`")
    return [*keys[: dots[0]], *rest, *keys[dots[0] + 1 :]] if dots else [*keys, *rest]


def _index(source: Tensor, keys: list[Key]) -> Tensor:
    """Slices first, on the axes that there are; then the axes in their new order."""
    result = source
    axis = 0
    plan: list[int | None] = []
    for key in keys:
        if key is None:
            plan.append(None)
            continue
        if isinstance(key, slice):
            result = _sliced(result, axis, key)
            plan.append(axis)
        elif isinstance(key, int | np.integer) and not isinstance(key, bool):
            result = _picked(result, axis, int(key))
        else:
            raise KernelError(f"cannot index with {key!r}; use numbers, slices, None and `...`")
        axis += 1
    return _with_new_axes(result, plan)


def _sliced(source: Tensor, axis: int, key: slice) -> Tensor:
    size = source.shape[axis]
    if key == slice(None):
        return source
    if not isinstance(size, int):
        raise KernelError(f"cannot slice an axis of the symbolic size {size}")
    try:
        start, stop, step = key.indices(size)
    except (TypeError, ValueError) as problem:
        raise KernelError(f"cannot slice axis {axis}: {problem}") from None
    count = len(range(start, stop, step))
    step = step if count > 1 else 1
    full = source._materialized()
    if count < size:  # the whole axis backwards is the same for a reduction
        full = full._detached(axis)
    inner = full.axes[axis]
    first, last = (start, start + (count - 1) * step) if count else (0, -1)
    low, high = min(first, last), max(first, last) + 1
    expression = full.expression
    if (low, high) != (0, size):
        low, high = (low, high) if count else (0, 0)
        expression = move(expression, lambda leaf: leaf.changed(inner, movement.shrink, inner, low, high))
    if step < 0:
        expression = move(expression, lambda leaf: leaf.changed(inner, movement.flip, inner))
    if abs(step) > 1:
        expression = move(expression, lambda leaf: leaf.changed(inner, movement.every, inner, abs(step)))
    return Tensor(expression, full.axes, (*full.shape[:axis], count, *full.shape[axis + 1 :]))


def _picked(source: Tensor, axis: int, number: int) -> Tensor:
    size = source.shape[axis]
    if not isinstance(size, int) or not -size <= number < size:
        raise KernelError(f"index {number} is out of bounds for axis {axis} of size {size}")
    at = number % size
    return _sliced(source, axis, slice(at, at + 1))


def _with_new_axes(source: Tensor, plan: Sequence[int | None]) -> Tensor:
    """Picks visible axes in order; a None takes a hidden axis of the expression, or a new one."""
    expression = source.expression
    visible = {source.axes[number] for number in plan if number is not None}
    spare = [axis for axis, size in enumerate(expression.shape) if size == 1 and axis not in visible]
    axes: list[int] = []
    shape: list[Dim] = []
    rank = len(expression.shape)
    added = 0
    for number in plan:
        if number is not None:
            axes.append(source.axes[number])
            shape.append(source.shape[number])
            continue
        shape.append(1)
        if spare:
            axes.append(spare.pop(0))
        else:
            axes.append(rank + added)
            added += 1
    if added:
        expression = expression.placed({axis: axis for axis in range(rank)}, rank + added)
    return Tensor(expression, tuple(axes), tuple(shape))
