"""The exact value of an expression: the reference that folding, facts and rule checks are tested against.

A walk with an explicit stack, so that deep expressions work. What an operator means stands with the operator
(`Op.evaluate`); this file only knows which operands are needed, and lanes.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import evaluate as ev
from . import ops
from .dtypes import DType, Scalar
from .errors import GraphError
from .ops import Op
from .uop import UOp

Value = Scalar | None
Lanes = tuple[Value, ...]
"""One value a lane, None where it is undefined; a scalar has one lane."""


def evaluate(node: UOp, values: Mapping[UOp, Scalar | Lanes]) -> Value | Lanes:
    """The value of `node`, given those of the nodes in `values` (variables, loop variables, loads, …).

    None where it is undefined; of a vector the tuple of its lanes. A scalar `where` evaluates the side that it takes
    and no other; every other operator is undefined where an operand is. Raises GraphError for a node that has no value
    of its own and is not in `values`.
    """
    known: dict[UOp, Lanes] = {n: v if isinstance(v, tuple) else (v,) for n, v in values.items()}
    stack = [node]
    while stack:
        top = stack[-1]
        missing = [] if top in known else _missing(top, known)
        if missing:
            stack.extend(missing)
            continue
        if top not in known:
            known[top] = _lanes(top, known)
        stack.pop()
    result = known[node]
    return result if node.dtype.lanes > 1 else result[0]


def _missing(node: UOp, known: Mapping[UOp, Lanes]) -> list[UOp]:
    """The operands whose values are still needed."""
    if not node.op.elementwise and node.op not in _OF_THEIR_OWN:
        raise GraphError(f"{node.op.name} of type {node.dtype} has no value of its own: give one in `values`")
    needed = node.src
    if node.op is ops.WHERE and node.dtype.lanes == 1:
        condition = node.src[0]
        needed = (condition, _taken(node, known[condition][0])) if condition in known else (condition,)
    return [operand for operand in needed if operand not in known]


_OF_THEIR_OWN = frozenset({ops.CONST, ops.VECTORIZE, ops.GEP, ops.FOLD_LANES, ops.ASSUME})


def _taken(node: UOp, condition: Value) -> UOp:
    """The operand that a scalar `where` takes; the condition itself if that is undefined."""
    return node.src[0] if condition is None else node.src[1] if condition else node.src[2]


def _lanes(node: UOp, known: Mapping[UOp, Lanes]) -> Lanes:
    """The value of a node whose needed operands are known."""
    op, lanes = node.op, node.dtype.lanes
    if op is ops.CONST:
        assert isinstance(node.arg, bool | int | float)
        return (node.arg,) * lanes
    if op is ops.WHERE and lanes == 1:
        return known[_taken(node, known[node.src[0]][0])]
    if op is ops.ASSUME:
        condition, value = node.src
        return known[value] if known[condition][0] else (None,) * lanes
    if op is ops.VECTORIZE:
        return tuple(known[lane][0] for lane in node.src)
    if op is ops.GEP:
        assert isinstance(node.arg, int)
        return (known[node.src[0]][node.arg],)
    if op is ops.FOLD_LANES:
        assert isinstance(node.arg, Op)
        return _folded(node.arg, node.dtype, known[node.src[0]])
    source, target = node.src[-1].dtype.scalar, node.dtype.scalar
    operands = zip(*[known[s] for s in node.src], strict=True)
    return tuple(apply(op, source, target, *lane) for lane in operands)


def apply(op: Op, source: DType, target: DType, *operands: Value) -> Value:
    """One elementwise operator on scalars of type `source` (`where`: of its branches), as a value of `target`."""
    if op is ops.WHERE:
        condition, a, b = operands
        return None if condition is None else a if condition else b
    if None in operands:
        return None
    if op is ops.CAST or op is ops.BITCAST:
        (value,) = operands
        assert value is not None
        return ev.cast(source, value, target) if op is ops.CAST else ev.bitcast(source, value, target)
    assert op.evaluate is not None
    exact = op.evaluate(source, *operands)
    return None if exact is None else target.canonical(exact)


def _folded(reducer: Op, dtype: DType, lanes: Lanes) -> Lanes:
    width, scalar = dtype.lanes, dtype.scalar
    result = lanes[:width]
    for start in range(width, len(lanes), width):
        step = zip(result, lanes[start : start + width], strict=True)
        result = tuple(apply(reducer, scalar, scalar, a, b) for a, b in step)
    return result
