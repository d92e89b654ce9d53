"""Congruences hold for every pair of values that their operands admit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import congruences as cg
from rulewright.engine import ops
from rulewright.engine.congruences import ANY, CAP, Congruence
from rulewright.engine.dtypes import index, int8, uint8
from rulewright.engine.interpret import apply
from rulewright.engine.ops import Op

BINARY = tuple(op for op in cg.NUMBER if op.arity == 2)
UNARY = (ops.NEG, ops.NOT)
some = st.one_of(
    st.builds(cg.normal, st.integers(1, 24), st.integers(-40, 40)),
    st.builds(lambda k, r: cg.normal(1 << k, r), st.integers(0, 6), st.integers(0, 63)),
    st.builds(lambda r: (0, r), st.integers(-20, 40)),
)
STEPS = range(-5, 6)


def members(c: Congruence) -> list[int]:
    return [c[1] + c[0] * step for step in STEPS] if c[0] else [c[1]]


def holds(c: Congruence, value: object) -> bool:
    assert isinstance(value, int)
    return (value - c[1]) % c[0] == 0 if c[0] else value == c[1]


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from(BINARY), some, some)
def test_binary_operators_on_mathematical_integers(op: Op, a: Congruence, b: Congruence) -> None:
    found = cg.NUMBER[op](a, b)
    assert found == cg.normal(*found)
    for x in members(a):
        for y in members(b):
            value = apply(op, index, index, x, y)
            assert value is None or holds(found, value), (x, y, found)


@given(st.sampled_from(UNARY), some)
def test_unary_operators_on_mathematical_integers(op: Op, a: Congruence) -> None:
    found = cg.NUMBER[op](a)
    assert found == cg.normal(*found)
    assert all(holds(found, apply(op, index, index, x)) for x in members(a))


@given(some, some, some)
def test_mulacc_and_where(a: Congruence, b: Congruence, c: Congruence) -> None:
    fused, either = cg.mulacc(a, b, c), cg.where(ANY, a, b)
    for x in members(a):
        assert holds(either, x)
        assert holds(fused, x * members(b)[0] + members(c)[-1])
    assert cg.where((0, 1), a, b) == a
    assert cg.where((0, 0), a, b) == b


@given(some)
def test_what_is_left_of_a_congruence_survives_wrapping(a: Congruence) -> None:
    left = cg.wrapped(8, a)
    assert left == cg.normal(*left)
    for x in members(a):
        assert holds(left, int8.canonical(x))
        assert holds(left, uint8.canonical(x))


def test_the_strongest_claim_is_made() -> None:
    assert cg.add((12, 5), (8, 2)) == (4, 3)
    assert cg.mul((4, 2), (6, 3)) == (12, 6)
    assert cg.join((0, 3), (0, 11)) == (8, 3)
    assert cg.join((12, 1), (8, 5)) == (4, 1)
    assert cg.remainder((12, 7), (0, -8)) == (4, 3)
    assert cg.remainder((6, 0), (4, 0)) == (2, 0)
    assert cg.remainder((6, 0), (0, 0)) == ANY
    assert cg.floordiv((12, 7), (0, 4)) == (3, 1)
    assert cg.floordiv((12, 7), (0, -4)) == (3, 1)  # -2 and three more
    assert cg.and_(ANY, (0, 0x50)) == (16, 0)
    assert cg.and_((8, 5), (0, -2)) == (8, 4)
    assert cg.or_((4, 1), (0, 0b111)) == (8, 7)
    assert cg.xor((8, 5), (0, 3)) == (8, 6)
    assert cg.shl((3, 1), (0, 2)) == (12, 4)
    assert cg.shr((16, 4), (0, 2)) == (4, 1)
    assert cg.shl((3, 1), (0, 64)) == ANY


def test_normal_forms_are_short() -> None:
    assert cg.normal(7, 23) == (7, 2)
    assert cg.normal(0, -3) == (0, -3)
    assert cg.normal(3 * CAP, 5) == (CAP, 5)
    assert cg.normal(3**100, 5) == ANY
    assert cg.normal(0, 12 * CAP) == (CAP, 0)
