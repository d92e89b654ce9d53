"""The Python form against NumPy: what each expression computes, in one kernel, through the reference evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rulewright as rw
from rulewright.engine.errors import KernelError
from rulewright.kernels.detaching import full_shape
from rulewright.kernels.kernel import Reduce
from rulewright.kernels.reference import evaluate_kernel

Array = Any
RANDOM = np.random.default_rng(3)
ARRAYS: dict[str, Array] = {
    "x": RANDOM.standard_normal((4, 6)).astype(np.float32),
    "y": RANDOM.standard_normal((4, 8)).astype(np.float32),
    "z": RANDOM.standard_normal((2, 3, 4)).astype(np.float32),
    "h": RANDOM.standard_normal((4, 6)).astype(np.float16),
    "i": RANDOM.integers(-9, 10, (4, 6)).astype(np.int8),
    "u": RANDOM.integers(1, 7, (4, 6)).astype(np.uint8),
}
X, Y, Z, H, J, U = (rw.tensor(name, a.shape, a.dtype.name) for name, a in ARRAYS.items())
x, y, z, h, j, u = ARRAYS.values()


def evaluated(expression: rw.Tensor, **sizes: int) -> Array:
    kernel = rw.kernel(expression)
    shapes: list[Any] = [tuple(sizes.get(str(size), size) for size in a.shape or ()) for a in kernel.arguments]
    buffers = [
        np.zeros(int(np.prod(shape)), a.dtype.name) if a.written else ARRAYS[a.name].ravel()
        for a, shape in zip(kernel.arguments, shapes, strict=True)
    ]
    return evaluate_kernel(kernel, buffers, sizes)[0].reshape(shapes[0])


def same(expression: rw.Tensor, expected: Array) -> None:
    got = evaluated(expression)
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=2e-5, atol=2e-6)


def softmax(v: Any, exp: Callable[[Any], Any]) -> Any:
    e = exp(v - v.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


S, s = softmax(X, rw.exp), softmax(x, np.exp)


@pytest.mark.parametrize(("expression", "expected"), [
    (S[:, :3], s[:, :3]), (S[:, ::-2], s[:, ::-2]), (S[1:3, 4], s[1:3, 4]),
    (S.pad([(0, 0), (1, 2)]), np.pad(s, [(0, 0), (1, 2)])), (S[:, 1:5].sum(1), s[:, 1:5].sum(1)),
    (X.sum(1, keepdims=True)[:, ::2], x.sum(1, keepdims=True)),
    (X.sum(1, keepdims=True).expand(4, 8).sum(1), x.sum(1) * 8),
    (X.sum(1, keepdims=True) * Y, x.sum(1, keepdims=True) * y), (X.sum(1)[:, None] * Y, x.sum(1)[:, None] * y),
    (X.sum(1) + Y.max(1), x.sum(1) + y.max(1)), (X.sum(1)[1:3], x.sum(1)[1:3]),
    (X.sum(0) * X, x.sum(0) * x), (X.T.sum(0)[:, None] - X, x.sum(1)[:, None] - x),
    (Z.max((0, 2)), z.max((0, 2))), (Z.min(), z.min()), (Z.mean(-1), z.mean(-1)), (X.prod(0), x.prod(0)),
    ((X.sum(1)[:, None] * Y).sum(0), (x.sum(1)[:, None] * y).sum(0)),
])  # fmt: skip
def test_what_moves_or_broadcasts_beside_a_reduction_leaves_it_whole(expression: rw.Tensor, expected: Array) -> None:
    same(expression, expected)


@pytest.mark.parametrize(("expression", "expected"), [
    (Z[1], z[1]), (Z[:, -1], z[:, -1]), (Z[..., None, 1:3], z[..., None, 1:3]), (Z[None, ..., 0], z[None, ..., 0]),
    (Z[::-1, ::2, 3:0:-2], z[::-1, ::2, 3:0:-2]), (X[3:1], x[3:1]), (X.permute(1, 0)[2:], x.T[2:]),
    (X.shrink([(1, 3), (0, 2)]), x[1:3, :2]), (Z.transpose(0, 2), z.swapaxes(0, 2)), (X.flip(1), x[:, ::-1]),
    (Z.reshape(6, -1).T, z.reshape(6, 4).T), (X[:, None] + X[None], x[:, None] + x[None]),
    (rw.exp(X).pad([(1, 0), (0, 2)]).reshape(-1), np.pad(np.exp(x), [(1, 0), (0, 2)]).reshape(-1)),
])  # fmt: skip
def test_movement_reads_like_numpy(expression: rw.Tensor, expected: Array) -> None:
    same(expression, expected)


TWO: Any = np.float32(2)


@pytest.mark.parametrize(("expression", "expected"), [
    (7 % U, 7 % u), (7 // U, 7 // u), (3 & U, 3 & u), (8 | U, 8 | u), (5 ^ U, 5 ^ u), (1 << U, 1 << u),
    (200 >> U, 200 >> u), (~J, ~j), (-J, -j), (J // U, j // u), (J % U, j % u), (1 - X, 1 - x), (2 / X, 2 / x),
    (TWO * X, 2 * x), (rw.where(X > 0, X, 0), np.where(x > 0, x, 0)), (rw.minimum(X, 0.5), np.minimum(x, 0.5)),
    (rw.abs(X), abs(x)), (rw.abs(J), abs(j)), (rw.abs(U), u), (rw.abs(X > 0), x > 0), (rw.relu(X), np.maximum(x, 0)),
    (rw.cos(X), np.cos(x)), (rw.log(rw.abs(X)), np.log(abs(x))), (rw.tanh(X), np.tanh(x)),
    (rw.sqrt(rw.abs(X)), np.sqrt(abs(x))), (rw.recip(X), 1 / x), (rw.log2(rw.exp2(X)), x),
])  # fmt: skip
def test_operators_and_functions_equal_numpy(expression: rw.Tensor, expected: Array) -> None:
    same(expression, expected)


@pytest.mark.parametrize(("expression", "dtype"), [
    (J + U, "int16"), (J + 1, "int8"), (H + X, "float32"), (H * 2.5, "float16"), (J + X, "float32"), (J / U, "float32"),
    (J.cast("int64") / 2, "float64"), (X < Y[:, :6], "bool"), (J.sum(), "int32"), (U.sum(), "uint32"),
    ((X > 0).sum(), "int32"), (H.sum(), "float16"), (J.max(), "int8"),
])  # fmt: skip
def test_types_promote_as_specified(expression: rw.Tensor, dtype: str) -> None:
    assert expression.dtype.name == dtype


def test_small_sums_do_not_wrap_and_half_sums_round_once() -> None:
    assert evaluated((J * 0 + 100).sum()) == 2400
    half = evaluated(H.sum(1))
    np.testing.assert_array_equal(half, h.astype(np.float32).sum(1).astype(np.float16))


def test_the_mean_of_halves_does_not_overflow() -> None:
    assert evaluated((H * 0 + 30000).mean()) == 30000
    assert H.mean().dtype.name == "float16"


def test_softmax_stays_one_kernel_over_two_axes() -> None:
    kernel = rw.kernel(S)
    assert kernel.axis_sizes == (4, 6)
    assert sum(isinstance(node, Reduce) for node in kernel.nodes) == 2
    product = rw.kernel((rw.tensor("a", (2, 3))[:, :, None] * rw.tensor("b", (3, 5))[None]).sum(1))
    assert product.axis_sizes in ((2, 3, 5), (2, 5, 3))
    assert [(a.name, a.shape) for a in product.arguments] == [("out", (2, 5)), ("a", (2, 3)), ("b", (3, 5))]


def test_symbolic_sizes_reduce_and_broadcast() -> None:
    n = rw.var("n", 1, 9)
    rows = rw.tensor("x", (n, 6))
    np.testing.assert_allclose(evaluated(rows.sum(0), n=4), x.sum(0), rtol=1e-5)
    np.testing.assert_allclose(evaluated(rows.T.max(1), n=4), x.max(0))
    np.testing.assert_allclose(evaluated(rows - rows.sum(1)[:, None], n=4), x - x.sum(1)[:, None], rtol=1e-5)


def test_long_expressions_take_linear_time_and_no_recursion() -> None:
    value = X
    for _ in range(20_000):
        value = value + 1.0
    assert full_shape(value.expression) == (4, 6)


WRONG_KEY: Any = "a"


def anything(value: object) -> Any:
    """A value that the type checker does not look at."""
    return value


@pytest.mark.parametrize(("make", "problem"), [
    (lambda: X + Y, r"cannot broadcast the shapes \(4, 6\), \(4, 8\)"), (lambda: X.sum(2), "axis 2 is out of bounds"),
    (lambda: X.sum((0, -2)), "stands twice"), (lambda: X[4], "index 4 is out of bounds for axis 0 of size 4"),
    (lambda: X[0, 0, 0], "too many indices"), (lambda: X[::0], "slice step cannot be zero"),
    (lambda: X[WRONG_KEY], "cannot index with"), (lambda: X.reshape(5, 5), "cannot reshape 24 elements"),
    (lambda: Z.sum(2).reshape(6), "store it in a kernel of its own first"), (lambda: X.permute(0, 0), "each of the 2"),
    (lambda: X.expand(4, 7), "only an axis of size 1 repeats"), (lambda: X.cast("float31"), "unknown type 'float31'"),
    (lambda: x * X, "make inputs with tensor"), (lambda: bool(X > 0), "no truth value"),
    (lambda: rw.where(X, X, X), "must be a bool tensor"), (lambda: rw.kernel([X, Y]), "cannot broadcast"),
    (lambda: rw.kernel(X + rw.tensor("x", (4, 1))), "x is used with two types or shapes"),
    (lambda: X.pad([(0, -1), (0, 0)]), "not negative"), (lambda: rw.tensor("9", (2,)), "cannot name an input"),
    (lambda: rw.tensor(anything(5), (2,)), "5 cannot name an input"), (lambda: rw.tensor("a", anything("xy")), "a tuple of sizes"),
    (lambda: rw.tensor("a", anything((2.5,))), "a size must be a whole number"), (lambda: X.sum(anything("x")), "an axis is a whole"),
    (lambda: X.pad(anything(3)), "needs 2 pairs"), (lambda: X.shrink(anything([1, 2])), "needs 2 pairs"),
    (lambda: J + 300, r"300 is no value of int8 \(-128..127\)"), (lambda: U + -1, r"-1 is no value of uint8 \(0..255\)"),
    (lambda: rw.exp(anything(5)), "takes a tensor, got 5"), (lambda: rw.einsum(anything(5)), "needs a formula"),
    (lambda: rw.kernel(anything(5)), "got 5"), (lambda: rw.kernel(anything([X, 5])), "got .*5"),
    (lambda: rw.compile(anything(X)), "compile needs a kernel"), (lambda: rw.compile(rw.kernel(X), math="x"), "strict, fast"),
    (lambda: rw.compile(rw.kernel(X), schedule=anything(5)), "a schedule is"),
])  # fmt: skip
def test_mistakes_are_named(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(KernelError, match=problem):
        make()
