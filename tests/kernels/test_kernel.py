"""What a kernel checks and derives: types, shapes, buffers, names; each mistake names its node."""

from __future__ import annotations

import pytest
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import DType
from rulewright.engine.errors import KernelError
from rulewright.kernels.kernel import Const, Elementwise, Kernel, Load, Node, Reduce, Store
from rulewright.kernels.sizes import Dim, var
from rulewright.kernels.view import View, contiguous

F32, I32 = dtypes.float32, dtypes.int32


def load(buffer: int, *shape: Dim, dtype: DType = F32) -> Load:
    return Load(buffer, dtype, (contiguous(shape),))


def store(source: int, *shape: Dim, dtype: DType = F32, buffer: int = 0) -> Store:
    return Store(buffer, dtype, (contiguous(shape),), source)


def const(value: float, *shape: Dim, dtype: DType = F32) -> Const:
    return Const(value, dtype, (View(shape, (0,) * len(shape)),))


SUM = Kernel((load(1, 4, 6), Reduce(ops.ADD, 0, (1,)), store(1, 4, 1)))


def test_types_and_shapes_are_inferred() -> None:
    kernel = Kernel((load(1, 4, 1), load(2, 1, 6), Elementwise(ops.LT, (0, 1)), store(2, 4, 6, dtype=dtypes.bool_)))
    assert kernel.types == (F32, F32, dtypes.bool_, dtypes.void)
    assert kernel.shapes == ((4, 1), (1, 6), (4, 6), (4, 6))
    assert kernel.axis_sizes == (4, 6)


def test_a_reduced_axis_keeps_size_one_and_the_axis_its_full_size() -> None:
    assert SUM.shapes[1] == (4, 1)
    assert SUM.axis_sizes == (4, 6)


def test_an_image_reads_as_float32() -> None:
    views = (contiguous((8,)),)
    kernel = Kernel((Load(1, dtypes.float16, views, (1, 2)), Store(0, dtypes.float16, views, 0, (1, 2))))
    assert kernel.types == (F32, dtypes.void)
    assert [argument.shape for argument in kernel.arguments] == [(8,), (8,)]


def test_arguments_reach_as_far_as_any_view() -> None:
    masked = Load(1, F32, (View((5,), (2,), -2, ((1, 4),)),))
    kernel = Kernel((masked, load(1, 5), Elementwise(ops.ADD, (0, 1)), store(2, 5)))
    assert [(a.slot, a.shape, a.written) for a in kernel.arguments] == [(0, (5,), True), (1, (5,), False)]
    assert [a.slot for a in kernel.inputs] == [1]
    assert [a.slot for a in kernel.outputs] == [0]


def test_a_symbolic_buffer_has_no_declared_shape() -> None:
    n = var("n", 1, 8)
    kernel = Kernel((load(1, n, 2), store(0, n, 2)))
    assert [argument.shape for argument in kernel.arguments] == [None, None]
    assert kernel.variables == {"n": (1, 8)}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (SUM, "r_4_6"),
        (Kernel((load(1, 4), store(0, 4))), "C_4"),
        (Kernel((load(1, 4), Elementwise(ops.NEG, (0,)), store(1, 4))), "E_4"),
        (Kernel((load(2, 3), store(0, 3), store(0, 3, buffer=1))), "C2_3"),
        (Kernel((load(1, 1), store(0, 1))), "C_1"),
        (Kernel((load(1, var("n", 1, 8)), store(0, var("n", 1, 8)))), "C_8"),
    ],
)
def test_names_tell_kind_outputs_and_sizes(kernel: Kernel, name: str) -> None:
    assert kernel.name == name


NEGATIVE = var("n", -1, 3)
BROKEN: dict[str, tuple[tuple[Node, ...], str]] = {
    "no store": ((load(0, 4),), "a kernel needs at least one store"),
    "nothing": ((), "a kernel needs at least one store"),
    "type": (
        (load(1, 4), store(0, 4, dtype=I32)),
        "nodes[1]: stores a float32 in a buffer of int32; put a cast before it",
    ),
    "operand types": (
        (load(1, 4), load(2, 4, dtype=I32), Elementwise(ops.ADD, (0, 1)), store(2, 4)),
        "nodes[2]: operands must have one type, got float32, int32",
    ),
    "kind": (
        (load(1, 4, dtype=I32), Elementwise(ops.EXP2, (0,)), store(1, 4)),
        "nodes[1]: operands must be float, got int32",
    ),
    "sizes": (
        (load(1, 4), load(2, 5), Elementwise(ops.ADD, (0, 1)), store(2, 5)),
        "nodes[2]: axis 0 has the sizes 4, 5; they must be equal, or 1",
    ),
    "store too narrow": ((load(1, 4), store(0, 1)), "nodes[1]: stores shape [4] through views of shape [1]"),
    "store of a store": ((load(1, 4), store(0, 4), store(1, 4)), "nodes[2]: stores a void"),
    "operand store": ((load(1, 4), store(0, 4), Elementwise(ops.NEG, (1,))), "nodes[2]: uses a store as an operand"),
    "later source": ((load(1, 4), Elementwise(ops.NEG, (1,)), store(1, 4)), "nodes[1]: src 1 is not an earlier node"),
    "negative source": ((load(1, 4), store(-1, 4)), "nodes[1]: src -1 is not an earlier node"),
    "no axes": ((load(1, 4), Reduce(ops.ADD, 0, ()), store(1, 4)), "nodes[1]: axes [] are not axes of rank 1"),
    "axis": ((load(1, 4), Reduce(ops.ADD, 0, (1,)), store(1, 4)), "nodes[1]: axes [1] are not axes of rank 1"),
    "axis twice": ((load(1, 4), Reduce(ops.ADD, 0, (0, 0)), store(1, 1)), "nodes[1]: axes [0, 0] name an axis twice"),
    "no views": ((Load(1, F32, ()), store(0, 4)), "nodes[0]: needs at least one view"),
    "strides": (
        (Load(1, F32, (View((4,), ()),)), store(0, 4)),
        "nodes[0]: a view of shape ['4'] needs as many strides",
    ),
    "mask": ((Load(1, F32, (View((4,), (1,), 0, ()),)), store(0, 4)), "nodes[0]: a view of shape ['4'] needs as many"),
    "negative size": ((load(1, -4), store(0, -4)), "nodes[0]: the size -4 can be negative"),
    "size that may be negative": ((load(1, NEGATIVE), store(0, NEGATIVE)), "nodes[0]: the size n can be negative"),
    "buffer numbers": ((load(2, 4), store(0, 4)), "there is none with number 1"),
    "negative buffer": ((load(-1, 4), store(0, 4)), "buffers are numbered 0, 1, 2"),
    "buffer of two types": (
        (load(0, 4, dtype=I32), const(0, 4), store(1, 4)),
        "nodes[2]: buffer 0 holds int32, not float32",
    ),
    "ranks": ((load(1, 4), const(0, 2, 2), store(0, 4)), "all nodes of a kernel have one rank, got [1, 2]"),
    "bitcast": (
        (load(1, 4), Elementwise(ops.BITCAST, (0,), dtypes.int64), store(1, 4, dtype=dtypes.int64)),
        "nodes[1]: a bitcast keeps the width, got float32 to int64",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_kernel_names_the_node(name: str) -> None:
    nodes, message = BROKEN[name]
    with pytest.raises(KernelError) as caught:
        Kernel(nodes)
    assert message in str(caught.value)
