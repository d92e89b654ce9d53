"""The error bounds hold for what devices may do, and are narrow enough to see what they must not."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import rulewright as rw
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine.arrays import Array, numpy_dtype
from rulewright.engine.dtypes import DType
from rulewright.kernels.accuracy import agrees, elementwise_error, reduction_error
from rulewright.kernels.kernel import Argument
from rulewright.kernels.reference import evaluate_kernel, evaluate_with_errors, mismatch


def argument(dtype: DType, length: int) -> Argument:
    return Argument(0, "data0", dtype, (length,), written=True)


def checked(kernel: rw.Kernel, *inputs: Array) -> tuple[Array, npt.NDArray[np.float64]]:
    """The single float output of a kernel, and its error."""
    outputs = [np.zeros(math.prod(a.shape or ()), numpy_dtype(a.dtype)) for a in kernel.outputs]  # type: ignore[arg-type]
    ((value, error),) = evaluate_with_errors(kernel, [*outputs, *(array.reshape(-1) for array in inputs)])
    return value, np.zeros(value.size) if error is None else error


# --- what must be met exactly ----------------------------------------------------------------------------------------


def test_nan_equals_nan_and_infinity_itself_only() -> None:
    expected = np.array([math.nan, math.inf, 1.0], np.float32)
    error = np.zeros(3)
    output = argument(dtypes.float32, 3)
    assert mismatch(output, expected.copy(), expected, error) is None
    for wrong in ([math.nan, -math.inf, 1.0], [0.0, math.inf, 1.0], [math.nan, math.inf, math.nan]):
        assert mismatch(output, np.array(wrong, np.float32), expected, error) is not None


def test_an_exact_value_must_be_met() -> None:
    expected = np.array([1.0, 1.5], np.float32)
    near = np.nextafter(expected, np.float32(2))
    assert mismatch(argument(dtypes.float32, 2), near, expected, None) is not None


def test_what_is_only_moved_is_exact() -> None:
    kernel = rw.kernel(rw.tensor("a", (4, 4)).permute(1, 0).pad([(1, 0), (0, 1)]))
    buffers = [np.zeros(25, np.float32), np.arange(16, dtype=np.float32)]
    ((_, error),) = evaluate_with_errors(kernel, buffers)
    assert error is None


def test_the_message_says_where_what_and_how_many() -> None:
    expected = np.array([1, 2, 3, 4], np.int32)
    message = mismatch(argument(dtypes.int32, 4), np.array([1, 9, 3, 8], np.int32), expected, None)
    assert message == "data0[1] is 9, NumPy has 2 (2 of 4 elements differ)"
    floats = expected.astype(np.float32)
    message = mismatch(argument(dtypes.float32, 4), floats + np.float32(1), floats, np.full(4, 0.25))
    assert message == "data0[0] is 2.0, NumPy has 1.0 and may be off by 0.25 (4 of 4 elements differ)"


def test_another_shape_or_type_is_a_mismatch() -> None:
    expected, output = np.zeros(4, np.int32), argument(dtypes.int32, 4)
    assert "int32(3,) instead of int32(4,)" in (mismatch(output, np.zeros(3, np.int32), expected, None) or "")
    assert "int64(4,) instead of int32(4,)" in (mismatch(output, np.zeros(4, np.int64), expected, None) or "")


# --- narrow enough ---------------------------------------------------------------------------------------------------


def test_a_small_element_beside_a_large_one_has_its_own_bound() -> None:
    a, b = rw.tensor("a", (2,)), rw.tensor("b", (2,))
    value, error = checked(rw.kernel(a * b), np.array([1e6, 1e-6], np.float32), np.array([3.0, 3.0], np.float32))
    wrong = value.copy()
    wrong[1] *= np.float32(1.001)
    assert error[1] < 1e-11
    assert mismatch(argument(dtypes.float32, 2), wrong, value, error) is not None


def test_a_sum_that_lost_a_term_is_seen() -> None:
    data = np.random.default_rng(1).uniform(-2, 2, 2000).astype(np.float32)
    value, error = checked(rw.kernel(rw.tensor("a", (2000,)).sum()), data)
    without = value - data[np.argmax(np.abs(data))]
    assert mismatch(argument(dtypes.float32, 1), without, value, error) is not None


def test_what_cancels_may_be_off_by_what_was_cancelled() -> None:
    a = rw.tensor("a", (1,))
    value, error = checked(rw.kernel((a * 3.0 + 1.0) - a * 3.0), np.array([1e6], np.float32))
    assert abs(float(value[0]) - 1.0) <= error[0] < 2.0


def test_an_integer_cast_from_a_computed_float_may_differ_only_near_a_step() -> None:
    a = rw.tensor("a", (2,))
    kernel = rw.kernel((a * (1 / 3)).cast("int32"))
    value, error = checked(kernel, np.array([9.0, 10.0], np.float32))
    assert error.tolist() == [1.0, 0.0]
    assert value[1] == 3


def test_a_comparison_is_uncertain_only_where_it_is_close() -> None:
    a, b = rw.tensor("a", (3,)), rw.tensor("b", (3,))
    kernel = rw.kernel(rw.where(a / b < 0.1, 1.0, 5.0))
    value, error = checked(kernel, np.array([1, 2, 0], np.float32), np.full(3, 10, np.float32))
    assert error.tolist() == [4.0, 0.0, 0.0]
    assert value.tolist()[1:] == [5.0, 1.0]


def test_a_quotient_by_what_may_be_zero_is_unknown() -> None:
    x = np.array([1.0])
    result, errors = np.array([1e9], np.float32), (None, np.array([1.0]))
    operands = (x.astype(np.float32), np.array([1e-9], np.float32))
    error = elementwise_error(ops.DIV, dtypes.float32, dtypes.float32, operands, errors, result)
    assert error is not None
    assert np.isinf(error).all()
    assert agrees(dtypes.float32, np.array([math.nan], np.float32), result, error).all()


def test_integers_and_logic_are_exact() -> None:
    x = np.array([3], np.int32)
    assert elementwise_error(ops.ADD, dtypes.int32, dtypes.int32, (x, x), (None, None), x + x) is None
    assert reduction_error(ops.ADD, dtypes.int32, x, None, (0,), x) is None


@pytest.mark.parametrize(("op", "other", "uncertain"), [(ops.AND, False, False), (ops.AND, True, True),
                                                        (ops.OR, True, False), (ops.OR, False, True)])  # fmt: skip
def test_a_known_operand_that_decides_ends_the_doubt(op: ops.Op, other: bool, uncertain: bool) -> None:
    operands = (np.array([True]), np.array([other]))
    result = np.array([False])
    error = elementwise_error(op, dtypes.bool_, dtypes.bool_, operands, (np.array([1.0]), None), result)
    assert error is not None
    assert bool(error[0] > 0) is uncertain


# --- wide enough -----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.sampled_from(["spread", "positive", "cancelling"]))
def test_sums_in_any_order_stay_within_the_bound(seed: int, count: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    data = random.normal(size=count).astype(np.float32)
    if kind == "positive":
        data = np.abs(data)
    elif kind == "spread":
        data *= np.exp2(random.integers(-20, 20, count)).astype(np.float32)
    value, error = checked(rw.kernel(rw.tensor("a", (count,)).sum()), data)
    for order in (np.arange(count), random.permutation(count), np.argsort(data)):
        total = np.float32(0)
        for term in data[order]:
            total = np.float32(total + term)
        assert mismatch(argument(dtypes.float32, 1), total.reshape(1), value, error) is None


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_a_chain_in_single_precision_stays_within_the_bound(seed: int) -> None:
    data = np.random.default_rng(seed).uniform(-3, 3, 64).astype(np.float32)
    a = rw.tensor("a", (64,))
    kernel = rw.kernel(rw.sqrt(rw.exp2(a * 1.7) + a * a) / (rw.sin(a) * 0.5 + 1.5))
    value, error = checked(kernel, data)
    single = np.float32
    got = np.sqrt(np.exp2(data * single(1.7)) + data * data) / (np.sin(data) * single(0.5) + single(1.5))
    assert mismatch(argument(dtypes.float32, 64), got.astype(single), value, error) is None


def test_evaluation_with_errors_gives_the_same_values() -> None:
    kernel = rw.kernel(rw.exp(rw.tensor("a", (8, 8))).sum(1))
    buffers = [np.zeros(8, np.float32), np.linspace(-1, 1, 64, dtype=np.float32)]
    ((value, _),) = evaluate_with_errors(kernel, buffers)
    assert np.array_equal(value, evaluate_kernel(kernel, buffers)[0])
