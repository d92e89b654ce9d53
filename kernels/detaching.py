"""Reduced axes moved out of the way: a reduction below gets an axis of its own, so that its old axis can move freely."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from .expression import Expression, Leaf, Reduced, Shape, broadcast_shapes

_full_shapes: WeakKeyDictionary[Expression, Shape] = WeakKeyDictionary()


def full_shape(root: Expression) -> Shape:
    """The size of each axis before it was reduced, the largest below.

    Remembered for each node: building a long expression asks for it at every step.
    """
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [operand for operand in node.src if operand not in _full_shapes]
        if missing:
            stack += missing
            continue
        stack.pop()
        shapes = [node.shape, *(_full_shapes[operand] for operand in node.src)]
        _full_shapes[node] = node.shape if all(s == node.shape for s in shapes) else broadcast_shapes(shapes)
    return _full_shapes[root]


def reduces(root: Expression, axis: int) -> bool:
    """Whether a reduction below runs over the axis."""
    return any(isinstance(node, Reduced) and axis in node.axes for node in root.walk())


def detached(root: Expression, axis: int) -> Expression:
    """The same value with one more axis, the last, on which everything runs that was reduced over `axis`.

    Without this a slice of a softmax would slice what its maximum and its sum run over.
    """
    rank = len(root.shape)
    stay = {number: number for number in range(rank)}
    away = {**stay, axis: rank}
    outside: dict[Expression, Expression] = {}
    inside: dict[Expression, Expression] = {}
    for node in root.walk():
        if isinstance(node, Leaf):
            inside[node], outside[node] = node.placed(away, rank + 1), node.placed(stay, rank + 1)
        elif isinstance(node, Reduced):
            axes = tuple(sorted(away[number] for number in node.axes))
            inside[node] = Reduced.make(node.op, inside[node.operand], axes)
            outside[node] = inside[node] if axis in node.axes else node.rebuilt((outside[node.operand],))
        else:
            inside[node] = node.rebuilt(tuple(inside[s] for s in node.src))
            outside[node] = node.rebuilt(tuple(outside[s] for s in node.src))
    return outside[root]
