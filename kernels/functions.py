"""Elementwise functions of tensors, built from the operators."""

from __future__ import annotations

import math

from ..engine import dtypes, ops
from ..engine.errors import KernelError
from .tensor import Operand, Tensor, apply, where


def _float(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        raise KernelError(f"this function takes a tensor, got {x!r}; make inputs with tensor(name, shape, dtype)")
    if x.dtype.is_float:
        return x
    return x.cast(dtypes.float64 if x.dtype.bits == 64 else dtypes.float32)


def exp2(x: Tensor) -> Tensor:
    return apply(ops.EXP2, _float(x))


def exp(x: Tensor) -> Tensor:
    return exp2(_float(x) * (1.0 / math.log(2.0)))


def log2(x: Tensor) -> Tensor:
    return apply(ops.LOG2, _float(x))


def log(x: Tensor) -> Tensor:
    return log2(x) * math.log(2.0)


def sin(x: Tensor) -> Tensor:
    return apply(ops.SIN, _float(x))


def cos(x: Tensor) -> Tensor:
    return sin(_float(x) + math.pi / 2)


def sqrt(x: Tensor) -> Tensor:
    return apply(ops.SQRT, _float(x))


def recip(x: Tensor) -> Tensor:
    """1 / x."""
    return apply(ops.RECIP, _float(x))


def maximum(a: Operand, b: Operand) -> Tensor:
    """The larger one; NaN if either is."""
    return apply(ops.MAX, a, b)


def minimum(a: Operand, b: Operand) -> Tensor:
    """The smaller one; NaN if either is."""
    return apply(ops.MIN, a, b)


def abs_(x: Tensor) -> Tensor:
    """The size without the sign; bools and unsigned integers have none."""
    return maximum(x, -x) if x.dtype.is_float or x.dtype.kind == "sint" else x


def relu(x: Tensor) -> Tensor:
    return maximum(x, 0)


def sigmoid(x: Tensor) -> Tensor:
    return recip(exp(-_float(x)) + 1.0)


def tanh(x: Tensor) -> Tensor:
    return sigmoid(x * 2.0) * 2.0 - 1.0


def floor(x: Tensor) -> Tensor:
    return apply(ops.FLOOR, _float(x))


def ceil(x: Tensor) -> Tensor:
    return apply(ops.CEIL, _float(x))


def round_(x: Tensor) -> Tensor:
    """To the nearest whole number, ties to even."""
    return apply(ops.ROUND, _float(x))


__all__ = [
    "abs_", "ceil", "cos", "exp", "exp2", "floor", "log", "log2", "maximum", "minimum", "recip", "relu", "round_",
    "sigmoid", "sin", "sqrt", "tanh", "where",
]  # fmt: skip
