"""The verifier: good graphs pass, and each way to break one is found and named, all at once."""

from __future__ import annotations

import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import ops
from rulewright.engine.dtypes import void
from rulewright.engine.errors import GraphError
from rulewright.engine.ops import AxisKind, BufferArg, RangeArg, SpecialArg, ThreadKind, VarArg
from rulewright.engine.uop import UOp, buffer, const, intern, make, range_, special, variable
from rulewright.engine.verifier import check, verify

OUT, DATA = buffer(0, d.float32, 8), buffer(1, d.float32, 8)
ZERO, ONE = const(d.index, 0), const(d.float32, 1.0)
R = range_(0, 8)
K = range_(1, 8, AxisKind.REDUCE)
X = make(ops.LOAD, DATA, R)
Y = make(ops.LOAD, DATA, K)
TOTAL = make(ops.REDUCE, Y, K, arg=ops.ADD)
ACC = make(ops.DEFINE_ACC, const(d.float32, 0), K, arg=TOTAL)
SHARED = make(ops.LOCAL, dtype=d.float32.ptr("local"), arg=BufferArg(0, 8))


def store(value: UOp, at: UOp = R) -> UOp:
    return make(ops.STORE, OUT, at, value)


def sink(*stores: UOp) -> UOp:
    return make(ops.SINK, *stores)


def messages(root: UOp) -> list[str]:
    return [problem.message for problem in verify(root)]


LANES = range_(2, 4, AxisKind.UPCAST)
WAITED = make(ops.AFTER, SHARED, make(ops.BARRIER, make(ops.STORE, SHARED, R, X)))

GOOD = {
    "elementwise": sink(store(make(ops.ADD, X, ONE))),
    "reduce": sink(store(TOTAL)),
    "phi": sink(store(make(ops.PHI, ACC, make(ops.ADD, ACC, Y)))),
    "widened store": sink(make(ops.WIDEN, store(X, make(ops.ADD, R, LANES)), LANES)),
    "barrier": sink(store(make(ops.LOAD, WAITED, R))),
    "gated": sink(make(ops.STORE, OUT, R, X, make(ops.LT, R, const(d.index, 3)))),
    "nothing": sink(),
    "an expression": make(ops.MUL, make(ops.VAR, dtype=d.int32, arg="x"), const(d.int32, 3)),
    "constants": make(ops.VECTORIZE, const(d.float32, float("nan")), const(d.float32, -0.0)),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_graphs(name: str) -> None:
    assert messages(GOOD[name]) == []
    check(GOOD[name])


INT = const(d.int32, 1)
VEC = const(d.float32.vec(4), 1.0)

BAD = {
    "too few operands": (intern(ops.ADD, d.float32, (ONE,)), ["takes 2 operands, got 1"]),
    "no operands": (intern(ops.VECTORIZE, d.float32, ()), ["takes at least one operand"]),
    "mixed types": (
        intern(ops.ADD, d.float32, (ONE, INT)),
        ["add(const: float32, const: int32): operands must have one type, got float32, int32"],
    ),
    "wrong type": (intern(ops.LT, d.int32, (INT, INT)), ["has type int32, but its operands make it bool"]),
    "lane": (intern(ops.GEP, d.float32, (VEC,), 4), ["gep(const: float32x4): there is no lane 4 in float32x4"]),
    "no lane": (intern(ops.GEP, d.float32, (VEC,), None), ["needs a lane's number as its argument, got None"]),
    "constant of another type": (
        intern(ops.CONST, d.int8, (), 300),
        ["needs a value of its type as its argument, got 300"],
    ),
    "a fraction as an integer": (
        intern(ops.CONST, d.int8, (), 2.5),
        ["needs a value of its type as its argument, got 2.5"],
    ),
    "argument of an op without": (
        intern(ops.NEG, d.int32, (INT,), 7),
        ["needs nothing as its argument, got 7"],
    ),
    "buffer": (intern(ops.BUFFER, d.float32.ptr("global"), (), 0), ["needs a BufferArg as its argument, got 0"]),
    "local as global": (
        intern(ops.LOCAL, d.float32.ptr("global"), (), BufferArg(0, 4)),
        ["has type global float32*, a pointer to another memory"],
    ),
    "local without a size": (
        intern(ops.LOCAL, d.float32.ptr("local"), (), BufferArg(0, None)),
        ["needs a BufferArg with a size as its argument, got BufferArg(slot=0, size=None, image=None, scratch=False)"],
    ),
    "hardware dimension": (
        make(ops.SPECIAL, INT, arg=SpecialArg(ThreadKind.GROUP, 3)),
        [f"needs a SpecialArg as its argument, got {SpecialArg(ThreadKind.GROUP, 3)!r}"],
    ),
    "reducer": (
        intern(ops.REDUCE, d.float32, (Y, K), ops.SUB),
        ["needs a reducer as its argument, got sub"],
    ),
    "accumulator of nothing": (
        intern(ops.DEFINE_ACC, d.float32, (ONE, K), ONE),
        ["needs its reduce node as its argument, got 1.0"],
    ),
    "reduce over a number": (
        intern(ops.REDUCE, d.float32, (Y, ZERO), ops.ADD),
        ["operand 1 must be range, got const"],
    ),
    "reduce over a range twice": (intern(ops.REDUCE, d.float32, (Y, K, K), ops.ADD), ["names a range twice"]),
    "phi without accumulator": (
        intern(ops.PHI, d.float32, (Y, ONE)),
        ["operand 0 must be define_acc, got load"],
    ),
    "store as a value": (
        intern(ops.WHERE, void, (const(d.bool_, True), store(X), store(X))),
        None,
    ),
    "barrier of a buffer": (intern(ops.BARRIER, void, (SHARED,)), ["operand 0 must be a value, got local of type local float32*"]),
    "after a store": (
        intern(ops.AFTER, SHARED.dtype, (SHARED, store(X))),
        ["operand 1 must be barrier, got store"],
    ),
    "sink of a value": (sink(X), ["operand 0 must be store or widen or sink, got load"]),
    "accumulator begins in its loop": (
        make(ops.DEFINE_ACC, Y, K, arg=TOTAL),
        ["its start value varies in its own ranges"],
    ),
    "accumulator outside of its loops": (
        sink(store(ACC)),
        ["a store varies in r1, which is of kind reduce; nothing reduces or widens it"],
    ),
    "lanes that are never widened": (
        sink(store(X, make(ops.ADD, R, LANES))),
        ["a store varies in r2, which is of kind upcast; nothing reduces or widens it"],
    ),
    "widened over a loop": (make(ops.WIDEN, store(X), R), ["operand 1 must be an upcast or unrolled range"]),
    "linear form": (make(ops.IF, const(d.bool_, True)), ["exists in the linear form only"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_graphs(name: str) -> None:
    root, expected = BAD[name]
    found = messages(root)
    assert found
    if expected is not None:
        assert found == expected


CLASHES = {
    "range": (range_(0, 4), range_(0, 5)),
    "buffer": (make(ops.LOAD, buffer(0, d.int32, 4), ZERO), make(ops.LOAD, buffer(0, d.int32, 5), ZERO)),
    "variable": (variable("n", 1, 4), variable("n", 1, 5)),
    "hardware index": (special(ThreadKind.GROUP, 0, 4), special(ThreadKind.GROUP, 0, 5)),
}


@pytest.mark.parametrize("name", CLASHES)
def test_one_name_for_two_nodes(name: str) -> None:
    a, b = CLASHES[name]
    (problem,) = verify(make(ops.ADD, a, b))
    assert problem.message.startswith(f"a different {name} has the same number or name: ")


def test_all_problems_at_once() -> None:
    first = intern(ops.ADD, d.float32, (ONE, INT))
    second = intern(ops.LT, d.int32, (INT, INT))
    with pytest.raises(GraphError) as error:
        check(intern(ops.WHERE, d.float32, (second, first, first)))
    lines = str(error.value).splitlines()
    assert lines[0] == "the graph is not well formed; the last rules or passes that ran broke it:"
    assert [line.split(":")[0].split()[0] for line in lines[1:]] == ["lt", "add", "where"]


def test_a_problem_shows_its_node() -> None:
    (problem,) = verify(intern(ops.LT, d.int32, (INT, const(d.int32, 2))))
    assert str(problem) == "lt int32(1) < 2: has type int32, but its operands make it bool"


def test_deep_graphs() -> None:
    node = make(ops.VAR, dtype=d.int32, arg=VarArg("n", 0, 9))
    for step in range(20_000):
        node = make(ops.ADD, node, const(d.int32, step))
    bad = intern(ops.NEG, d.int8, (node,))
    assert messages(bad) == ["has type int8, but its operands make it int32"]


def test_ranges_need_their_argument() -> None:
    assert messages(intern(ops.RANGE, d.index, (const(d.index, 4),), 0)) == ["needs a RangeArg as its argument, got 0"]
    assert messages(make(ops.RANGE, const(d.index, 4), arg=RangeArg(0, AxisKind.LOOP))) == []
