"""Any valid order of one linear form gives the same bits: nothing that the validator lets pass decides a result."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import rulewright as rw
from rulewright.engine import ops
from rulewright.engine.linear import LinearKernel
from rulewright.engine.uop import UOp
from rulewright.engine.validate import validate
from rulewright.kernels.kernel import Kernel
from rulewright.kernels.reference import make_buffers
from rulewright.runtimes import devices


def softmax() -> Kernel:
    x = rw.tensor("x", (4, 8))
    powers = rw.exp(x - x.max(1, keepdims=True))
    return rw.kernel(powers / powers.sum(1, keepdims=True))


def product() -> Kernel:
    return rw.kernel(rw.tensor("a", (4, 6)) @ rw.tensor("b", (6, 4)))


def several() -> Kernel:
    x = rw.tensor("x", (4, 8))
    return rw.kernel([x.sum(1), x.max(1), (x * x).sum(1)])


CASES = {
    "softmax": (softmax, ""), "softmax-group": (softmax, "GROUP(1, 4)"), "product": (product, "UPCAST(1, 2)"),
    "several": (several, ""), "padded": (product, "PADTO(0, 3) UPCAST(0, 3) PADTO(2, 4) UNROLL(2, 2)"),
}  # fmt: skip


def shuffled(kernel: LinearKernel, tries: int, chance: random.Random) -> tuple[LinearKernel, int]:
    """The kernel after exchanges of neighbours that the validator lets pass, and how many there were.

    A store stays inside or outside of its `if`, which the validator cannot know.
    """
    nodes = list(kernel.uops)
    done = 0
    for _ in range(tries):
        at = chance.randrange(len(nodes) - 1)
        if {nodes[at].op, nodes[at + 1].op} & {ops.IF, ops.ENDIF}:
            continue
        nodes[at], nodes[at + 1] = nodes[at + 1], nodes[at]
        if validate(replace(kernel, uops=tuple(nodes))):
            nodes[at], nodes[at + 1] = nodes[at + 1], nodes[at]
        else:
            done += 1
    return replace(kernel, uops=tuple(nodes)), done


@pytest.mark.parametrize("name", CASES)
def test_every_valid_order_gives_the_same_bits(name: str) -> None:
    build, schedule = CASES[name]
    made = build()
    program = rw.compile(made, "interpreter", schedule)
    before = make_buffers(made, {})
    expected = [buffer.copy() for buffer in before]
    program.run_in_place(expected)
    device = devices.get("interpreter")
    orders: set[tuple[UOp, ...]] = set()
    for seed in range(4):
        kernel, done = shuffled(program.linear, 150, random.Random(seed))
        assert done > 10
        orders.add(kernel.uops)
        got = [buffer.copy() for buffer in before]
        device.build(kernel, "")(got, {})
        assert all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in zip(got, expected, strict=True))
    assert len(orders) == 4


def test_orders_that_are_not_valid_are_seen() -> None:
    """An exchange that the validator refuses would have mattered: a use before what it uses."""
    program = rw.compile(softmax(), "interpreter", "")
    nodes = list(program.linear.uops)
    at = next(n for n, node in enumerate(nodes) if node.op is ops.PHI)
    moved = [*nodes[:at], *nodes[at + 1 :], nodes[at]]
    assert validate(replace(program.linear, uops=tuple(moved)))
