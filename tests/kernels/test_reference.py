"""The reference of kernels against plain Python, and its comparison against known right and wrong results."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rulewright.engine import dtypes, ops
from rulewright.engine import evaluate as ev
from rulewright.engine.arrays import numpy_dtype, to_bfloat16
from rulewright.engine.dtypes import DType
from rulewright.engine.errors import KernelError
from rulewright.engine.ops import Op
from rulewright.kernels.kernel import Const, Elementwise, Kernel, Load, Node, Reduce, Store
from rulewright.kernels.reference import (
    buffer_sizes,
    default_variables,
    evaluate_kernel,
    iteration_points,
    make_buffers,
)
from rulewright.kernels.sizes import Dim, var
from rulewright.kernels.view import View, contiguous

Array = Any
INTS = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.uint32,
    dtypes.uint64,
)


def pointwise(op: Op, source: DType, result: DType, count: int, length: int, asked: DType | None = None) -> Kernel:
    """`op` on `count` buffers of `length` elements."""
    row = (contiguous((length,)),)
    loads: list[Node] = [Load(slot + 1, source, row) for slot in range(count)]
    return Kernel((*loads, Elementwise(op, tuple(range(count)), asked), Store(0, result, row, count)))


def applied(op: Op, source: DType, result: DType, *operands: list[Any], asked: DType | None = None) -> list[Any]:
    length = len(operands[0])
    kernel = pointwise(op, source, result, len(operands), length, asked)
    buffers = [np.zeros(length, numpy_dtype(result)), *(np.array(o, numpy_dtype(source)) for o in operands)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (got,) = evaluate_kernel(kernel, buffers)
    values: list[Any] = got.tolist()
    return values


def reduced(op: Op, values: Array, dtype: DType) -> Any:
    rows, columns = values.shape
    kernel = Kernel(
        (
            Load(1, dtype, (contiguous((rows, columns)),)),
            Reduce(op, 0, (1,)),
            Store(0, dtype, (contiguous((rows, 1)),), 1),
        )
    )
    (got,) = evaluate_kernel(kernel, [np.zeros(rows, values.dtype), values.reshape(-1)])
    return got


# --- operators -------------------------------------------------------------------------------------------------------

INT_OPS = (ops.ADD, ops.SUB, ops.MUL, ops.MAX, ops.MIN, ops.TRUNCDIV, ops.TRUNCMOD, ops.FLOORDIV, ops.FLOORMOD,
           ops.AND, ops.OR, ops.XOR, ops.SHL, ops.SHR, ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)  # fmt: skip


@given(st.data(), st.sampled_from(INTS), st.sampled_from(INT_OPS))
def test_integer_operators_are_exact_and_wrap(data: st.DataObject, dtype: DType, op: Op) -> None:
    low, high = int(dtype.lowest), int(dtype.highest)
    numbers = st.integers(low, high) | st.sampled_from([low, high, 1, 2, 7])
    a = data.draw(st.lists(numbers, min_size=1, max_size=6))
    shifts = st.integers(0, dtype.bits - 1)
    b = data.draw(
        st.lists(shifts if op in (ops.SHL, ops.SHR) else numbers.filter(bool), min_size=len(a), max_size=len(a))
    )
    result = dtypes.bool_ if op.negated else dtype
    assert op.evaluate is not None
    wanted = [
        result.canonical(value) for x, y in zip(a, b, strict=True) if (value := op.evaluate(dtype, x, y)) is not None
    ]
    assert applied(op, dtype, result, a, b) == wanted


@pytest.mark.parametrize("op", [ops.ADD, ops.MUL, ops.MAX, ops.MIN, ops.AND, ops.OR, ops.XOR, ops.LT, ops.EQ])
def test_bool_operators_are_logical(op: Op) -> None:
    a, b = [False, False, True, True], [False, True, False, True]
    assert op.evaluate is not None
    wanted = [bool(op.evaluate(dtypes.bool_, x, y)) for x, y in zip(a, b, strict=True)]
    assert applied(op, dtypes.bool_, dtypes.bool_, a, b) == wanted


@given(st.sampled_from([ops.ADD, ops.SUB, ops.MUL, ops.DIV]), st.floats(width=32), st.floats(width=32))
def test_float_operators_round_once(op: Op, a: float, b: float) -> None:
    (got,) = applied(op, dtypes.float32, dtypes.float32, [a], [b])
    with np.errstate(all="ignore"):
        function = {ops.ADD: np.add, ops.SUB: np.subtract, ops.MUL: np.multiply, ops.DIV: np.divide}[op]
        wanted = float(function(np.float32(a), np.float32(b)))
    assert ev.same_value(got, wanted)


@pytest.mark.parametrize("op", [ops.EXP2, ops.LOG2, ops.SIN, ops.SQRT, ops.RECIP])
def test_functions_are_the_exact_ones_rounded_at_the_edges_too(op: Op) -> None:
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 3.25, 100.0, -150.0, 200.0, math.inf, -math.inf, math.nan]
    assert op.evaluate is not None
    wanted = [dtypes.float32.canonical(value) for x in numbers if (value := op.evaluate(dtypes.float32, x)) is not None]
    assert all(map(ev.same_value, applied(op, dtypes.float32, dtypes.float32, numbers), wanted))


@pytest.mark.parametrize("op", [ops.MAX, ops.MIN])
def test_a_nan_operand_gives_nan(op: Op) -> None:
    got = applied(op, dtypes.float32, dtypes.float32, [math.nan, 1.0, 2.0], [1.0, math.nan, 1.0])
    assert [math.isnan(value) for value in got] == [True, True, False]


def test_each_float16_node_rounds() -> None:
    row = (contiguous((1,)),)
    half = dtypes.float16
    nodes: tuple[Node, ...] = (Load(1, half, row), Const(1.0, half, row), Elementwise(ops.ADD, (0, 1)))
    kernel = Kernel((*nodes, Elementwise(ops.SUB, (2, 0)), Store(0, half, row, 3)))
    (got,) = evaluate_kernel(kernel, [np.zeros(1, np.float16), np.array([2048], np.float16)])
    assert got.tolist() == [0.0]  # 2049 is no float16: it rounds to 2048 before the subtraction


def test_bfloat16_is_the_upper_half_of_a_float32() -> None:
    one_and_a_bit, two = 0x3F81, 0x4000
    assert applied(ops.MUL, dtypes.bfloat16, dtypes.bfloat16, [one_and_a_bit], [two]) == [0x4001]
    assert to_bfloat16(np.array([1.0, 257.0, 259.0, math.inf, -0.0], np.float32)).tolist() == [
        0x3F80, 0x4380, 0x4382, 0x7F80, 0x8000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "values", "to", "wanted"),
    [
        (dtypes.int32, [300, -1], dtypes.uint8, [44, 255]),
        (dtypes.float32, [2.7, -2.7], dtypes.int32, [2, -2]),
        (dtypes.float32, [0.0, -0.0, 0.25, math.nan], dtypes.bool_, [False, False, True, True]),
        (dtypes.bool_, [True, False], dtypes.float16, [1.0, 0.0]),
        (dtypes.int32, [16777217], dtypes.float32, [16777216.0]),
        (dtypes.float32, [65519.0, 65520.0], dtypes.float16, [65504.0, math.inf]),
    ],
)
def test_casts(source: DType, values: list[Any], to: DType, wanted: list[Any]) -> None:
    assert applied(ops.CAST, source, to, values, asked=to) == wanted


def test_casts_out_of_range_do_not_warn() -> None:
    assert len(applied(ops.CAST, dtypes.float32, dtypes.int8, [math.nan, math.inf, 1e30], asked=dtypes.int8)) == 3


def test_bitcasts_keep_the_bits() -> None:
    assert applied(ops.BITCAST, dtypes.float32, dtypes.uint32, [1.0, -0.0], asked=dtypes.uint32) == [
        0x3F800000,
        0x80000000,
    ]
    assert applied(ops.BITCAST, dtypes.uint16, dtypes.bfloat16, [0x3F81], asked=dtypes.bfloat16) == [0x3F81]


# --- reductions ------------------------------------------------------------------------------------------------------


def test_float_sums_are_wide_and_round_once() -> None:
    values = np.array([[1.0] + [2.0**-24] * 4], np.float32)
    assert reduced(ops.ADD, values, dtypes.float32).tolist() == [1.0 + 2.0**-22]
    assert reduced(ops.ADD, np.full((1, 5000), 1.0, np.float16), dtypes.float16).tolist() == [5000.0]


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_reductions_wrap_and_start_at_the_identity(dtype: DType) -> None:
    low, high = int(dtype.lowest), int(dtype.highest)
    values = np.array([[high, 1, 1], [low, low, low], [high, high, high]], numpy_dtype(dtype))
    exact = [[int(x) for x in row] for row in values]
    assert reduced(ops.ADD, values, dtype).tolist() == [dtype.canonical(sum(row)) for row in exact]
    assert reduced(ops.MUL, values, dtype).tolist() == [dtype.canonical(math.prod(row)) for row in exact]
    assert reduced(ops.MAX, values, dtype).tolist() == [max(row) for row in exact]
    assert reduced(ops.MIN, values, dtype).tolist() == [min(row) for row in exact]


def test_float_maxima_propagate_nan_and_start_below_everything() -> None:
    values = np.array([[-math.inf, -math.inf], [math.nan, 1.0]], np.float32)
    top = reduced(ops.MAX, values, dtypes.float32)
    assert top[0] == -math.inf
    assert math.isnan(top[1])


def test_bool_sums_are_or_and_products_and() -> None:
    values = np.array([[False, True], [False, False], [True, True]])
    assert reduced(ops.ADD, values, dtypes.bool_).tolist() == [True, False, True]
    assert reduced(ops.MUL, values, dtypes.bool_).tolist() == [False, False, True]


# --- memory ----------------------------------------------------------------------------------------------------------


def test_what_no_store_reaches_keeps_its_value_and_the_inputs_stay() -> None:
    odd = View((3,), (2,), 1, ((0, 2),))
    kernel = Kernel((Load(0, dtypes.int32, (contiguous((3,)),)), Store(0, dtypes.int32, (odd,), 0)))
    before = np.array([10, 20, 30, 40, 50, 60], np.int32)
    (got,) = evaluate_kernel(kernel, [before])
    assert got.tolist() == [10, 10, 30, 20, 50, 60]  # loads see what was there before the kernel
    assert before.tolist() == [10, 20, 30, 40, 50, 60]


def test_a_masked_constant_is_zero_outside() -> None:
    padded = View((4,), (0,), 0, ((1, 3),))
    kernel = Kernel((Const(7, dtypes.int32, (padded,)), Store(0, dtypes.int32, (contiguous((4,)),), 0)))
    assert evaluate_kernel(kernel, [np.full(4, -1, np.int32)])[0].tolist() == [0, 7, 7, 0]


def test_images_compute_in_float32() -> None:
    row, image = (contiguous((8,)),), (1, 2)
    nodes: tuple[Node, ...] = (Load(1, dtypes.float16, row, image), Const(2.0**-20, dtypes.float32, row))
    kernel = Kernel(
        (*nodes, Elementwise(ops.ADD, (0, 1)), Elementwise(ops.SUB, (2, 0)), Store(0, dtypes.float16, row, 3, image))
    )
    ones = np.ones(8, np.float16)
    assert evaluate_kernel(kernel, [np.zeros(8, np.float16), ones])[0].tolist() == [2.0**-20] * 8


def symbolic() -> Kernel:
    n = var("n", 2, 9)
    shape: tuple[Dim, ...] = (n, 3)
    nodes: tuple[Node, ...] = (
        Load(1, dtypes.int32, (contiguous(shape),)),
        Const(n, dtypes.int32, (View(shape, (0, 0)),)),
    )
    return Kernel((*nodes, Elementwise(ops.ADD, (0, 1)), Store(0, dtypes.int32, (contiguous(shape),), 2)))


def test_symbolic_sizes_are_bound() -> None:
    kernel = symbolic()
    assert default_variables(kernel) == {"n": 6}
    assert iteration_points(kernel, {"n": 4}) == 12
    assert buffer_sizes(kernel, {"n": 4}) == [12, 12]
    buffers = make_buffers(kernel, {"n": 4})
    (got,) = evaluate_kernel(kernel, buffers, {"n": 4})
    assert got.tolist() == [int(x) + 4 for x in buffers[1].tolist()]
    with pytest.raises(KernelError, match="variable n has no value"):
        evaluate_kernel(kernel, buffers)
    with pytest.raises(KernelError, match="n = 99 is outside its bounds"):
        evaluate_kernel(kernel, buffers, {"n": 99})


@pytest.mark.parametrize("dtype", dtypes.DATA_TYPES, ids=str)
def test_made_buffers_are_reproducible_and_of_the_buffers_type(dtype: DType) -> None:
    kernel = Kernel((Load(1, dtype, (contiguous((50,)),)), Store(0, dtype, (contiguous((50,)),), 0)))
    first, again, other = (make_buffers(kernel, {}, seed) for seed in (3, 3, 4))
    assert [buffer.dtype for buffer in first] == [numpy_dtype(dtype)] * 2
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[1], other[1])
    assert not np.array_equal(first[0], first[1])
