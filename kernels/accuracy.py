"""How far a right result may be from the reference: a bound for every element, carried along operator by operator.

First-order running error analysis (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.3):
the error of a result is what the operator makes of its operands' errors, plus its own rounding. An error of None says
that the values are exact; of infinity, that nothing is known. The error of a bool is not zero where the value is
uncertain, since what was compared lies too close. Values beyond the finite ones carry no error: they must be met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engine import dtypes, ops
from ..engine.dtypes import DType
from ..engine.ops import Op

Values = npt.NDArray[Any]
Error = npt.NDArray[np.float64] | None

UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
"""Unit roundoff: half the distance from 1 to the next number."""

LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
"""The smallest number above 0."""

GREATEST = {"float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127, "float32": float(np.finfo(np.float32).max),
            "float64": float(np.finfo(np.float64).max)}  # fmt: skip
"""The largest finite number."""

FUNCTION_ULPS = 4.0
"""How far exp2, log2 and sin may be from the exact value, in units in the last place (semantics of the operators)."""

ARITHMETIC_ULPS = 1.0
"""The same for arithmetic: twice what rounding to nearest needs, for a product with a reciprocal, or a fused step."""

SUM_CONFIDENCE = 6.0
"""Roundings of n additions add up to about this times sqrt(n) units (N. J. Higham and T. Mary, A new approach to
probabilistic rounding error analysis, 2019), whatever their order; n at most."""


def elementwise_error(
    op: Op, source: DType, dtype: DType, operands: Sequence[Values], errors: Sequence[Error], result: Values
) -> Error:
    """The error of an operator's result. `source` is the type of its (last) operand, `dtype` that of the result."""
    if not (dtype.is_float and op in _ROUNDS) and all(error is None for error in errors):
        return None
    wide = [_wide(operand) for operand in operands]
    known = [np.zeros(()) if error is None else error for error in errors]
    carried = _carried(op, source, dtype, wide, known, operands)
    own = _rounding(op, dtype, result) if dtype.is_float else 0.0
    return _settled(np.asarray(carried + own), result)


def reduction_error(op: Op, dtype: DType, value: Values, error: Error, axes: tuple[int, ...], result: Values) -> Error:
    """The error of a reduction over `axes`, which keep size 1; its steps may come in any order."""
    if error is None and (not dtype.is_float or op in (ops.MAX, ops.MIN)):
        return None
    carried = np.broadcast_to(np.zeros(()) if error is None else error, value.shape)
    size = np.abs(_wide(value))
    if dtype is dtypes.bool_ or op in (ops.MAX, ops.MIN):
        return _settled(np.max(carried, axis=axes, keepdims=True, initial=0.0), result)
    count = math.prod(value.shape[axis] for axis in axes)
    steps = min(count, SUM_CONFIDENCE * math.sqrt(count)) * 2 * _unit_of_sums(dtype)
    if op is ops.ADD:
        total = np.sum(carried, axis=axes, keepdims=True) + steps * np.sum(size, axis=axes, keepdims=True)
    else:
        relative = np.sum(np.log1p(np.where(size > 0, carried / size, 0.0)), axis=axes, keepdims=True) + steps
        total = np.abs(_wide(result)) * np.expm1(relative)
        vanishing = np.any((size == 0) & (carried > 0), axis=axes, keepdims=True)
        total = np.where(vanishing, np.inf, total)
    own = _rounding(op, dtype, result) if dtype.is_float else 0.0
    return _settled(np.asarray(total + own), result)


def stored_error(dtype: DType, value: Values, error: Error) -> Error:
    """The error after a value is stored in a buffer of `dtype`, which may be narrower than the value's own type."""
    if not dtype.is_float or value.dtype == np.dtype(dtype.name if dtype is not dtypes.bfloat16 else np.float32):
        return error
    return _settled((0.0 if error is None else error) + _rounding(ops.CAST, dtype, value), value)


def agrees(dtype: DType, got: Values, expected: Values, error: Error) -> npt.NDArray[np.bool_]:
    """Where a result of type `dtype` is within its error; NaN equals NaN."""
    same = (got == expected) | ((got != got) & (expected != expected))
    if error is None:
        return np.asarray(same)
    if dtype is dtypes.bool_:
        return np.asarray(same | (error > 0))
    a, b = _wide(got), _wide(expected)
    near = np.abs(a - b) <= (error if dtype.is_float else np.floor(error))
    overflows = np.isinf(a) & np.isfinite(b) & (np.abs(b) + error >= GREATEST[dtype.name]) if dtype.is_float else False
    return np.asarray(same | near | np.isinf(error) | overflows)


# --- the operators ---------------------------------------------------------------------------------------------------

_ROUNDS = frozenset(
    {ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.RECIP, ops.MULACC, ops.CAST, ops.EXP2, ops.LOG2, ops.SIN, ops.SQRT}
)
"""Float operators whose result may be rounded; the others give one of their operands, or a number without a fraction."""


def _rounding(op: Op, dtype: DType, result: Values) -> Values:
    if op not in _ROUNDS:
        return np.zeros(())
    ulps = FUNCTION_ULPS if op in (ops.EXP2, ops.LOG2, ops.SIN) else ARITHMETIC_ULPS
    size = np.abs(_wide(result))
    return np.asarray(ulps * (2 * UNIT[dtype.name] * np.where(np.isfinite(size), size, 0.0) + LEAST[dtype.name]))


def _unit_of_sums(dtype: DType) -> float:
    """Sums of narrow floats are accumulated in float32; integers are exact."""
    return min(UNIT[dtype.name], UNIT["float32"]) if dtype.is_float else 0.0


def _carried(
    op: Op, source: DType, dtype: DType, x: Sequence[Values], e: Sequence[Values], operands: Sequence[Values]
) -> Values:
    """What the operands' errors become. `x` are the operands in double precision."""
    if op is ops.CAST:
        return _cast(source, dtype, x[0], e[0])
    if op is ops.WHERE:
        chosen = np.where(operands[0], e[1], e[2])
        return np.where(e[0] > 0, np.fmax(e[1], e[2]) + np.abs(x[1] - x[2]), chosen)
    if op.negated is not None:
        return np.where(np.abs(x[0] - x[1]) <= e[0] + e[1], _any(e), 0.0)
    if source is dtypes.bool_:
        return _logic(op, operands, e)
    rule = _ARITHMETIC.get(op)
    if rule is None or (op in _FLOAT_ONLY and not source.is_float):
        return np.where(_any(e) > 0, np.inf, 0.0)
    return np.asarray(rule(x, e))


def _any(errors: Sequence[Values]) -> Values:
    total: Values = np.zeros(())
    for error in errors:
        total = total + (error > 0)
    return total


def _cast(source: DType, dtype: DType, x: Values, e: Values) -> Values:
    if dtype is dtypes.bool_:
        return np.where(np.abs(x) <= e, e > 0, 0.0)
    if source.is_float and not dtype.is_float:
        return np.asarray(np.trunc(x + e) - np.trunc(x - e))
    if not dtype.is_float:
        fits = (x - e >= dtype.lowest) & (x + e <= dtype.highest)
        return np.where(fits | (e == 0), e, np.inf)
    return e


def _logic(op: Op, operands: Sequence[Values], e: Sequence[Values]) -> Values:
    """A known operand that decides makes the other's uncertainty harmless."""
    if len(e) == 1:
        return e[0]
    (a, b), (unsure, doubtful) = operands, (e[0] > 0, e[1] > 0)
    if op in (ops.AND, ops.MUL, ops.MIN):
        uncertain = (unsure & (b | doubtful)) | (doubtful & (a | unsure))
    elif op in (ops.OR, ops.ADD, ops.MAX):
        uncertain = (unsure & (~b | doubtful)) | (doubtful & (~a | unsure))
    else:
        uncertain = unsure | doubtful
    return np.where(uncertain, 1.0, 0.0)


def _product(x: Sequence[Values], e: Sequence[Values]) -> Values:
    return _times(np.abs(x[0]), e[1]) + _times(np.abs(x[1]), e[0]) + _times(e[0], e[1])


def _times(a: Values, b: Values) -> Values:
    """A product in which no error stays none, whatever it is multiplied by."""
    return np.where((a == 0) | (b == 0), 0.0, a * b)


def _quotient(x: Sequence[Values], e: Sequence[Values]) -> Values:
    room = np.abs(x[1]) - e[1]
    moved = (e[0] + _times(np.abs(x[0] / x[1]), e[1])) / room
    return np.where((e[0] == 0) & (e[1] == 0), 0.0, np.where(room > 0, moved, np.inf))


def _logarithm(x: Sequence[Values], e: Sequence[Values]) -> Values:
    room = x[0] - e[0]
    return np.where(e[0] == 0, 0.0, np.where(room > 0, e[0] / (room * math.log(2)), np.inf))


def _root(x: Sequence[Values], e: Sequence[Values]) -> Values:
    room = x[0] - e[0]
    return np.where(e[0] == 0, 0.0, np.where(room >= 0, np.sqrt(x[0] + e[0]) - np.sqrt(np.maximum(room, 0)), np.inf))


def _steps(function: Callable[..., Any]) -> Callable[[Sequence[Values], Sequence[Values]], Values]:
    """Of a step function: how far it moves over the operand's error."""
    return lambda x, e: np.asarray(function(x[0] + e[0]) - function(x[0] - e[0]))


_ARITHMETIC: dict[Op, Callable[[Sequence[Values], Sequence[Values]], Values]] = {
    ops.ADD: lambda x, e: e[0] + e[1],
    ops.SUB: lambda x, e: e[0] + e[1],
    ops.NEG: lambda x, e: e[0],
    ops.MAX: lambda x, e: np.maximum(e[0], e[1]),
    ops.MIN: lambda x, e: np.maximum(e[0], e[1]),
    ops.MUL: _product,
    ops.MULACC: lambda x, e: _product(x, e) + e[2],
    ops.DIV: _quotient,
    ops.RECIP: lambda x, e: _quotient([np.ones(()), x[0]], [np.zeros(()), e[0]]),
    ops.EXP2: lambda x, e: _times(np.exp2(x[0]), np.expm1(e[0] * math.log(2))),
    ops.LOG2: _logarithm,
    ops.SIN: lambda x, e: np.minimum(e[0], 2.0),
    ops.SQRT: _root,
    ops.FLOOR: _steps(np.floor),
    ops.CEIL: _steps(np.ceil),
    ops.TRUNC: _steps(np.trunc),
    ops.ROUND: _steps(np.rint),
}
"""From operands and their errors to the error of the exact result."""

_FLOAT_ONLY = frozenset({ops.DIV, ops.RECIP, ops.EXP2, ops.LOG2, ops.SIN, ops.SQRT})


def _wide(values: Values) -> Values:
    return values.astype(np.float64)


def _settled(error: Values, result: Values) -> npt.NDArray[np.float64]:
    """No error for what is not finite; infinite where the analysis has none."""
    finite = np.isfinite(_wide(result))
    return np.where(finite, np.where(np.isnan(error), np.inf, error), 0.0)
