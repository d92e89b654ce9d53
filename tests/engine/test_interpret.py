"""The exact evaluator: only what is needed, lane by lane, undefined where it must be."""

from __future__ import annotations

import pytest
from rulewright.engine import ops
from rulewright.engine.dtypes import bool_, float16, float32, index, int8, int32, uint8, uint32
from rulewright.engine.errors import GraphError
from rulewright.engine.interpret import apply, evaluate
from rulewright.engine.uop import UOp, buffer, const, intern, make, range_

x = make(ops.VAR, dtype=int8, arg="x")
y = make(ops.VAR, dtype=int8, arg="y")
p = make(ops.VAR, dtype=bool_, arg="p")
f = make(ops.VAR, dtype=float32, arg="f")
quotient = make(ops.TRUNCDIV, x, y)


def test_results_are_values_of_the_nodes_type() -> None:
    assert evaluate(make(ops.ADD, x, y), {x: 100, y: 100}) == -56
    assert evaluate(make(ops.CAST, x, dtype=uint8), {x: -1}) == 255
    assert evaluate(make(ops.MUL, f, f), {f: 1e30}) == float("inf")
    assert evaluate(make(ops.CAST, f, dtype=float16), {f: 2049.0}) == 2048.0
    assert evaluate(make(ops.BITCAST, f, dtype=uint32), {f: 1.0}) == 0x3F800000
    assert evaluate(make(ops.LT, x, y), {x: 1, y: 2}) is True


def test_any_node_may_be_given_a_value() -> None:
    r = range_(0, 4)
    load = make(ops.LOAD, buffer(0, int8, 4), r)
    assert evaluate(make(ops.ADD, load, x), {load: 3, x: 4}) == 7
    assert evaluate(make(ops.MUL, r, const(index, 5)), {r: 3}) == 15


def test_a_node_without_a_value_is_an_error() -> None:
    with pytest.raises(GraphError, match="var of type int8 has no value of its own: give one in `values`"):
        evaluate(make(ops.NEG, x), {})
    with pytest.raises(GraphError, match="load of type float32"):
        evaluate(make(ops.LOAD, buffer(0, float32, 4), const(index, 0)), {})


def test_what_uses_an_undefined_value_is_undefined() -> None:
    assert evaluate(quotient, {x: 7, y: 0}) is None
    assert evaluate(make(ops.MUL, quotient, const(int8, 0)), {x: 7, y: 0}) is None
    assert evaluate(make(ops.LT, quotient, x), {x: 7, y: 0}) is None
    assert evaluate(make(ops.CAST, f, dtype=int32), {f: 1e30}) is None


def test_where_evaluates_the_side_that_it_takes_and_no_other() -> None:
    node = make(ops.WHERE, p, quotient, x)
    assert evaluate(node, {p: False, x: 7, y: 0}) == 7
    assert evaluate(node, {p: True, x: 7, y: 0}) is None
    assert evaluate(node, {p: False, x: 7}) == 7  # not even its variables are needed
    undecided = make(ops.WHERE, make(ops.EQ, quotient, x), x, x)
    assert evaluate(undecided, {x: 7, y: 0}) is None


def test_a_shared_operand_is_evaluated_though_a_where_skipped_it() -> None:
    node = make(ops.ADD, make(ops.WHERE, p, y, x), y)
    assert evaluate(node, {p: False, x: 7, y: 1}) == 8


def test_vectors_are_evaluated_lane_by_lane() -> None:
    both = make(ops.VECTORIZE, x, y)
    assert evaluate(make(ops.ADD, both, const(int8.vec(2), 100)), {x: 1, y: 100}) == (101, -56)
    assert evaluate(make(ops.GEP, both, arg=1), {x: 1, y: 100}) == 100
    assert evaluate(make(ops.CAST, both, dtype=uint8.vec(2)), {x: 1, y: -1}) == (1, 255)
    v = make(ops.VAR, dtype=int8.vec(4), arg="v")
    folded = make(ops.FOLD_LANES, v, dtype=int8.vec(2), arg=ops.ADD)
    assert evaluate(folded, {v: (1, 2, 30, 40)}) == (31, 42)
    assert evaluate(make(ops.FOLD_LANES, v, dtype=int8, arg=ops.MAX), {v: (1, 2, 30, 4)}) == 30


def test_a_lane_may_be_undefined_alone() -> None:
    tops, bottoms = make(ops.VECTORIZE, x, x), make(ops.VECTORIZE, y, x)
    ratio = make(ops.TRUNCDIV, tops, bottoms)
    assert evaluate(ratio, {x: 7, y: 0}) == (None, 1)
    assert evaluate(make(ops.GEP, ratio, arg=1), {x: 7, y: 0}) == 1
    choice = make(ops.WHERE, make(ops.VECTORIZE, p, p), ratio, tops)
    assert evaluate(choice, {p: False, x: 7, y: 0}) == (7, 7)
    assert evaluate(choice, {p: True, x: 7, y: 0}) == (None, 1)


def test_one_operator_on_scalars() -> None:
    assert apply(ops.ADD, int8, int8, 100, 100) == -56
    assert apply(ops.ADD, int8, int8, None, 100) is None
    assert apply(ops.CAST, int8, uint8, -1) == 255
    assert apply(ops.WHERE, int8, int8, False, None, 5) == 5


def test_deep_expressions() -> None:
    node: UOp = x
    one = const(int8, 1)
    for _ in range(200_000):
        node = intern(ops.ADD, int8, (node, one))
    assert evaluate(node, {x: 0}) == int8.canonical(200_000)


def test_a_graph_with_many_paths_is_evaluated_once_a_node() -> None:
    node: UOp = x
    for _ in range(200):
        node = make(ops.ADD, node, node)
    assert evaluate(node, {x: 1}) == 0
