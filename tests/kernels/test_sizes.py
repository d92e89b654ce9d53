"""Symbolic sizes: arithmetic as Python has it, bounds that contain every value, mistakes named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import rulewright as rw
from hypothesis import given
from hypothesis import strategies as st
from rulewright.engine import interpret, ops
from rulewright.engine.errors import KernelError
from rulewright.engine.uop import walk
from rulewright.kernels.sizes import Dim, Size, bounds, combine, evaluate, product, to_uop, var, variables

N, M = var("n", 1, 6), var("m", -2, 3)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[Dim, Callable[[int, int], int]]:
    """A size, and the same as a function of n and m."""
    leaf = st.one_of(
        st.sampled_from([(N, lambda n, m: n), (M, lambda n, m: m)]),
        st.integers(-5, 5).map(lambda k: (k, lambda n, m, k=k: k)),
    )
    size, function = draw(leaf)
    for _ in range(draw(st.integers(0, 4))):
        other, g = draw(leaf)
        match draw(st.sampled_from(["+", "-", "*", "//", "%"])):
            case "+":
                size, function = size + other, (lambda n, m, f=function, g=g: f(n, m) + g(n, m))
            case "-":
                size, function = size - other, (lambda n, m, f=function, g=g: f(n, m) - g(n, m))
            case "*":
                size, function = size * other, (lambda n, m, f=function, g=g: f(n, m) * g(n, m))
            case "//":
                size, function = size // N, (lambda n, m, f=function: f(n, m) // n)
            case "%":
                size, function = size % 3, (lambda n, m, f=function: f(n, m) % 3)
    return size, function


@given(sizes(), st.integers(1, 6), st.integers(-2, 3))
def test_a_size_is_what_python_computes(case: tuple[Dim, Callable[[int, int], int]], n: int, m: int) -> None:
    size, function = case
    wanted = function(n, m)
    assert evaluate(size, {"n": n, "m": m}) == wanted
    low, high = bounds(size)
    assert low <= wanted <= high
    node = to_uop(size)
    values = {one: {"n": n, "m": m}[one.arg.name] for one in walk(node) if isinstance(one.arg, ops.VarArg)}
    assert interpret.evaluate(node, values) == wanted


def test_numbers_stay_numbers_and_neutral_operands_go() -> None:
    assert (N + 0, N * 1, N // 1, N * 0) == (N, N, N, 0)
    assert product((2, 3, 4)) == 24
    assert product((N, 1)) == N
    assert str(N * 4 + M) == "((n*4)+m)"
    assert set(variables(N * 4 + M)) == {N, M}


def test_a_number_on_the_left() -> None:
    assert [evaluate(size, {"n": 4}) for size in (9 + N, 9 - N, 9 * N, 9 // N, 9 % N)] == [13, 5, 36, 2, 1]


@pytest.mark.parametrize(("make", "message"), [
    (lambda: var("n", 5, 1), "variable n: the lower bound 5 is above the upper bound 1"),
    (lambda: var("a b", 1, 5), "'a b' cannot name a variable; use letters, digits and _"),
    (lambda: N // 0, "division of the size n by zero"),
    (lambda: combine("floormod", 7, 0), "division of the size 7 by zero"),
    (lambda: evaluate(N // M, {"n": 3, "m": 0}), r"division by zero in the size \(n//m\): m is 0"),
    (lambda: evaluate(N, {}), r"variable n has no value; bind it within 1\.\.6"),
    (lambda: evaluate(N, {"n": 7}), r"variable n = 7 is outside its bounds 1\.\.6"),
])  # fmt: skip
def test_mistakes_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        make()


@pytest.mark.parametrize("other", [var("n", 1, 9), var("n", 0, 8)])
def test_one_name_has_one_pair_of_bounds(other: Size) -> None:
    x, y = rw.tensor("x", (var("n", 1, 8),)), rw.tensor("y", (other,))
    with pytest.raises(KernelError, match=r"variable n has the bounds .* and .*; give it one"):
        rw.kernel(x.sum() + y.sum())
