"""The graph: immutable, interned nodes.

Two nodes with the same operator, type, operands and argument are one object, so structural equality is identity and
`is` compares whole graphs. The table of nodes holds them weakly: a dropped graph is freed. No function here recurses
on the depth of a graph.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar, final

from . import dtypes, ops
from .dtypes import DType, Scalar, float_bits
from .errors import GraphError
from .ops import AxisKind, BufferArg, Op, RangeArg, ThreadKind

_Key = tuple[Op, DType, "tuple[UOp, ...]", object]


@final
class UOp:
    """A micro-operation: operator, type of the result, operands, and what else the operator needs (`engine.ops`).

    Made by `make` (checked, infers the type) or the short constructors below it; `intern` is the unchecked way of the
    compiled rules. The slots that start with an underscore are caches of `engine.facts`, `engine.order` and `engine.rewriting.shapes`.
    """

    __slots__ = (
        "__weakref__", "_congruence", "_hash", "_interval", "_order", "_ranges", "_shape", "arg", "dtype", "op", "src",
    )  # fmt: skip

    op: Op
    dtype: DType
    src: tuple[UOp, ...]
    arg: object
    _interval: tuple[int | float, int | float] | None
    _congruence: tuple[int, int] | None
    _ranges: int | None
    _shape: int | None
    _order: tuple[bool, int, str] | None
    _hash: int | None

    def __init__(self, op: Op, dtype: DType, src: tuple[UOp, ...], arg: object) -> None:
        self.op, self.dtype, self.src, self.arg = op, dtype, src, arg
        self._interval = self._congruence = self._ranges = self._shape = self._order = self._hash = None

    def __reduce__(self) -> tuple[Callable[[list[tuple[Op, DType, tuple[int, ...], object]]], UOp], tuple[object]]:
        return _rebuild, (_flatten(self),)

    def __copy__(self) -> UOp:
        return self

    def __deepcopy__(self, memo: object) -> UOp:
        return self

    def __repr__(self) -> str:
        from .printing import expression

        return expression(self)


class _Reference(weakref.ref[UOp]):
    """A weak reference that knows its key in the table (set right after the construction, which stays in C)."""

    __slots__ = ("key",)
    key: _Key


_table: dict[_Key, _Reference] = {}


def _forget(reference: weakref.ref[UOp]) -> None:
    key = reference.key  # type: ignore[attr-defined]  # only called for a _Reference, and very often
    if _table.get(key) is reference:
        del _table[key]


def intern(op: Op, dtype: DType, src: tuple[UOp, ...] = (), arg: object = None) -> UOp:
    """The node with these parts; unchecked. Constants are made by `const`, which keys them by their bits."""
    key = (op, dtype, src, arg)
    reference = _table.get(key)
    if reference is not None:
        node = reference()
        if node is not None:
            return node
    return _new(key, arg)


def _new(key: _Key, arg: object) -> UOp:
    """A node that the table does not have yet."""
    node = UOp(key[0], key[1], key[2], arg)
    reference = _Reference(node, _forget)
    reference.key = key
    _table[key] = reference
    return node


def const(dtype: DType, value: Scalar) -> UOp:
    """A constant of `dtype`, wrapped or rounded into it; with a vector type the same value in each lane."""
    return exact_const(dtype, dtype.canonical(value))


def exact_const(dtype: DType, value: Scalar) -> UOp:
    """A constant whose value is known to be one of `dtype`."""
    key = (ops.CONST, dtype, (), float_bits(value) if isinstance(value, float) else value)
    reference = _table.get(key)
    node = reference() if reference is not None else None
    return _new(key, value) if node is None else node


def make(op: Op, *src: UOp, dtype: DType | None = None, arg: object = None) -> UOp:
    """The node `op(src)`, its type inferred where the operator determines it.

    Raises GraphError naming the operator, its operands and what is wrong.
    """
    if op is ops.CONST:
        raise GraphError("constants are made by const(dtype, value)")
    if op.arity is not None and len(src) != op.arity or op.arity is None and not src and op is not ops.SINK:
        wanted = "at least one operand" if op.arity is None else f"{op.arity} operand{'s' * (op.arity != 1)}"
        raise GraphError(f"{op.name} takes {wanted}, got {len(src)}")
    return intern(op, infer(op, src, dtype, arg), src, arg)


def infer(op: Op, src: tuple[UOp, ...], dtype: DType | None = None, arg: object = None) -> DType:
    """The type of `op(src)`. Raises GraphError that shows the node."""
    try:
        return op.typing(dtype, tuple(s.dtype for s in src), arg)
    except (GraphError, IndexError) as problem:
        raise GraphError(f"{_sketch(op, src)}: {problem}") from None


def _sketch(op: Op, src: Iterable[UOp]) -> str:
    return f"{op.name}({', '.join(f'{s.op.name}: {s.dtype}' for s in src)})"


def buffer(slot: int, element: DType, size: int | None, image: tuple[int, int] | None = None) -> UOp:
    """The kernel's buffer argument number `slot`, of `size` elements; an image of so many rows and columns of texels."""
    return make(ops.BUFFER, dtype=element.ptr("global"), arg=BufferArg(slot, size, image))


def memory_of(pointer: UOp) -> UOp:
    """The buffer or local memory behind a pointer, whatever it waits for."""
    while pointer.op is ops.AFTER:
        pointer = pointer.src[0]
    return pointer


def range_(axis: int, end: int | UOp, kind: AxisKind = AxisKind.LOOP) -> UOp:
    """A loop variable of type index that counts from 0 up to, not including, `end`."""
    bound = const(dtypes.index, end) if isinstance(end, int) else end
    return make(ops.RANGE, bound, arg=RangeArg(axis, kind))


def special(kind: ThreadKind, dim: int, size: int | UOp) -> UOp:
    """The hardware index `kind` of dimension `dim`, from 0 up to, not including, `size`."""
    bound = const(dtypes.index, size) if isinstance(size, int) else size
    return make(ops.SPECIAL, bound, arg=ops.SpecialArg(kind, dim))


def variable(name: str, low: int, high: int) -> UOp:
    """A symbolic size: an argument of the kernel, `low` and `high` included."""
    return make(ops.VAR, dtype=dtypes.index, arg=ops.VarArg(name, low, high))


class Node(Protocol):
    """What `walk` needs of a node: its operands."""

    @property
    def src(self) -> tuple[Any, ...]: ...


AnyNode = TypeVar("AnyNode", bound=Node)


def walk(*roots: AnyNode) -> Iterator[AnyNode]:
    """Every node below the roots once, operands before users, in an order that only the graph decides."""
    seen: set[AnyNode] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((s, False) for s in reversed(node.src) if s not in seen)


def _flatten(root: UOp) -> list[tuple[Op, DType, tuple[int, ...], object]]:
    place: dict[UOp, int] = {}
    rows = []
    for node in walk(root):
        place[node] = len(place)
        rows.append((node.op, node.dtype, tuple(place[s] for s in node.src), node.arg))
    return rows


def _rebuild(rows: list[tuple[Op, DType, tuple[int, ...], object]]) -> UOp:
    nodes: list[UOp] = []
    for op, dtype, src, arg in rows:
        if op is ops.CONST:
            assert isinstance(arg, bool | int | float)
            nodes.append(const(dtype, arg))
        else:
            nodes.append(intern(op, dtype, tuple(nodes[i] for i in src), arg))
    return nodes[-1]
