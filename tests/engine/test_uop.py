"""Nodes are interned by their parts and bits, checked when made, freed when dropped, and any depth works."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import subprocess
import sys
import threading

import pytest
from rulewright.engine import dtypes, ops, uop
from rulewright.engine.dtypes import DType, bool_, float32, float64, index, int8, int32
from rulewright.engine.errors import GraphError
from rulewright.engine.ops import AxisKind, Op, RangeArg, ThreadKind, VarArg
from rulewright.engine.uop import UOp, buffer, const, intern, make, range_, special, variable, walk

DEEP = 1_000_000


def var(name: str, dtype: DType = int32) -> UOp:
    return make(ops.VAR, dtype=dtype, arg=name)


# --- interning -------------------------------------------------------------------------------------------------------


def test_equal_parts_are_one_node() -> None:
    x, y = var("x"), var("y")
    assert make(ops.ADD, x, y) is make(ops.ADD, x, y)
    assert make(ops.ADD, x, y) is intern(ops.ADD, int32, (x, y))
    assert make(ops.ADD, x, y) is not make(ops.ADD, y, x)
    assert var("x", int32) is not var("x", int8)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (const(float32, 0.0), const(float32, -0.0)),
        (const(int32, 1), const(bool_, True)),
        (const(int32, 1), const(index, 1)),
        (const(float32, 1.0), const(int32, 1)),
        (const(float32, 1.0), const(float64, 1.0)),
        (const(float32, 1.0), const(float32.vec(4), 1.0)),
    ],
)
def test_constants_of_other_bits_or_types_are_other_nodes(a: UOp, b: UOp) -> None:
    assert a is not b


def test_constants_of_the_same_bits_are_one_node() -> None:
    assert const(float32, math.nan) is const(float32, -math.nan)
    assert const(int8, 256 + 5) is const(int8, 5)
    assert const(float32, 1) is const(float32, True) is const(float32, 1.0)
    assert const(float32, 0.1) is const(float32, const(float32, 0.1).arg)  # type: ignore[arg-type]  # a float


def test_a_constants_value_has_its_types_python_type() -> None:
    values = [const(bool_, 1).arg, const(int32, True).arg, const(float32, 0).arg, const(int8.vec(2), 255).arg]
    assert [(type(v), v) for v in values] == [(bool, True), (int, 1), (float, 0.0), (int, -1)]
    assert math.copysign(1.0, const(float32, -0.0).arg) == -1.0  # type: ignore[arg-type]  # a float


def test_the_short_constructors() -> None:
    assert buffer(2, float32, 16).dtype is float32.ptr("global")
    assert range_(3, 10) is make(ops.RANGE, const(index, 10), arg=RangeArg(3, AxisKind.LOOP))
    assert special(ThreadKind.LOCAL, 1, 8).src == (const(index, 8),)
    assert variable("n", 1, 9).arg == VarArg("n", 1, 9)
    n = variable("n", 1, 9)
    assert range_(0, n, AxisKind.REDUCE).src == (n,)


# --- checks ----------------------------------------------------------------------------------------------------------

I, F, B = var("i"), var("f", float32), var("b", bool_)  # noqa: E741 - an index, a float, a bool
V4 = var("v", float32.vec(4))
BUF = buffer(0, float32, 8)
AT = var("at", index)

FROM_FLOAT = "load(buffer: global float32*, var: float32)"
GATED = "load(buffer: global float32*, var: index, var: {})"
NUMBERS = "sint or uint or index or float"

BAD: list[tuple[Op, tuple[UOp, ...], DType | None, object, str, str]] = [
    (ops.CONST, (), int32, 1, "", "constants are made by const(dtype, value)"),
    (ops.ADD, (I,), None, None, "", "add takes 2 operands, got 1"),
    (ops.NEG, (), None, None, "", "neg takes 1 operand, got 0"),
    (ops.STORE, (), None, None, "", "store takes at least one operand, got 0"),
    (ops.ADD, (I, F), None, None, "add(var: int32, var: float32)", "operands must have one type, got int32, float32"),
    (ops.SHL, (F, F), None, None, "shl(var: float32, var: float32)",
     "operands must be sint or uint or index, got float32"),
    (ops.SUB, (B, B), None, None, "sub(var: bool, var: bool)", f"operands must be {NUMBERS}, got bool"),
    (ops.LT, (I, F), None, None, "lt(var: int32, var: float32)",
     "can only compare two values of one type, got int32, float32"),
    (ops.WHERE, (I, F, F), None, None, "where(var: int32, var: float32, var: float32)",
     "the condition must be bool with as many lanes as the branches, got int32, float32, float32"),
    (ops.WHERE, (B, V4, V4), None, None, "where(var: bool, var: float32x4, var: float32x4)",
     "the condition must be bool with as many lanes as the branches, got bool, float32x4, float32x4"),
    (ops.WHERE, (B, F, I), None, None, "where(var: bool, var: float32, var: int32)",
     "the branches must have one type, got bool, float32, int32"),
    (ops.CAST, (I,), None, None, "cast(var: int32)", "cannot convert int32 to None"),
    (ops.CAST, (V4,), int32, None, "cast(var: float32x4)",
     "a conversion keeps the number of lanes, got float32x4 to int32"),
    (ops.BITCAST, (F,), dtypes.int64, None, "bitcast(var: float32)", "a bitcast keeps the width, got float32 to int64"),
    (ops.VAR, (), None, "x", "var()", "needs a type that is bool or sint or uint or float or index, got None"),
    (ops.BUFFER, (), float32, None, "buffer()", "needs a type that is pointer, got float32"),
    (ops.RANGE, (F,), None, None, "range(var: float32)", "the end must be an index or an integer, got float32"),
    (ops.GEP, (V4,), None, 4, "gep(var: float32x4)", "there is no lane 4 in float32x4"),
    (ops.VECTORIZE, (F, I), None, None, "vectorize(var: float32, var: int32)",
     "lanes must be scalars of one type, got float32, int32"),
    (ops.VECTORIZE, (V4,), None, None, "vectorize(var: float32x4)", "lanes must be scalars of one type, got float32x4"),
    (ops.WIDEN, (F, range_(0, 4)), int32, None, "widen(var: float32, range: index)", "cannot widen float32 to int32"),
    (ops.FOLD_LANES, (V4,), float32.vec(3), ops.ADD, "fold_lanes(var: float32x4)",
     "cannot combine the lanes of float32x4 into float32x3"),
    (ops.LOAD, (F, AT), None, None, "load(var: float32, var: index)", "needs a buffer, got float32"),
    (ops.LOAD, (BUF, F), None, None, FROM_FLOAT, "the index must be an index or an integer, got float32"),
    (ops.LOAD, (BUF, AT, I), None, None, GATED.format("int32"),
     "the gate must be bool, with one lane or as many as the index, got int32"),
    (ops.LOAD, (BUF, AT, B), None, None, GATED.format("bool"),
     "takes a buffer and an index, and for a gate also the gate and the alternative"),
    (ops.LOAD, (BUF, AT, B, I), None, None, GATED.format("bool, var: int32"),
     "the alternative must have the type of the result, float32, got int32"),
    (ops.STORE, (BUF, AT, I), None, None, "store(buffer: global float32*, var: index, var: int32)",
     "cannot store int32 at index of global float32*"),
    (ops.REDUCE, (F, range_(0, 4)), None, ops.SUB, "reduce(var: float32, range: index)",
     "can reduce by add, mul, max, min, not by sub"),
    (ops.PHI, (F, I), None, None, "phi(var: float32, var: int32)",
     "the new value must have the accumulator's type, got float32, int32"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "src", "dtype", "arg", "node", "problem"), BAD, ids=[f"{r[0]}-{k}" for k, r in enumerate(BAD)]
)
def test_a_bad_node_is_refused_with_its_name_and_operands(
    op: Op, src: tuple[UOp, ...], dtype: DType | None, arg: object, node: str, problem: str
) -> None:
    with pytest.raises(GraphError) as refusal:
        make(op, *src, dtype=dtype, arg=arg)
    assert str(refusal.value) == (f"{node}: {problem}" if node else problem)


def test_types_are_inferred() -> None:
    assert make(ops.LT, V4, V4).dtype is bool_.vec(4)
    assert make(ops.LOAD, BUF, AT).dtype is float32
    assert make(ops.LOAD, BUF, AT, dtype=float32.vec(4)).dtype is float32.vec(4)
    assert make(ops.LOAD, BUF, var("at", index.vec(4))).dtype is float32.vec(4)
    assert make(ops.STORE, BUF, AT, V4).dtype is dtypes.void
    assert make(ops.SINK).dtype is dtypes.void
    assert make(ops.VECTORIZE, F, F, F).dtype is float32.vec(3)
    assert make(ops.GEP, V4, arg=3).dtype is float32


# --- walking ---------------------------------------------------------------------------------------------------------


def test_a_walk_gives_each_node_once_operands_first_and_from_the_left() -> None:
    x, y = var("x"), var("y")
    s = make(ops.ADD, x, y)
    p = make(ops.MUL, s, s)
    q = make(ops.SUB, y, p)
    assert list(walk(q)) == [y, x, s, p, q]
    assert list(walk(p, q, x)) == [x, y, s, p, q]


# --- copies and memory -----------------------------------------------------------------------------------------------


def sample_graph() -> UOp:
    r = range_(0, 8, AxisKind.REDUCE)
    total = make(ops.REDUCE, make(ops.LOAD, BUF, r), r, arg=ops.ADD)
    acc = make(ops.DEFINE_ACC, const(float32, -0.0), r, arg=total)
    phi = make(ops.PHI, acc, make(ops.ADD, acc, make(ops.LOAD, BUF, r)))
    fixed = make(ops.ADD, make(ops.MUL, phi, const(float32, math.nan)), make(ops.GEP, V4, arg=1))
    n = make(ops.ADD, variable("n", 1, 9), special(ThreadKind.GROUP, 0, 16))
    return make(ops.SINK, make(ops.STORE, BUF, n, fixed, B))


def test_a_pickle_comes_back_as_the_same_node() -> None:
    graph = sample_graph()
    assert pickle.loads(pickle.dumps(graph)) is graph
    assert copy.copy(graph) is graph
    assert copy.deepcopy({"a": [graph]})["a"][0] is graph


def test_a_pickle_is_read_by_another_process() -> None:
    code = (
        "import pickle, sys\n"
        "graph = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(pickle.dumps(graph))\n"
    )  # fmt: skip
    graph = sample_graph()
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(graph), stdout=subprocess.PIPE, check=True)
    assert pickle.loads(done.stdout) is graph


def test_a_dropped_graph_is_freed() -> None:
    gc.collect()
    before = len(uop._table)
    graph = make(ops.ADD, var("only here 1"), make(ops.NEG, var("only here 2")))
    assert len(uop._table) == before + 4
    del graph
    assert len(uop._table) == before


def test_a_node_is_kept_while_only_a_user_of_it_is() -> None:
    x = var("x")
    user = make(ops.NEG, make(ops.NEG, x))
    inner = user.src[0]
    assert make(ops.NEG, x) is inner


def chain(length: int) -> UOp:
    node = var("deep", index)
    step = const(index, 1)
    for _ in range(length):
        node = intern(ops.ADD, index, (node, step))
    return node


def test_a_chain_of_a_million_is_built_walked_copied_and_freed() -> None:
    gc.collect()
    before = len(uop._table)
    node = chain(DEEP)
    assert sum(1 for _ in walk(node)) == DEEP + 2
    assert copy.deepcopy(node) is node
    del node
    assert len(uop._table) <= before


def test_a_deep_chain_is_pickled() -> None:
    node = chain(DEEP // 10)
    data = pickle.dumps(node)
    assert pickle.loads(data) is node
    del node
    assert pickle.loads(data) is chain(DEEP // 10)


def test_a_deep_chain_is_freed_on_a_thread_with_a_small_stack() -> None:
    before = len(uop._table)
    old = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: chain(100_000))
        thread.start()
    finally:
        threading.stack_size(old)
    thread.join()
    assert len(uop._table) <= before


def test_a_graph_with_many_paths_is_walked_once_a_node() -> None:
    node = var("x")
    for _ in range(200):
        node = make(ops.ADD, node, node)
    assert sum(1 for _ in walk(node)) == 201
    assert pickle.loads(pickle.dumps(node)) is node
