"""The linear form: loops nest, close early, are shared, and what does not vary stands outside."""

from __future__ import annotations

import pytest
import rulewright as rw
from rulewright.engine import ops
from rulewright.engine.dtypes import float32, index
from rulewright.engine.errors import GraphError
from rulewright.engine.linearize import linearize
from rulewright.engine.ops import AxisKind
from rulewright.engine.uop import UOp, buffer, const, make, range_
from rulewright.engine.validate import validate


def shape_of(program: rw.Program) -> str:
    """Loops as brackets, stores and accumulators as letters."""
    letters = {
        ops.RANGE: "(",
        ops.ENDRANGE: ")",
        ops.STORE: "s",
        ops.DEFINE_ACC: "a",
        ops.PHI: "p",
        ops.IF: "[",
        ops.ENDIF: "]",
    }
    return "".join(letters.get(node.op, "") for node in program.uops)


def compiled(*outputs: rw.Tensor) -> rw.Program:
    program = rw.compile(rw.kernel(outputs), "llvm", "none")
    problems = validate(program.linear)
    assert not problems, problems
    return program


X = rw.tensor("x", (6, 8))


@pytest.mark.parametrize(("outputs", "shape"), [
    ((X + 1,), "((s))"),
    ((X.sum(),), "a((p))s"),
    ((X.sum(1),), "(a(p)s)"),
    ((X.sum(1), (X * X).sum(1)), "(aa(pp)ss)"),
    ((rw.exp(X - X.max(1, keepdims=True)).sum(1),), "(aa(p)(p)s)"),
    ((X / X.sum(1, keepdims=True),), "(a(p)(s))"),
    ((rw.where(X > 0, X, 0.0).pad([(1, 0), (0, 0)]),), "((s))"),
])  # fmt: skip
def test_loops(outputs: tuple[rw.Tensor, ...], shape: str) -> None:
    program = compiled(*outputs)
    found = shape_of(program)
    assert found == shape, program.source


def test_what_does_not_vary_stands_outside_of_the_loop() -> None:
    program = compiled(rw.sqrt(rw.tensor("scale", (1, 1))) * X)
    order = [node.op for node in program.uops]
    assert order.index(ops.SQRT) < order.index(ops.RANGE)


def test_a_gated_store_stands_in_an_if() -> None:
    i = range_(0, 8)
    out = buffer(0, float32, 4)
    gate = make(ops.LT, i, const(index, 4))
    store = make(ops.STORE, out, i, const(float32, 1.0), gate)
    names = [node.op.name for node in linearize(make(ops.SINK, store), "gated").uops]
    assert names[-4:] == ["if", "store", "endif", "endrange"]


def test_ranges_that_cannot_nest_are_refused() -> None:
    a, b = range_(0, 4, AxisKind.REDUCE), range_(1, 4, AxisKind.REDUCE)

    def total(value: UOp, over: UOp, key: int) -> UOp:
        accumulator = make(ops.DEFINE_ACC, const(float32, 0.0), over, arg=key)
        return make(ops.PHI, accumulator, make(ops.ADD, accumulator, value))

    data = buffer(1, float32, 16)
    both = make(ops.LOAD, data, make(ops.ADD, a, b))
    sums = make(ops.ADD, total(both, a, 0), total(both, b, 1))
    with pytest.raises(GraphError, match=r"ranges|loops"):
        linearize(make(ops.SINK, make(ops.STORE, buffer(0, float32, 1), const(index, 0), sums)), "crossed")
