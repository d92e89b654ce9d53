"""Schedules and plans: the text form, what each option makes of an axis, and each refusal with its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import rulewright as rw
from rulewright.engine.errors import KernelError
from rulewright.engine.target import Target
from rulewright.kernels.kernel import Kernel
from rulewright.kernels.plan import Plan, plan
from rulewright.kernels.schedule import Option, OptionKind, parse_schedule, schedule_text

GPU = Target("gpu", frozenset({"threads", "local-memory"}), (4, 2), group_threads=64, local_memory=1024)
BARE_GPU = Target("bare", frozenset({"threads"}), (4, 2))
CPU = Target("cpu", frozenset(), (8, 4, 2))


def sums() -> Kernel:
    """Axes 0 and 1 are stored, 2 is reduced."""
    return rw.kernel(rw.tensor("x", (12, 16, 60)).sum(2))


def softmax() -> Kernel:
    """Axis 0 is stored, 1 is reduced and stored."""
    x = rw.exp(rw.tensor("x", (6, 32)))
    return rw.kernel(x / x.sum(1, keepdims=True))


def symbolic() -> Kernel:
    return rw.kernel(rw.tensor("x", (rw.var("n", 1, 9), rw.var("m", 1, 9), 8)).sum(1))


def planned(kernel: Kernel, text: str, target: Target = GPU) -> Plan:
    return plan(kernel, parse_schedule(text), target)


@pytest.mark.parametrize(
    "text", ["", "UPCAST(0, 4)", "NOLOCALS", "PADTO(2, 7) GROUPTOP(2, 0) SWAP(0, 1) NOLOCALS UNROLL(1, 2)"]
)
def test_text_and_back(text: str) -> None:
    assert schedule_text(parse_schedule(text)) == text


def test_text_in_other_shapes() -> None:
    options = (Option(OptionKind.UPCAST, 1, 4), Option(OptionKind.NOLOCALS), Option(OptionKind.SWAP, 0, 1))
    assert parse_schedule(" upcast( 1 ,4 ),NoLocals;  SWAP (0,1)") == options


@pytest.mark.parametrize("text", ["SIDEWAYS(1, 2)", "UPCAST", "UPCAST(1)", "UPCAST(1, -2)", "NOLOCALS(1, 2)", "UPCAST(1, 2",
                                  "4", "UPCAST(1, 2)LOCAL(0, 1)"])  # fmt: skip
def test_no_option(text: str) -> None:
    with pytest.raises(KernelError, match="not a schedule option"):
        parse_schedule(text)


def test_parts_of_a_stored_axis() -> None:
    axis = planned(sums(), "UPCAST(1, 2) LOCAL(1, 4) UPCAST(1, 2)").axes[1]
    assert (axis.stored, axis.local, axis.upcast) == (1, 4, 4)
    axis = planned(sums(), "THREAD(0, 3) UPCAST(0, 0)", CPU).axes[0]
    assert (axis.thread, axis.stored, axis.upcast) == (3, 1, 4)


def test_parts_of_a_reduced_axis() -> None:
    axis = planned(sums(), "GROUP(2, 5) UNROLL(2, 4)").axes[2]
    assert (axis.reduced, axis.group, axis.group_outer, axis.unroll) == (3, 5, False, 4)
    assert planned(sums(), "GROUPTOP(2, 0)").axes[2].group == 60
    assert planned(sums(), "GROUPTOP(2, 5)").axes[2].group_outer


def test_a_share_is_part_of_both_roles() -> None:
    axis = planned(softmax(), "SHARE(1, 4) UPCAST(1, 2)", CPU).axes[1]
    assert (axis.share, axis.stored, axis.reduced, axis.places) == (4, 4, 8, 32)
    assert planned(sums(), "SHARE(2, 0)").axes[2].reduced == 1


def test_each_role_of_a_mixed_axis_has_its_own_parts() -> None:
    axis = planned(softmax(), "UPCAST(1, 8) UNROLL(1, 2)").axes[1]
    assert (axis.stored, axis.upcast, axis.reduced, axis.unroll) == (4, 8, 16, 2)


def test_stores_share_the_threads_of_a_grouped_axis_where_they_divide_it() -> None:
    shared, alone = planned(softmax(), "GROUP(1, 8)").axes[1], planned(softmax(), "UPCAST(1, 8) GROUP(1, 8)").axes[1]
    assert (shared.shared, shared.stored_loop) == (True, 4)
    assert (alone.shared, alone.stored_loop) == (False, 4)


def test_padding_grows_what_is_left() -> None:
    axis = planned(sums(), "UPCAST(0, 4) PADTO(0, 2)").axes[0]
    assert (axis.size, axis.stored, axis.upcast, axis.padded) == (12, 4, 4, True)
    axis = planned(softmax(), "UNROLL(1, 2) PADTO(1, 5)").axes[1]
    assert (axis.stored, axis.reduced, axis.padded) == (35, 20, True)


def test_order_of_loops() -> None:
    assert planned(sums(), "SWAP(0, 1)").order == (1, 0)
    assert planned(sums(), "SWAP(0, 1) SWAP(1, 0)").order == (0, 1)
    columns = rw.tensor("x", (6, 32))
    assert planned(rw.kernel(columns / columns.sum(0, keepdims=True)), "").order == (
        1,
        0,
    )  # else each sum is made 6 times


def rows_of_n() -> Kernel:
    return rw.kernel(rw.tensor("x", (rw.var("n", 1, 9), 8)).sum(1))


def centred() -> Kernel:
    x = rw.tensor("x", (6, 8))
    return rw.kernel((x - x.sum(1, keepdims=True)).max(0))


REFUSED = [
    (sums, "UPCAST(0, 5)", GPU, "5 does not divide the 12 steps of axis 0"),
    (sums, "UPCAST(7, 2)", GPU, "there is no axis 7; the kernel has 3"),
    (sums, "UPCAST(2, 2)", GPU, "axis 2 is reduced; UNROLL it"),
    (sums, "PADTO(1, 17) UPCAST(1, 17)", GPU, "axis 1 would get 17 lanes at once; the most is 16"),
    (symbolic, "UPCAST(0, 2)", GPU, "axis 0 has the symbolic size n; it can only be a loop"),
    (sums, "UPCAST(0, 12) UPCAST(1, 16) UNROLL(2, 30)", GPU, "axis 2 would make more than 1024 lanes"),
    (sums, "UNROLL(0, 2)", GPU, "axis 0 is not reduced; UPCAST it"),
    (sums, "UNROLL(2, 0)", GPU, "axis 2 would have more than 32 steps unrolled"),
    (sums, "UNROLL(2, 7)", GPU, "7 does not divide the 60 steps of axis 2"),
    (symbolic, "UNROLL(2, 2)", GPU, "axis 2 has the symbolic size m"),
    (sums, "LOCAL(0, 2)", CPU, "axis 0 cannot have group threads on cpu"),
    (sums, "LOCAL(2, 2)", GPU, "axis 2 is reduced; GROUP it"),
    (softmax, "LOCAL(1, 2)", GPU, "axis 1 is reduced; GROUP it"),
    (sums, "LOCAL(0, 12) LOCAL(1, 8)", GPU, "axis 1 would make a group of 96 threads; the most on gpu is 64"),
    (symbolic, "LOCAL(0, 2)", GPU, "axis 0 has the symbolic size n"),
    (sums, "GROUP(0, 2)", GPU, "axis 0 is not reduced"),
    (sums, "GROUP(2, 2)", CPU, "on cpu, which has no local memory"),
    (sums, "GROUPTOP(2, 2)", BARE_GPU, "on bare, which has no local memory"),
    (sums, "GROUP(2, 2) GROUPTOP(2, 2)", GPU, "axis 2 is shared out over group threads already"),
    (sums, "LOCAL(1, 16) GROUP(2, 5)", GPU, "axis 2 would make a group of 80 threads"),
    (sums, "GROUP(2, 7)", GPU, "7 does not divide"),
    (sums, "GROUP(2, 60) UPCAST(1, 8)", GPU, "the reductions would need 1920 bytes of local memory; gpu has 1024"),
    (symbolic, "GROUP(2, 2)", GPU, "axis 2 has the symbolic size m"),
    (sums, "PADTO(0, 4)", GPU, "axis 0 has a multiple of 4 steps already: there is nothing to pad"),
    (sums, "PADTO(0, 0)", GPU, "nothing to pad"),
    (symbolic, "PADTO(0, 4)", GPU, "axis 0 has the symbolic size n"),
    (sums, "SWAP(0, 2)", GPU, "axis 2 is reduced; only the axes of groups can be exchanged"),
    (softmax, "SWAP(1, 0)", GPU, "axis 1 is reduced"),
    (sums, "SWAP(0, 0)", GPU, "name two different axes"),
    (sums, "SWAP(0, 3)", GPU, "there is no axis 3"),
    (sums, "LOCAL(0, 2) NOLOCALS", GPU, "the group has 2 threads already"),
    (sums, "GROUP(2, 2) NOLOCALS", GPU, "the group has 2 threads already"),
    (sums, "NOLOCALS LOCAL(0, 2)", GPU, "axis 0 cannot have group threads after NOLOCALS"),
    (sums, "NOLOCALS GROUP(2, 2)", GPU, "axis 2 cannot have group threads after NOLOCALS"),
    (sums, "THREAD(0, 2)", GPU, "axis 0 cannot be shared out over CPU threads on gpu"),
    (sums, "THREAD(2, 2)", CPU, "axis 2 is reduced"),
    (sums, "THREAD(0, 2) THREAD(1, 2)", CPU, "axis 1 is not the first"),
    (sums, "THREAD(0, 2) SHARE(2, 2)", CPU, "axis 2 is not the first; one axis is shared out already"),
    (sums, "SHARE(2, 2) THREAD(0, 2)", CPU, "axis 0 is not the first"),
    (sums, "SHARE(0, 2)", CPU, "axis 0 is not reduced; THREAD or LOCAL shares out its stores"),
    (sums, "SHARE(2, 7)", CPU, "7 does not divide the 60 steps of axis 2"),
    (sums, "GROUP(2, 2) SHARE(2, 2)", GPU, "axis 2 cannot be shared out beside a reduction"),
    (sums, "SHARE(2, 2) GROUP(2, 2)", GPU, "axis 2 cannot be shared out over group threads after SHARE"),
    (symbolic, "SHARE(2, 2)", CPU, "axis 2 has the symbolic size m"),
    (rows_of_n, "SHARE(1, 2)", CPU, "a result for each step of axis 0, whose size is symbolic"),
    (centred, "SHARE(1, 2)", CPU, "a result for each step of axis 0, which is reduced too"),
]


@pytest.mark.parametrize(("kernel", "text", "target", "reason"), REFUSED)
def test_refusals(kernel: object, text: str, target: Target, reason: str) -> None:
    assert callable(kernel)
    with pytest.raises(KernelError) as refused:
        planned(kernel(), text, target)
    last = str(parse_schedule(text)[-1])
    assert reason in str(refused.value) and str(refused.value).startswith(last)


PAGE = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", OptionKind, ids=str)
def test_each_option_is_described(kind: OptionKind) -> None:
    assert f"| `{kind.value}" in PAGE


def test_the_examples_of_the_page_run() -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)  # noqa: S102 # our own page


def test_a_symbolic_axis_can_be_swapped() -> None:
    assert planned(symbolic(), "SWAP(0, 1)").order == (1, 0)
