"""Lowering: ranges, gates and group reductions as they stand before the rules run."""

from __future__ import annotations

import pytest
import rulewright as rw
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.ops import AxisKind, RangeArg, SpecialArg, ThreadKind
from rulewright.engine.target import Target
from rulewright.engine.uop import UOp, walk
from rulewright.engine.verifier import verify
from rulewright.kernels.kernel import Kernel
from rulewright.kernels.lower import lower
from rulewright.kernels.schedule import parse_schedule

GPU = Target("gpu", frozenset({"threads", "local-memory"}), (4, 2))
CPU = Target("cpu", frozenset(), (4, 2))


def sums() -> Kernel:
    return rw.kernel(rw.tensor("x", (6, 10)).sum(1))


def softmax(axis: int = 1) -> Kernel:
    x = rw.exp(rw.tensor("x", (6, 10)))
    return rw.kernel(x / x.sum(axis, keepdims=True))


def lowered(kernel: Kernel, schedule: str = "", target: Target = GPU) -> list[UOp]:
    """The nodes of the graph, which is well formed."""
    graph = lower(kernel, parse_schedule(schedule), target)
    assert verify(graph) == []
    return list(walk(graph))


def of(nodes: list[UOp], *wanted: ops.Op) -> list[UOp]:
    return [node for node in nodes if node.op in wanted]


def extents(nodes: list[UOp], kind: AxisKind) -> list[object]:
    return [n.src[0].arg for n in of(nodes, ops.RANGE) if isinstance(n.arg, RangeArg) and n.arg.kind is kind]


def threads(nodes: list[UOp], kind: ThreadKind) -> list[object]:
    return [n.src[0].arg for n in of(nodes, ops.SPECIAL) if isinstance(n.arg, SpecialArg) and n.arg.kind is kind]


def test_groups_where_there_are_threads_and_loops_elsewhere() -> None:
    assert threads(lowered(sums()), ThreadKind.GROUP) == [6]
    assert extents(lowered(sums(), target=CPU), AxisKind.LOOP) == [6]
    assert extents(lowered(sums(), target=CPU), AxisKind.REDUCE) == [10]


def test_an_axis_that_is_reduced_and_stored_is_a_loop_inside_the_others() -> None:
    nodes = lowered(softmax(0), target=CPU)
    loops = {
        n.src[0].arg: n.arg.axis
        for n in of(nodes, ops.RANGE)
        if isinstance(n.arg, RangeArg) and n.arg.kind is AxisKind.LOOP
    }
    assert loops[10] < loops[6]  # the lowest number is outermost
    assert threads(lowered(softmax(0)), ThreadKind.GROUP) == [10]


def test_lanes_and_unrolled_steps_are_ranges() -> None:
    nodes = lowered(sums(), "UPCAST(0, 2) UNROLL(1, 5)")
    assert extents(nodes, AxisKind.UPCAST) == [2] and extents(nodes, AxisKind.UNROLL) == [5]
    assert extents(nodes, AxisKind.REDUCE) == [2] and threads(nodes, ThreadKind.GROUP) == [3]


@pytest.mark.parametrize("option", ["GROUP(1, 5)", "GROUPTOP(1, 5)"])
def test_a_grouped_reduction_has_memory_for_each_thread_and_lane(option: str) -> None:
    nodes = lowered(sums(), f"{option} UPCAST(0, 2) LOCAL(0, 3)")
    (reduction,) = of(nodes, ops.GROUP_REDUCE)
    (memory,) = of(nodes, ops.LOCAL)
    assert reduction.src[1] is memory and isinstance(memory.arg, ops.BufferArg) and memory.arg.size == 5 * 3 * 2
    assert sorted(map(str, threads(nodes, ThreadKind.LOCAL))) == ["3", "5"]
    assert reduction.src[4].src[0].arg == 5  # the range of the shares


def test_inner_and_outer_part_of_a_grouped_axis() -> None:
    """Threads of GROUP read neighbours, those of GROUPTOP ranges of their own."""
    inner, outer = (of(lowered(sums(), f"{name}(1, 5)"), ops.LOAD)[0].src[1] for name in ("GROUP", "GROUPTOP"))
    assert inner is not outer


def test_only_the_first_thread_stores_what_all_threads_have() -> None:
    assert len(of(lowered(sums(), "GROUP(1, 5)"), ops.STORE)[0].src) == 4
    assert len(of(lowered(softmax(), "GROUP(1, 5)"), ops.STORE)[0].src) == 3


def test_padding_gates_what_is_read_and_stored_and_reduces_the_identity() -> None:
    nodes = lowered(rw.kernel(rw.tensor("x", (6, 10)).max(1)), "PADTO(0, 4) PADTO(1, 4)")
    (load,), (store,) = of(nodes, ops.LOAD), of(nodes, ops.STORE)
    assert len(load.src) == 4 and len(store.src) == 4
    (choice,) = of(nodes, ops.WHERE)
    assert choice.src[1] is load and choice.src[2].arg == float("-inf")
    assert len(of(lowered(sums()), ops.LOAD)[0].src) == 2


@pytest.mark.parametrize(("dtype", "held"), [("float16", d.float32), ("float32", d.float32), ("int8", d.int32)])
def test_sums_accumulate_in_a_wider_type(dtype: str, held: d.DType) -> None:
    nodes = lowered(rw.kernel(rw.tensor("x", (6, 10), dtype).sum(1)), "GROUP(1, 5)")
    assert of(nodes, ops.GROUP_REDUCE)[0].dtype is held


def test_two_grouped_reductions_have_memory_of_their_own() -> None:
    x = rw.tensor("x", (6, 10))
    nodes = lowered(rw.kernel([x.sum(1), x.max(1)]), "GROUP(1, 5)")
    assert len({node.arg for node in of(nodes, ops.LOCAL)}) == 2
