"""Which nodes may be printed inside their user's expression."""

from __future__ import annotations

from rulewright.engine import ops
from rulewright.engine.dtypes import float32, int32
from rulewright.engine.ops import AxisKind, RangeArg
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.renderers.inlining import movable, read_after_assignment

OUT, IN = buffer(0, float32, 8), buffer(1, float32, 8)
ZERO = const(int32, 0)
LOADED = make(ops.LOAD, IN, ZERO)
ROOT = make(ops.SQRT, LOADED)
LOOP = make(ops.RANGE, const(int32, 8), arg=RangeArg(0, AxisKind.LOOP))
END = make(ops.ENDRANGE, LOOP)


def store(value: UOp, at: UOp = ZERO) -> UOp:
    return make(ops.STORE, OUT, at, value)


def test_a_chain_moves_into_the_statement_at_its_end() -> None:
    assert movable([LOADED, ROOT, store(ROOT)]) == {LOADED, ROOT}


def test_a_node_with_two_users_or_used_twice_stays() -> None:
    square = make(ops.MUL, LOADED, LOADED)
    assert movable([LOADED, square, store(square)]) == {square}
    other = make(ops.EXP2, LOADED)
    assert movable([LOADED, ROOT, other, store(ROOT), store(other, const(int32, 1))]) == {ROOT, other}


def test_a_load_stays_before_a_store_that_its_user_comes_after() -> None:
    other = store(const(float32, 1.0))
    assert movable([LOADED, other, ROOT, store(ROOT)]) == {ROOT}
    assert movable([LOADED, ROOT, other, store(ROOT)]) == {ROOT}


def test_nothing_moves_into_or_out_of_a_loop() -> None:
    assert movable([LOADED, ROOT, LOOP, store(ROOT, LOOP), END]) == {LOADED}
    inner = make(ops.ADD, make(ops.LOAD, IN, LOOP), ROOT)
    assert movable([LOADED, ROOT, LOOP, inner.src[0], inner, store(inner, LOOP), END]) == {LOADED, inner.src[0], inner}


def test_nothing_moves_into_an_if() -> None:
    gate = make(ops.LT, LOADED, const(float32, 1.0))
    opened = make(ops.IF, gate)
    assert movable([LOADED, gate, ROOT, opened, store(ROOT), make(ops.ENDIF, opened)]) == {gate}


def test_the_end_of_a_loop_is_computed_once() -> None:
    length = make(ops.CAST, LOADED, dtype=int32)
    loop = make(ops.RANGE, length, arg=RangeArg(0, AxisKind.LOOP))
    assert movable([LOADED, length, loop, store(const(float32, 1.0), loop), make(ops.ENDRANGE, loop)]) == {LOADED}


def test_the_vector_of_a_picked_lane_has_a_name() -> None:
    vector = make(ops.LOAD, IN, ZERO, dtype=float32.vec(4))
    lane = make(ops.GEP, vector, arg=2)
    assert movable([vector, lane, store(lane)]) == {lane}


def test_a_reader_of_an_accumulator_stays_before_its_assignment() -> None:
    one = const(float32, 1.0)
    total = make(ops.DEFINE_ACC, one, LOOP, arg=make(ops.REDUCE, one, LOOP, arg=ops.ADD))
    new, read = make(ops.ADD, total, one), make(ops.SQRT, total)
    assigned = make(ops.PHI, total, new)
    before = [total, LOOP, read, new, assigned, store(read, LOOP), END]
    assert movable(before) == {new}
    assert read_after_assignment(before) == set()
    assert read_after_assignment([total, LOOP, new, assigned, read, store(read, LOOP), END]) == {total}
