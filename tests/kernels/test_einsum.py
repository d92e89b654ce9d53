"""Einstein summation against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import rulewright as rw
from rulewright.engine.errors import KernelError
from rulewright.kernels.reference import evaluate_kernel


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    random = np.random.default_rng(7)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize(("formula", "shapes"), [
    ("ik,kj->ij", [(3, 4), (4, 5)]), ("ik,kj", [(3, 4), (4, 5)]), ("ba", [(3, 4)]), ("i,i->", [(6,), (6,)]),
    ("i,j->ij", [(3,), (4,)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("ij->", [(3, 4)]), ("ij->j", [(3, 4)]),
    ("ii->i", [(4, 4)]), ("ii", [(4, 4)]), ("iji->j", [(3, 4, 3)]), ("iii->i", [(3, 3, 3)]), ("ii,ij->j", [(3, 3), (3, 4)]),
    ("ij,ij,ij->i", [(3, 4)] * 3), ("ij,jk,kl -> il", [(2, 3), (3, 4), (4, 2)]), ("ik,kj->ij", [(3, 1), (4, 5)]),
])  # fmt: skip
def test_einsum_equals_numpy(formula: str, shapes: list[tuple[int, ...]]) -> None:
    data = arrays(*shapes)
    kernel = rw.kernel(rw.einsum(formula, *(rw.tensor(f"x{n}", shape) for n, shape in enumerate(shapes))))
    expected = np.einsum(formula, *data)
    out = np.zeros(expected.size, np.float32)
    shape: Any = kernel.outputs[0].shape
    got: Any = evaluate_kernel(kernel, [out, *(a.ravel() for a in data)])[0].reshape(shape)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_diagonal_goes_through_operators_and_reductions() -> None:
    (x,) = arrays((4, 4))
    t = rw.tensor("x", (4, 4))
    kernel = rw.kernel(rw.einsum("ii->i", t - t.sum(1, keepdims=True)))
    got: Any = evaluate_kernel(kernel, [np.zeros(4, np.float32), x.ravel()])[0]
    np.testing.assert_allclose(got, np.diag(x - x.sum(1, keepdims=True)), rtol=1e-5)


@pytest.mark.parametrize(("formula", "shapes", "problem"), [
    ("ij,jk->ik", [(2, 3)], "names 2 operands, got 1"), ("ijk->i", [(2, 3)], "one letter for each of 2 dimensions"),
    ("ij,jk->ik", [(2, 3), (4, 5)], "'j' has the sizes 3 and 4"), ("ij->ik", [(2, 3)], "the letter 'k' wrongly"),
    ("ii->i", [(2, 3)], "'i' has the sizes 2 and 3"), ("...i->i", [(2, 3)], "needs one letter"),
    ("ij->ii", [(2, 3)], "the letter 'i' wrongly"),
])  # fmt: skip
def test_mistakes_are_named(formula: str, shapes: list[tuple[int, ...]], problem: str) -> None:
    with pytest.raises(KernelError, match=problem):
        rw.einsum(formula, *(rw.tensor(f"x{n}", shape) for n, shape in enumerate(shapes)))


def test_operands_must_be_tensors() -> None:
    array: Any = np.zeros(3)
    with pytest.raises(KernelError, match="must be tensors"):
        rw.einsum("i->", array)
