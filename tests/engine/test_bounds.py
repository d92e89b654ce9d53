"""Accesses proven inside their buffers by the rules, found outside, or left open with what is not proven."""

from __future__ import annotations

import pytest
from rulewright.cli.samples import SAMPLES
from rulewright.engine import dtypes, ops
from rulewright.engine.bounds import Verdict, accesses
from rulewright.engine.ops import SpecialArg, ThreadKind
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.uop import UOp, buffer, const, make, special, variable
from rulewright.kernels.sizes import Size, to_uop
from rulewright.program import compile_kernel

RULES = RuleSet.builtin()
X = special(ThreadKind.GROUP, 0, 12)
Y = special(ThreadKind.GROUP, 1, 10)
N = to_uop(Size("var", ("n", 1, 64)))


def simplify(graph: UOp) -> UOp:
    return RULES.rewrite(graph, "simplify")[0]


def number(value: int) -> UOp:
    return const(dtypes.index, value)


def plus(a: UOp, b: UOp | int) -> UOp:
    return make(ops.ADD, a, b if isinstance(b, UOp) else number(b))


def times(a: UOp, b: int) -> UOp:
    return make(ops.MUL, a, number(b))


def both(*conditions: UOp) -> UOp:
    found = conditions[0]
    for one in conditions[1:]:
        found = make(ops.AND, found, one)
    return found


def within(low: int, x: UOp, high: int) -> UOp:
    """low <= x < high"""
    return both(make(ops.LE, number(low), x), make(ops.LT, x, number(high)))


def load(index: UOp, gate: UOp | None = None, size: int | None = 120, lanes: int = 1) -> UOp:
    memory = buffer(0, dtypes.float32, size)
    dtype = dtypes.float32.vec(max(lanes, index.dtype.lanes))
    gated = [] if gate is None else [gate, const(dtype, 0.0)]
    return make(ops.LOAD, memory, index, *gated, dtype=dtype)


def verdict(node: UOp, sizes: dict[int, UOp] | None = None) -> Verdict:
    (found,) = accesses(node, simplify, sizes)
    return found.verdict


PLACE = plus(times(Y, 12), X)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(load(PLACE), Verdict.INSIDE, id="whole"),
        pytest.param(load(PLACE, size=119), Verdict.UNDECIDED, id="one-short"),
        pytest.param(load(plus(PLACE, -1)), Verdict.UNDECIDED, id="one-before"),
        pytest.param(load(plus(PLACE, 120)), Verdict.OUTSIDE, id="always-behind"),
        pytest.param(load(plus(PLACE, -1), make(ops.LT, number(0), X)), Verdict.INSIDE, id="gated"),
        pytest.param(load(plus(PLACE, -1), make(ops.LT, number(0), Y)), Verdict.INSIDE, id="gated-by-row"),
        pytest.param(load(plus(PLACE, -2), make(ops.LT, number(0), X)), Verdict.UNDECIDED, id="gate-too-weak"),
        pytest.param(load(plus(PLACE, 500), make(ops.LT, X, number(5))), Verdict.OUTSIDE, id="gated-and-outside"),
        pytest.param(load(times(X, 4), size=48, lanes=4), Verdict.INSIDE, id="vector"),
        pytest.param(load(times(X, 4), size=47, lanes=4), Verdict.UNDECIDED, id="vector-last-lane"),
        pytest.param(load(plus(times(X, 4), 48), size=51, lanes=4), Verdict.OUTSIDE, id="vector-behind"),
        pytest.param(load(make(ops.VECTORIZE, X, plus(X, 1)), size=13), Verdict.INSIDE, id="lanes"),
        pytest.param(load(make(ops.VECTORIZE, X, plus(X, 2)), size=13), Verdict.UNDECIDED, id="one-lane"),
    ],
)
def test_verdicts(node: UOp, expected: Verdict) -> None:
    assert verdict(node) is expected


def test_several_sums_under_one_gate() -> None:
    """The padding of a convolution: each coordinate is bounded by a clause, and the index is made of all of them."""
    r, s = (variable(name, 0, 2) for name in "rs")
    row, column = plus(plus(Y, r), -1), plus(plus(X, s), -1)
    index = plus(times(row, 12), column)
    assert verdict(load(index, both(within(0, row, 10), within(0, column, 12)))) is Verdict.INSIDE
    assert verdict(load(index, within(0, row, 10))) is Verdict.UNDECIDED
    assert verdict(load(index, both(within(0, row, 11), within(0, column, 12)))) is Verdict.UNDECIDED


def test_a_symbolic_size() -> None:
    counted = make(ops.SPECIAL, N, dtype=dtypes.index, arg=SpecialArg(ThreadKind.GROUP, 0))
    node = load(counted, size=None)
    assert verdict(node) is Verdict.UNSIZED
    assert verdict(node, {0: N}) is Verdict.INSIDE
    assert verdict(load(plus(counted, 1), size=None), {0: N}) is Verdict.UNDECIDED


def test_what_is_left_is_told() -> None:
    (found,) = accesses(load(PLACE, size=119), simplify)
    assert str(found) == (
        "load buffer 0 of 119 at group_1 * 12 + group_0 in 0..119: perhaps outside; "
        "not proven: group_0 + group_1 * 12 < 119"
    )


@pytest.mark.parametrize("device", ["interpreter", "llvm"])
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_access_of_the_demo_kernels_is_inside(name: str, device: str) -> None:
    graphs: list[UOp] = []
    compile_kernel(SAMPLES[name].kernel(), device, after_stage=lambda _, graph: graphs.append(graph))
    judged = list(accesses(graphs[1], simplify))
    assert judged
    assert [str(access) for access in judged if access.verdict is not Verdict.INSIDE] == []
