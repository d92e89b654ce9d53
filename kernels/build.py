"""From tensor expressions to a kernel: one rank for all, equal parts once, outputs first among the buffers."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.dtypes import float_bits
from ..engine.errors import KernelError
from .expression import Expression, Leaf, Mapped, Reduced, broadcast_shapes
from .kernel import Argument, Const, Elementwise, Kernel, Load, Node, Reduce, Store
from .tensor import Tensor, align
from .view import View, row_major


def kernel(outputs: Tensor | Sequence[Tensor], names: Sequence[str] | None = None) -> Kernel:
    """The kernel that computes these tensors; several share one iteration space.

    `names` name the outputs; by default `out`, or `out0`, `out1`, … The inputs keep theirs.
    Raises KernelError if the outputs do not fit together or an input has two meanings.
    """
    given = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    tensors = [one for one in given if isinstance(one, Tensor)]
    if not tensors or len(tensors) < len(given):
        raise KernelError(f"kernel needs a tensor, or a list of them, got {outputs!r}")
    labels = list(names) if names else ["out"] if len(tensors) == 1 else [f"out{n}" for n in range(len(tensors))]
    if len(labels) != len(tensors) or len(set(labels)) != len(labels):
        raise KernelError(f"{len(tensors)} outputs need as many different names, got {', '.join(labels)}")
    rank = max(one.ndim for one in tensors)
    broadcast_shapes([one.shape for one in tensors])
    expressions, _ = align(tensors, rank)
    return _Builder(tensors, labels, rank).build(expressions)


class _Builder:
    """Collects the nodes of one kernel."""

    def __init__(self, tensors: Sequence[Tensor], labels: Sequence[str], rank: int) -> None:
        self.tensors, self.labels, self.rank = tensors, labels, rank
        self.nodes: list[Node] = []
        self.known: dict[object, int] = {}
        self.inputs: dict[str, Argument] = {}

    def build(self, expressions: Sequence[Expression]) -> Kernel:
        sources = [self._add_all(expression) for expression in expressions]
        arguments = []
        for slot, (one, label, source) in enumerate(zip(self.tensors, self.labels, sources, strict=True)):
            if label in self.inputs:
                raise KernelError(f"{label} names an input and an output; give the output another name")
            total = len(expressions[slot].shape)
            lead = self.rank - one.ndim
            shape = (*[1] * lead, *one.shape, *[1] * (total - self.rank))
            strides = (*[0] * lead, *row_major(one.shape), *[0] * (total - self.rank))
            self.nodes.append(Store(slot, one.dtype, (View(shape, strides),), source))
            arguments.append(Argument(slot, label, one.dtype, one.shape, written=True))
        return Kernel(tuple(self.nodes), "", (*arguments, *self.inputs.values()))

    def _add_all(self, root: Expression) -> int:
        place: dict[Expression, int] = {}
        for node in root.walk():
            place[node] = self._add(node, tuple(place[s] for s in node.src))
        return place[root]

    def _add(self, node: Expression, src: tuple[int, ...]) -> int:
        """The number of the node; an equal one is used again."""
        made: Node
        match node:
            case Leaf(name=None, value=value) if value is not None:
                made = Const(value, node.dtype, node.views)
                key: object = (
                    "const",
                    node.dtype,
                    node.views,
                    float_bits(value) if isinstance(value, float) else value,
                )
            case Leaf():
                made = Load(self._slot(node), node.dtype, node.views)
                key = made
            case Mapped():
                made = Elementwise(node.op, src, node.dtype)
                key = made
            case Reduced():
                made = Reduce(node.op, src[0], node.axes)
                key = made
            case _:
                raise AssertionError(node)
        if key not in self.known:
            self.known[key] = len(self.nodes)
            self.nodes.append(made)
        return self.known[key]

    def _slot(self, leaf: Leaf) -> int:
        assert leaf.name is not None
        slot = len(self.tensors) + len(self.inputs)
        found = self.inputs.setdefault(leaf.name, Argument(slot, leaf.name, leaf.dtype, leaf.declared, written=False))
        if (found.dtype, found.shape) != (leaf.dtype, leaf.declared):
            raise KernelError(f"{leaf.name} is used with two types or shapes; inputs of one name must be one tensor")
        return found.slot
