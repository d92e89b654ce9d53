"""The validator of linear kernels: each way to break the order is found and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.dtypes import void
from rulewright.engine.errors import GraphError
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.linearize import linearize
from rulewright.engine.ops import AxisKind, BufferArg, RangeArg, SpecialArg, ThreadKind, VarArg
from rulewright.engine.uop import UOp, buffer, const, intern, make
from rulewright.engine.validate import check_linear, validate

OUT, DATA = buffer(0, d.int32, 8), buffer(1, d.int32, 8)
EIGHT = const(d.int32, 8)
R = make(ops.RANGE, EIGHT, arg=RangeArg(0, AxisKind.LOOP))
K = make(ops.RANGE, EIGHT, arg=RangeArg(1, AxisKind.REDUCE))
X = make(ops.LOAD, DATA, make(ops.XOR, R, K))
ACC = make(ops.DEFINE_ACC, const(d.int32, 0), K, arg=make(ops.REDUCE, X, K, arg=ops.ADD))
NEW = make(ops.ADD, ACC, X)
PHI = make(ops.PHI, ACC, NEW)
GATE = make(ops.LT, R, const(d.int32, 4))
T = make(ops.SPECIAL, EIGHT, arg=SpecialArg(ThreadKind.LOCAL, 0))
SHARED = make(ops.LOCAL, dtype=d.int32.ptr("local"), arg=BufferArg(0, 8))
WRITTEN = make(ops.STORE, SHARED, T, T)
BARRIER = make(ops.BARRIER, WRITTEN)


def total() -> LinearKernel:
    """for i: acc; for k: acc += data[i ^ k]; out[i] = acc * i, if i < 4."""
    return linearize(make(ops.SINK, make(ops.STORE, OUT, R, make(ops.MUL, PHI, R), GATE)), "total")


def shared() -> LinearKernel:
    """Every thread stores, waits and reads."""
    return linearize(
        make(ops.SINK, make(ops.STORE, OUT, T, make(ops.LOAD, make(ops.AFTER, SHARED, BARRIER), T))), "shared"
    )


def end(loop: UOp) -> UOp:
    return intern(ops.ENDRANGE, void, (loop,))


def without(*gone: UOp) -> Callable[[list[UOp]], list[UOp]]:
    return lambda nodes: [node for node in nodes if node not in gone]


def moved(node: UOp, before: UOp) -> Callable[[list[UOp]], list[UOp]]:
    def change(nodes: list[UOp]) -> list[UOp]:
        rest = [other for other in nodes if other is not node]
        at = rest.index(before)
        return [*rest[:at], node, *rest[at:]]

    return change


def inserted(*new: UOp, before: UOp) -> Callable[[list[UOp]], list[UOp]]:
    def change(nodes: list[UOp]) -> list[UOp]:
        at = nodes.index(before)
        return [*nodes[:at], *new, *nodes[at:]]

    return change


def around(node: UOp, before: list[UOp], after: UOp) -> Callable[[list[UOp]], list[UOp]]:
    def change(nodes: list[UOp]) -> list[UOp]:
        at = nodes.index(node)
        return [*nodes[:at], *before, node, after, *nodes[at + 1 :]]

    return change


def messages(kernel: LinearKernel, change: Callable[[list[UOp]], list[UOp]] = list) -> list[str]:
    return [problem.message for problem in validate(replace(kernel, uops=tuple(change(list(kernel.uops)))))]


def test_good_kernels() -> None:
    assert messages(total()) == []
    assert messages(shared()) == []
    check_linear(total())


IF = intern(ops.IF, void, (GATE,))
TWICE = make(ops.MUL, PHI, R)

WRONG_ORDER = {
    "twice": (inserted(EIGHT, before=IF), "stands twice"),
    "missing": (without(X), f"uses load {X!r} before it stands"),
    "too late": (moved(X, PHI), f"uses load {X!r} before it stands"),
    "opened twice": (inserted(R, before=ACC), "is opened twice"),
    "never closed": (without(end(R)), "is never closed"),
    "closed early": (moved(end(R), end(K)), f"closes {R!r} while {K!r} inside of it is open"),
    "closed twice": (inserted(end(K), before=IF), f"closes {K!r}, which is not open"),
    "accumulator too late": (moved(ACC, X), f"stands after its loop {K!r} has begun"),
    "never assigned": (without(PHI, TWICE), "no phi assigns it"),
    "assigned outside": (moved(end(K), PHI), f"is assigned outside of its loop {K!r}"),
    "final value used inside": (moved(TWICE, end(K)), f"uses the final value {PHI!r} inside of its loops"),
    "accumulator read outside": (
        inserted(make(ops.NEG, ACC), before=IF),
        f"reads the accumulator {ACC!r} outside of its loops",
    ),
    "value leaves its loop": (inserted(make(ops.NEG, X), before=IF), f"uses load {X!r} outside of its loop or if"),
    "if never closed": (without(intern(ops.ENDIF, void, (IF,))), f"closes {R!r} while {IF!r} inside of it is open"),
    "index type": (inserted(const(d.index, 3), before=IF), "has type index; the rules should have chosen an integer type"),
    "reduce": (
        inserted(make(ops.REDUCE, X, K, arg=ops.ADD), before=end(K)),
        "does not exist in the linear form; the rules should have replaced it",
    ),
    "gated store": (
        inserted(make(ops.STORE, OUT, R, R, GATE), before=IF),
        "has a gate; in the linear form a gated store stands in an if",
    ),
    "wrong type": (
        inserted(intern(ops.NEG, d.int8, (R,)), before=IF),
        "has type int8, but its operands make it int32",
    ),
    "vector of indices": (
        inserted(
            pair := make(ops.VECTORIZE, R, R), make(ops.LOAD, DATA, pair), before=IF
        ),
        "has a vector of indices; the rules should have split it",
    ),
    "lanes as a loop": (
        inserted(
            lanes := make(ops.RANGE, EIGHT, arg=RangeArg(7, AxisKind.UPCAST)), end(lanes), before=IF
        ),
        "a range of kind upcast is no loop; the rules should have made lanes of it",
    ),
    "foreign loop around the assignment": (
        lambda nodes: inserted(
            inner := make(ops.RANGE, EIGHT, arg=RangeArg(7, AxisKind.LOOP)), before=PHI
        )(inserted(end(inner), before=end(K))(nodes)),
        f"is assigned inside of {make(ops.RANGE, EIGHT, arg=RangeArg(7, AxisKind.LOOP))!r}, which is none of its loops",
    ),
    "second assignment": (
        inserted(make(ops.PHI, ACC, X), before=end(K)),
        "assigns an accumulator that another phi assigns",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_ORDER)
def test_wrong_order(name: str) -> None:
    change, expected = WRONG_ORDER[name]
    assert expected in messages(total(), change)


def test_barriers() -> None:
    choice = make(ops.LT, T, const(d.int32, 4))
    opened = intern(ops.IF, void, (choice,))
    closed = intern(ops.ENDIF, void, (opened,))
    four = const(d.int32, 4)
    assert "a store that it waits for has not happened" in messages(shared(), moved(BARRIER, WRITTEN))
    in_if = around(BARRIER, [four, choice, opened], closed)
    assert messages(shared(), in_if)[0] == "stands in an if; every thread of the group must reach it"
    loop = make(ops.RANGE, T, arg=RangeArg(5, AxisKind.LOOP))
    assert messages(shared(), around(BARRIER, [loop], end(loop)))[0] == (
        f"stands in the loop {loop!r}, whose end may differ between the threads of a group"
    )


def test_signature() -> None:
    kernel = total()

    def problems(buffers: tuple[BufferParam, ...]) -> list[str]:
        return [problem.message for problem in validate(replace(kernel, buffers=buffers))]

    read_only = tuple(replace(param, written=False) for param in kernel.buffers)
    assert problems(read_only) == ["stores into buffer 0, which the kernel does not declare as written"]
    assert problems(kernel.buffers[:1]) == ["is not among the kernel's buffers"]
    wrong = (kernel.buffers[0], replace(kernel.buffers[1], dtype=d.int8))
    assert problems(wrong) == ["the kernel declares elements of type int8"]
    assert [p.message for p in validate(replace(shared(), locals=(4,)))] == [
        "the kernel declares another size for this hardware index, or none"
    ]
    n = make(ops.VAR, dtype=d.int32, arg=VarArg("n", 1, 4))
    sized = linearize(make(ops.SINK, make(ops.STORE, OUT, n, n)), "sized")
    assert validate(sized) == []
    assert [p.message for p in validate(replace(sized, variables=()))] == ["is not among the kernel's variables"]


def test_all_problems_at_once() -> None:
    kernel = total()
    broken = replace(kernel, uops=tuple(node for node in kernel.uops if node not in (X, end(R))))
    with pytest.raises(GraphError) as error:
        check_linear(broken)
    lines = str(error.value).splitlines()
    assert lines[0].startswith("the linear form of total is not well formed")
    assert len(lines) == 3
