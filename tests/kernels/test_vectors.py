"""Vector loads and stores: how many of each small kernel has, as the alignment and the target allow."""

from __future__ import annotations

import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.linearize import linearize
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.target import Context, Target
from rulewright.engine.uop import UOp
from rulewright.kernels.kernel import Elementwise, Kernel, Load, Reduce, Store
from rulewright.kernels.lower import lower
from rulewright.kernels.schedule import parse_schedule
from rulewright.kernels.view import View

FLOAT4 = (4, 2)


def added(shape: tuple[int, ...], a: View, b: View, out: View) -> Kernel:
    """out = a + b."""
    loads = (Load(1, d.float32, (a,)), Load(2, d.float32, (b,)))
    return Kernel((*loads, Elementwise(ops.ADD, (0, 1)), Store(0, d.float32, (out,), 2)))


def accesses(kernel: Kernel, schedule: str, widths: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The lanes of every load and of every store."""
    target = Target("vectors", frozenset(), widths)
    graph = lower(kernel, parse_schedule(schedule), target)
    rewritten, _ = RuleSet.builtin().rewrite(graph, "kernel", Context(target))
    uops: tuple[UOp, ...] = linearize(rewritten, "vectors").uops
    loads = [node.dtype.lanes for node in uops if node.op is ops.LOAD]
    return loads, [node.src[2].dtype.lanes for node in uops if node.op is ops.STORE]


LINE, MATRIX = View((16,), (1,)), View((4, 8), (8, 1))
ROW = View((4, 8), (1, 0))

CASES: dict[str, tuple[Kernel, str, tuple[int, int]]] = {
    "elementwise": (added((16,), LINE, LINE, LINE), "UPCAST(0, 4)", (2, 1)),
    "two upcast axes": (added((4, 8), MATRIX, MATRIX, MATRIX), "UPCAST(1, 4) UPCAST(0, 2)", (4, 2)),
    "two upcast axes, the other first": (added((4, 8), MATRIX, MATRIX, MATRIX), "UPCAST(0, 2) UPCAST(1, 4)", (4, 2)),
    "unaligned loads": (added((16,), View((16,), (1,), 1), View((16,), (1,), 1), LINE), "UPCAST(0, 4)", (0, 1)),
    "alignment differs by row": (
        added((3, 5), View((3, 5), (5, 1)), View((3, 5), (5, 1)), View((3, 5), (5, 1))), "UPCAST(1, 0)", (0, 0),
    ),
    "stride 2": (added((16,), View((16,), (2,)), View((16,), (2,)), View((16,), (2,))), "UPCAST(0, 4)", (0, 0)),
    "broadcast operands": (added((4, 8), ROW, ROW, MATRIX), "UPCAST(1, 4)", (0, 1)),
    "one vector operand of two": (added((4, 8), MATRIX, ROW, MATRIX), "UPCAST(1, 4)", (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_vector_loads_and_stores(name: str) -> None:
    kernel, schedule, expected = CASES[name]
    loads, stores = accesses(kernel, schedule, FLOAT4)
    assert (sum(lanes > 1 for lanes in loads), sum(lanes > 1 for lanes in stores)) == expected


@pytest.mark.parametrize(
    ("widths", "each"), [((16, 8, 4, 2), [16]), ((8, 4, 2), [8, 8]), ((4, 2), [4] * 4), ((2,), [2] * 8), ((), [1] * 16)]
)
def test_each_target_has_its_own_widths(widths: tuple[int, ...], each: list[int]) -> None:
    assert accesses(CASES["elementwise"][0], "UPCAST(0, 16)", widths) == (2 * each, each)


@pytest.mark.parametrize(("offset", "lanes"), [(0, [4]), (2, [2, 2]), (4, [4]), (1, [1] * 4)])
def test_the_widest_that_is_aligned(offset: int, lanes: list[int]) -> None:
    shifted = View((16,), (1,), offset)
    assert accesses(added((16,), shifted, shifted, LINE), "UPCAST(0, 4)", FLOAT4) == (2 * lanes, [4])


def test_a_gate_that_all_lanes_share_keeps_the_vector() -> None:
    """Rows 1 to 3 are valid, each whole; columns 2 to 8, so that a vector of four is cut."""
    rows = View((4, 8), (8, 1), -8, ((1, 4), (0, 8)))
    columns = View((4, 8), (8, 1), -2, ((0, 4), (2, 8)))
    assert accesses(added((4, 8), rows, rows, MATRIX), "UPCAST(1, 4)", FLOAT4) == ([4, 4], [4])
    assert max(accesses(added((4, 8), columns, columns, MATRIX), "UPCAST(1, 4)", FLOAT4)[0]) == 1


def test_lanes_have_one_order_in_loads_accumulators_and_stores() -> None:
    """A product with lanes on both stored axes: the first option varies fastest."""
    a, b = View((4, 4, 8), (8, 0, 1)), View((4, 4, 8), (0, 1, 4))
    loads = (Load(1, d.float32, (a,)), Load(2, d.float32, (b,)))
    nodes = (
        *loads,
        Elementwise(ops.MUL, (0, 1)),
        Reduce(ops.ADD, 2, (2,)),
        Store(0, d.float32, (View((4, 4, 1), (4, 1, 0)),), 3),
    )
    loaded, stored = accesses(Kernel(nodes), "UPCAST(1, 4) UPCAST(0, 2)", FLOAT4)
    assert sorted(loaded) == [1, 1, 4] and stored == [4, 4]


def test_a_store_that_is_never_valid_has_no_lanes() -> None:
    """Its mask begins behind the axis: the rules find that before there are lanes."""
    never = View((10,), (1,), 0, ((6, 8),))
    kernel = added((4,), View((4,), (1,)), View((4,), (1,)), View((4,), (1,)))
    store = Store(3, d.float32, (never, View((4,), (1,))), 2)
    assert accesses(Kernel((*kernel.nodes, store)), "UPCAST(0, 2)", FLOAT4) == ([2, 2], [2])
