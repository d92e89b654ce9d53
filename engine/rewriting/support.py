"""What the generated code of rules calls: the meaning of guards' functions and of `{…}` on values.

Unknown means no: a predicate returns True only for what the facts prove.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .. import differences, facts, ops
from .. import evaluate as ev
from ..dtypes import DType, Scalar, float_bits
from ..ops import Op, RangeArg
from ..uop import UOp, const, exact_const, infer, intern


class NoValue(Exception):
    """A formula has no value where it was asked; the rule does not fire."""


NO_VALUE = (NoValue, ZeroDivisionError, OverflowError, ValueError)
"""What the arithmetic of a rule may raise where it has no value."""

INT64_LIMIT = 1 << 63


def constant(dtype: DType, value: Scalar | None) -> UOp:
    """The constant that `{…}` stands for. Raises NoValue where there is none: undefined, or beyond int64 for an index."""
    if value is None:
        raise NoValue
    kind = dtype.kind
    if kind == "index" and value.__class__ is int and -INT64_LIMIT <= value < INT64_LIMIT:
        return exact_const(dtype, value)
    if kind != "float":
        if isinstance(value, float):
            if not math.isfinite(value):
                raise NoValue
            value = int(value)
        if kind == "index" and not -INT64_LIMIT <= value < INT64_LIMIT:
            raise NoValue
    return const(dtype, value)


def fold(op: Op, dtype: DType, *values: Scalar | None) -> Scalar:
    """The exact value of `op` on operands of type `dtype`, in the type of the result."""
    if None in values or op.evaluate is None:
        raise NoValue
    value = op.evaluate(dtype, *values)
    if value is None:
        raise NoValue
    if op.negated is not None or dtype.kind == "index" and value.__class__ is int:
        return value
    return dtype.canonical(value)


def folded(dtype: DType, op: Op, inner: DType, *values: Scalar) -> UOp:
    """`constant(dtype, fold(op, inner, *values))`, with a short way for indices."""
    if dtype.kind == "index" and dtype is inner and op.evaluate is not None:
        value = op.evaluate(dtype, *values)
        if value.__class__ is int and -INT64_LIMIT <= value < INT64_LIMIT:
            return exact_const(dtype, value)
    return constant(dtype, fold(op, inner, *values))


def convert(source: DType, value: Scalar, to: DType) -> Scalar:
    """The exact value of a cast."""
    result = ev.cast(source.scalar, value, to.scalar)
    if result is None:
        raise NoValue
    return result


def reinterpret(source: DType, value: Scalar, to: DType) -> Scalar:
    """The exact value of a bitcast."""
    result = ev.bitcast(source.scalar, value, to.scalar)
    if result is None:
        raise NoValue
    return result


def is_positive_zero(value: object) -> bool:
    """Whether a constant is the literal `0` of its type: +0.0, 0 or false."""
    return value == 0 and (not isinstance(value, float) or float_bits(value) == 0)


def is_negative_zero(value: object) -> bool:
    return isinstance(value, float) and value == 0 and float_bits(value) != 0


def build(op: Op, src: tuple[UOp, ...], dtype: DType | None = None, arg: object = None) -> UOp:
    """A node whose type is inferred and checked: for operators whose type the compiled rule does not know."""
    return intern(op, infer(op, src, dtype, arg), src, arg)


def vector(lanes: tuple[UOp, ...]) -> UOp:
    """The vector of scalar lanes; one lane is the scalar itself."""
    return lanes[0] if len(lanes) == 1 else intern(ops.VECTORIZE, lanes[0].dtype.vec(len(lanes)), lanes)


def lane(value: UOp, number: int) -> UOp:
    """Lane `number` of a vector: what stands there if the vector is built from lanes; a scalar is its own only lane."""
    if value.op is ops.VECTORIZE:
        return value.src[number]
    dtype = value.dtype
    return value if dtype.lanes == 1 else intern(ops.GEP, dtype.scalar, (value,), number)


def widened(value: UOp, over: UOp) -> UOp:
    dtype = value.dtype
    wide = dtype if dtype.kind == "void" else dtype.vec(dtype.lanes * extent(over))
    return intern(ops.WIDEN, wide, (value, over))


def split_offset(node: UOp) -> tuple[UOp | None, int]:
    """An index as a base and a constant offset; the base of a constant is None."""
    if node.op is ops.ADD and node.src[1].op is ops.CONST:
        offset = node.src[1].arg
        assert isinstance(offset, int)
        return node.src[0], offset
    if node.op is ops.CONST:
        assert isinstance(node.arg, int)
        return None, node.arg
    return node, 0


# --- functions of guards ---------------------------------------------------------------------------------------------


def low(node: UOp) -> int | float:
    return facts.interval(node)[0]


def high(node: UOp) -> int | float:
    return facts.interval(node)[1]


def inside(node: UOp, first: int | float, end: int | float) -> bool:
    """Whether every value lies in the half-open range."""
    lowest, highest = facts.interval(node)
    return bool(first <= lowest and highest < end)


def extent(node: UOp) -> int:
    """The number of steps of a range. Raises NoValue if it is symbolic."""
    if not node.src or node.src[0].op is not ops.CONST:
        raise NoValue
    end = node.src[0].arg
    assert isinstance(end, int)
    return end


def uses(node: UOp | tuple[UOp, ...], over: UOp | tuple[UOp, ...]) -> bool:
    """Whether the node, or one of them, varies with the range, or with one of them."""
    nodes = node if isinstance(node, tuple) else (node,)
    overs = over if isinstance(over, tuple) else (over,)
    mask = 0
    for one in overs:
        mask |= facts.ranges(one)
    return any(facts.ranges(one) & mask for one in nodes)


def varies(node: UOp) -> bool:
    """Whether the node varies with any range."""
    return facts.ranges(node) != 0


def kind(node: UOp) -> str:
    """The kind of a range or hardware index, as rules write it."""
    return node.arg.kind.value if isinstance(node.arg, RangeArg | ops.SpecialArg) else ""


def dtype(node: UOp) -> DType:
    return node.dtype.scalar


def width(node: UOp | tuple[UOp, ...]) -> int:
    """The lanes of a node; the number of nodes that a pack holds."""
    return len(node) if isinstance(node, tuple) else node.dtype.lanes


def bits(what: DType | UOp) -> int:
    return what.bits if isinstance(what, DType) else what.dtype.bits


def size(node: UOp) -> int:
    """How many elements a buffer has. Raises NoValue if that is symbolic."""
    if isinstance(node.arg, ops.BufferArg) and node.arg.size is not None:
        return node.arg.size
    raise NoValue


def image(node: UOp) -> int:
    """The width in texels of a buffer that is an image; 0 for another."""
    return node.arg.image[1] if isinstance(node.arg, ops.BufferArg) and node.arg.image else 0


def is_constant(node: UOp) -> bool:
    return node.op is ops.CONST


def modulus(node: UOp) -> int:
    return facts.congruence(node)[0]


def remainder(node: UOp) -> int:
    return facts.congruence(node)[1]


GUARD_FUNCTIONS: dict[str, Callable[..., object]] = {
    "min": low, "max": high, "divides": facts.divides, "aligned": lambda node, n: facts.divides(n, node),
    "uses": uses, "varies": varies, "extent": extent, "kind": kind, "dtype": dtype, "width": width, "bits": bits,
    "fits": facts.fits, "size": size, "image": image, "constant": is_constant, "less": differences.is_less,
    "at_most": differences.is_at_most, "factor": differences.factor, "ratio": differences.ratio,
    "cancels": differences.cancels, "modulus": modulus, "remainder": remainder, "gcd": math.gcd,
}  # fmt: skip
