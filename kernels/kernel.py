"""What a kernel is: a list of nodes over one iteration space, as kernel JSON says it and the Python form builds it.

Every node has the same rank. A reduced axis keeps size 1; in elementwise nodes an axis of size 1 broadcasts. Types are
inferred and checked here, so that everything after it can rely on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..engine import dtypes, ops
from ..engine.dtypes import DType, Scalar
from ..engine.errors import GraphError, KernelError
from ..engine.ops import Op
from .sizes import Dim, Size, bounds, product, variables
from .view import View, Views


@dataclass(frozen=True, slots=True)
class Load:
    """Element of a buffer through its views; 0 where they are not valid. `image` buffers read as float32."""

    buffer: int
    dtype: DType  # what the buffer holds
    views: Views
    image: tuple[int, int] | None = None  # height and width in texels


@dataclass(frozen=True, slots=True)
class Const:
    """A value, which may be a symbolic size, where its views are valid, else 0."""

    value: Scalar | Size
    dtype: DType
    views: Views


@dataclass(frozen=True, slots=True)
class Elementwise:
    """An operator on earlier nodes; `dtype` is the target of a cast or bitcast."""

    op: Op
    src: tuple[int, ...]
    dtype: DType | None = None


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction over `axes`, which keep size 1."""

    op: Op
    src: int
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """Writes a node to a buffer through views; what no store reaches keeps its value."""

    buffer: int
    dtype: DType
    views: Views
    src: int
    image: tuple[int, int] | None = None


Node = Load | Const | Elementwise | Reduce | Store


@dataclass(frozen=True, slots=True)
class Argument:
    """A buffer argument as a caller sees it: `shape` is flat where only the views are known, None where that is symbolic."""

    slot: int
    name: str
    dtype: DType
    shape: tuple[Dim, ...] | None
    written: bool


@dataclass(frozen=True)
class Kernel:
    """A checked kernel. `arguments_by_slot` declares its buffers; empty: they are derived from what the views reach.

    Raises KernelError, naming the node, for what is not a kernel.
    """

    nodes: tuple[Node, ...]
    id: str = ""
    arguments_by_slot: tuple[Argument, ...] = ()
    types: tuple[DType, ...] = field(init=False)
    shapes: tuple[tuple[Dim, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        types: list[DType] = []
        shapes: list[tuple[Dim, ...]] = []
        for number, node in enumerate(self.nodes):
            try:
                dtype, shape = _check(node, number, types, shapes)
            except (GraphError, KernelError) as problem:
                raise KernelError(f"nodes[{number}]: {problem}") from None
            types.append(dtype)
            shapes.append(shape)
        if not any(isinstance(node, Store) for node in self.nodes):
            raise KernelError("a kernel needs at least one store; add a node with op `store`")
        object.__setattr__(self, "types", tuple(types))
        object.__setattr__(self, "shapes", tuple(shapes))
        _check_buffers(self.nodes)
        _ = self.variables  # one name has one pair of bounds

    @property
    def stores(self) -> tuple[Store, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Store))

    @cached_property
    def axis_sizes(self) -> tuple[Dim, ...]:
        """The full size of each axis: the largest that any node has."""
        return _broadcast(self.shapes)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Every buffer argument by slot: declared, or derived from what the views reach."""
        return self.arguments_by_slot or _derive_arguments(self.nodes)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if not argument.written)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.written)

    @cached_property
    def variables(self) -> dict[str, tuple[int, int]]:
        """The symbolic variables with their bounds, both included, by name."""
        found: dict[str, tuple[int, int]] = {}
        for node in self.nodes:
            for view in getattr(node, "views", ()):
                dims = [*view.shape, *view.strides, view.offset, *(b for pair in view.mask or () for b in pair)]
                for dim in dims:
                    _note_variables(dim, found)
            if isinstance(node, Const) and isinstance(node.value, Size):
                _note_variables(node.value, found)
        return dict(sorted(found.items()))

    def reached(self, slot: int, values: Mapping[str, int]) -> int:
        """How many elements buffer `slot` needs for these values of the variables.

        Raises KernelError if a view reaches an element before the first.
        """
        most = 0
        for number, node in enumerate(self.nodes):
            if isinstance(node, Load | Store) and node.buffer == slot:
                view = node.views[0].bound(values)
                low, end = lowest(view), reach(view)
                assert low is not None and end is not None
                if low < 0:
                    raise KernelError(f"nodes[{number}]: with {dict(values)} views[0] reaches element {low}: {_MEND}")
                most = max(most, end)
        return most

    @cached_property
    def name(self) -> str:
        """`r`, `C` or `E` (reduce, copy, elementwise), the number of outputs if above one, and the axis sizes."""
        if any(isinstance(node, Reduce) for node in self.nodes):
            letter = "r"
        else:
            letter = "C" if all(isinstance(node, Load | Store) for node in self.nodes) else "E"
        count = str(len(self.outputs)) if len(self.outputs) > 1 else ""
        sizes = [str(size) if isinstance(size, int) else str(bounds(size)[1]) for size in self.axis_sizes if size != 1]
        return "_".join([letter + count, *(sizes or ["1"])])


def _note_variables(dim: Dim, found: dict[str, tuple[int, int]]) -> None:
    for one in variables(dim):
        name, own = str(one.args[0]), bounds(one)
        if found.setdefault(name, own) != own:
            raise KernelError(
                f"variable {name} has the bounds {found[name][0]}..{found[name][1]} and {own[0]}..{own[1]}; give it one"
            )


def _broadcast(shapes: Sequence[tuple[Dim, ...]]) -> tuple[Dim, ...]:
    ranks = sorted({len(shape) for shape in shapes})
    if len(ranks) > 1:
        raise KernelError(f"all nodes of a kernel have one rank, got {' and '.join(map(str, ranks))}")
    result: list[Dim] = []
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        others = [size for size in sizes if size != 1]
        if any(size != others[0] for size in others):
            raise KernelError(
                f"axis {axis} has the sizes {', '.join(dict.fromkeys(map(str, others)))}; they must be equal, or 1"
            )
        result.append(others[0] if others else 1)
    return tuple(result)


def _check(node: Node, number: int, types: list[DType], shapes: list[tuple[Dim, ...]]) -> tuple[DType, tuple[Dim, ...]]:
    """Type and shape of a node, given those before it."""
    match node:
        case Load() | Const():
            shape = _check_views(node.views)
            if isinstance(node, Load):
                _check_reach(node)
            return (dtypes.float32 if isinstance(node, Load) and node.image else node.dtype), shape
        case Store():
            _check_source(node.src, number)
            shape = _check_views(node.views)
            if _broadcast([shapes[node.src], shape]) != shape:
                raise KernelError(f"stores shape {_listed(shapes[node.src])} through views of shape {_listed(shape)}")
            held = dtypes.float32 if node.image else node.dtype
            if types[node.src] is not held:
                raise KernelError(f"stores a {types[node.src]} in a buffer of {held}; put a cast before it")
            _check_reach(node)
            return dtypes.void, shape
        case Reduce():
            _check_source(node.src, number)
            if not node.axes or not all(0 <= axis < len(shapes[node.src]) for axis in node.axes):
                raise KernelError(f"axes {list(node.axes)} are not axes of rank {len(shapes[node.src])}")
            if len(set(node.axes)) != len(node.axes):
                raise KernelError(f"axes {list(node.axes)} name an axis twice")
            shape = tuple(1 if axis in node.axes else size for axis, size in enumerate(shapes[node.src]))
            return types[node.src], shape
        case Elementwise():
            for source in node.src:
                _check_source(source, number)
            operands = tuple(types[source] for source in node.src)
            if dtypes.void in operands:
                raise KernelError("uses a store as an operand")
            return node.op.typing(node.dtype, operands, None), _broadcast([shapes[source] for source in node.src])


def _listed(shape: tuple[Dim, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _check_source(source: int, number: int) -> None:
    if not 0 <= source < number:
        raise KernelError(f"src {source} is not an earlier node")


def _check_views(views: Views) -> tuple[Dim, ...]:
    if not views:
        raise KernelError("needs at least one view")
    for view in views:
        if len(view.strides) != len(view.shape) or (view.mask is not None and len(view.mask) != len(view.shape)):
            raise KernelError(f"a view of shape {list(map(str, view.shape))} needs as many strides and mask entries")
        for size in view.shape:
            if bounds(size)[0] < 0:
                raise KernelError(f"the size {size} can be negative")
    return views[-1].shape


def _check_reach(node: Load | Store) -> None:
    """No view leaves what it looks at: the buffer, or the shape of the view before it. Symbolic views are not known."""
    room: Dim | None = None
    if node.image is not None:
        if min(node.image) < 1:
            raise KernelError(f"an image of {node.image[0]} by {node.image[1]} texels has no element")
        room = node.image[0] * node.image[1] * 4
    for number, view in enumerate(node.views):
        low, end = lowest(view), reach(view)
        if low is not None and low < 0:
            raise KernelError(f"views[{number}] reaches element {low}, before the first: {_MEND}")
        if end is not None and isinstance(room, int) and end > room:
            raise KernelError(f"views[{number}] reaches element {end - 1} of {room}: {_MEND}")
        room = product(view.shape)


_MEND = "mend its offset or strides, or mask what lies outside"


def _check_buffers(nodes: tuple[Node, ...]) -> None:
    held: dict[int, DType] = {}
    ranks = {len(node.views[-1].shape) for node in nodes if isinstance(node, Load | Const | Store)}
    if len(ranks) > 1:
        raise KernelError(f"all nodes of a kernel have one rank, got {sorted(ranks)}")
    for number, node in enumerate(nodes):
        if isinstance(node, Load | Store) and held.setdefault(node.buffer, node.dtype) is not node.dtype:
            raise KernelError(f"nodes[{number}]: buffer {node.buffer} holds {held[node.buffer]}, not {node.dtype}")
    missing = set(range(len(held))) - set(held)
    if missing:
        raise KernelError(f"buffers are numbered 0, 1, 2, …; there is none with number {min(missing)}")


def reach(view: View) -> int | None:
    """One more than the highest element that a view touches where it is valid; None where that is symbolic."""
    dims = [*view.shape, *view.strides, view.offset, *(b for pair in view.mask or () for b in pair)]
    if any(isinstance(dim, Size) for dim in dims):
        return None
    top = view.offset
    for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        low, high = view.mask[axis] if view.mask is not None else (0, size)
        if isinstance(low, int) and isinstance(high, int) and high <= low:
            return 0
        first_place, last_place = low * stride, (high - 1) * stride
        assert isinstance(first_place, int) and isinstance(last_place, int)
        top = top + max(first_place, last_place)
    assert isinstance(top, int)
    return top + 1


def lowest(view: View) -> int | None:
    """The lowest element that a view touches where it is valid, 0 if it touches none; None where that is symbolic."""
    backwards = View(view.shape, tuple(-stride for stride in view.strides), -view.offset, view.mask)
    end = reach(backwards)
    return None if end is None else min(1 - end, 0)


def _derive_arguments(nodes: tuple[Node, ...]) -> tuple[Argument, ...]:
    sizes: dict[int, int | None] = {}
    types: dict[int, DType] = {}
    written: set[int] = set()
    for node in nodes:
        if isinstance(node, Load | Store):
            size = node.image[0] * node.image[1] * 4 if node.image else reach(node.views[0])
            before = sizes.get(node.buffer, 0)
            sizes[node.buffer] = None if size is None or before is None else max(size, before)
            types[node.buffer] = node.dtype
            if isinstance(node, Store):
                written.add(node.buffer)
    return tuple(
        Argument(slot, f"data{slot}", types[slot], None if (size := sizes[slot]) is None else (size,), slot in written)
        for slot in sorted(types)
    )


REDUCERS: dict[str, Op] = {"reduce_sum": ops.ADD, "reduce_max": ops.MAX, "reduce_min": ops.MIN, "reduce_prod": ops.MUL}
