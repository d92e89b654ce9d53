"""Is a graph well formed: the types of every node again, and what only the nodes around it can tell.

`make` refuses most mistakes, but compiled rules make nodes unchecked. The verifier finds what they broke and returns
all of it, not the first. Cycles need no check: a node exists only after its operands and never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import facts, ops
from .dtypes import float_bits
from .errors import GraphError
from .ops import AxisKind, BufferArg, Op, RangeArg, SpecialArg, VarArg
from .printing import expression
from .uop import UOp, infer, walk


class Problem(NamedTuple):
    """What is wrong with a node."""

    node: UOp
    message: str

    def __str__(self) -> str:
        return f"{self.node.op.name} {expression(self.node, 24)}: {self.message}"


def verify(root: UOp) -> list[Problem]:
    """Every problem of the graph under `root`, operands before users; an empty list if it is well formed."""
    nodes = list(walk(root))
    found = [Problem(node, message) for node in nodes for message in node_problems(node)]
    if found:
        return found  # what follows reads facts, which expect sound nodes
    return [*_names(nodes), *(Problem(node, message) for node in nodes for message in _scope(node))]


def check(root: UOp) -> None:
    """Raises GraphError with all problems of the graph."""
    report(verify(root), "the graph")


def report(problems: list[Problem], what: str) -> None:
    """Raises GraphError with all the problems, if there are any."""
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise GraphError(f"{what} is not well formed; the last rules or passes that ran broke it:{listed}")


# --- a node by itself and its operands --------------------------------------------------------------------------------


def node_problems(node: UOp) -> Iterator[str]:
    """What is wrong with a node whatever stands around it: arity, argument, operands, type."""
    op = node.op
    if op.arity is not None and len(node.src) != op.arity:
        yield f"takes {op.arity} operand{'s' * (op.arity != 1)}, got {len(node.src)}"
        return
    if op.arity is None and not node.src and op is not ops.SINK:
        yield "takes at least one operand"
        return
    wrong = _wrong_argument(node)
    if wrong:
        yield wrong
        return
    yield from _wrong_type(node)
    yield from _wrong_operands(node)


def _wrong_argument(node: UOp) -> str | None:
    wanted, fits = _ARGUMENTS.get(node.op, ("nothing", _is_nothing))
    return None if fits(node) else f"needs {wanted} as its argument, got {node.arg!r}"


def _is_nothing(node: UOp) -> bool:
    return node.arg is None


def _is_constant(node: UOp) -> bool:
    if not isinstance(node.arg, bool | int | float) or node.dtype.kind in ("void", "pointer"):
        return False
    value = node.dtype.canonical(node.arg)
    if isinstance(value, float) and isinstance(node.arg, float):
        return float_bits(value) == float_bits(node.arg)
    return type(value) is type(node.arg) and value == node.arg


def _is_reducer(node: UOp) -> bool:
    return node.arg in ops.REDUCERS


_ARGUMENTS: dict[Op, tuple[str, Callable[[UOp], bool]]] = {
    ops.CONST: ("a value of its type", _is_constant),
    ops.BUFFER: ("a BufferArg", lambda node: isinstance(node.arg, BufferArg)),
    ops.LOCAL: ("a BufferArg with a size", lambda node: isinstance(node.arg, BufferArg) and node.arg.size is not None),
    ops.VAR: ("a VarArg or a name", lambda node: isinstance(node.arg, VarArg | str)),
    ops.RANGE: ("a RangeArg", lambda node: isinstance(node.arg, RangeArg)),
    ops.SPECIAL: ("a SpecialArg", lambda node: isinstance(node.arg, SpecialArg) and node.arg.dim in (0, 1, 2)),
    ops.GEP: ("a lane's number", lambda node: isinstance(node.arg, int) and not isinstance(node.arg, bool)),
    ops.IF: ("nothing or a number", lambda node: node.arg is None or isinstance(node.arg, int)),
    ops.FOLD_LANES: ("a reducer", _is_reducer),
    ops.REDUCE: ("a reducer", _is_reducer),
    ops.GROUP_REDUCE: ("a reducer", _is_reducer),
    ops.DEFINE_ACC: ("its reduce node", lambda node: isinstance(node.arg, UOp) and node.arg.op is ops.REDUCE),
}


def _wrong_type(node: UOp) -> Iterator[str]:
    try:
        dtype = infer(node.op, node.src, node.dtype, node.arg)
    except GraphError as problem:
        yield str(problem)
        return
    if dtype is not node.dtype:
        yield f"has type {node.dtype}, but its operands make it {dtype}"
    elif node.op is ops.BUFFER and dtype.space != "global" or node.op is ops.LOCAL and dtype.space != "local":
        yield f"has type {dtype}, a pointer to another memory"


def _wrong_operands(node: UOp) -> Iterator[str]:
    """Operands that are no value, or must be a certain node."""
    for position, operand in enumerate(node.src):
        wanted = _wanted(node.op, position)
        if wanted is None:
            if node.op in (ops.WIDEN, ops.BARRIER) and operand.op in _EFFECTS:
                continue
            if operand.dtype.kind in ("void", "pointer"):
                yield f"operand {position} must be a value, got {operand.op.name} of type {operand.dtype}"
        elif operand.op not in wanted:
            names = " or ".join(op.name for op in wanted)
            yield f"operand {position} must be {names}, got {operand.op.name}"
    if node.op in _BINDERS and len(set(node.src[1:])) < len(node.src) - 1:
        yield "names a range twice"


def _wanted(op: Op, position: int) -> tuple[Op, ...] | None:
    """The operators that may stand at an operand's position; None: any value."""
    if op is ops.GROUP_REDUCE:
        return (ops.LOCAL,) if position == 1 else (ops.RANGE,) if position > 3 else None
    at_first, further = _OPERANDS.get(op, (None, None))
    return at_first if position == 0 else further


_POINTERS = (ops.BUFFER, ops.LOCAL, ops.AFTER)
_EFFECTS = (ops.STORE, ops.WIDEN, ops.SINK)
_BINDERS = frozenset({ops.REDUCE, ops.DEFINE_ACC})
_OPERANDS: dict[Op, tuple[tuple[Op, ...] | None, tuple[Op, ...] | None]] = {
    ops.LOAD: (_POINTERS, None), ops.STORE: (_POINTERS, None),
    ops.AFTER: (_POINTERS, (ops.BARRIER,)), ops.SINK: (_EFFECTS, _EFFECTS),
    ops.REDUCE: (None, (ops.RANGE,)), ops.DEFINE_ACC: (None, (ops.RANGE,)), ops.PHI: ((ops.DEFINE_ACC,), None),
    ops.ENDRANGE: ((ops.RANGE,), None), ops.ENDIF: ((ops.IF,), None),
}  # fmt: skip
"""Operators with operands that are not just values: what the first must be, and the others."""


# --- the graph as a whole ---------------------------------------------------------------------------------------------


def _names(nodes: list[UOp]) -> Iterator[Problem]:
    """Two different nodes that claim one name: an axis, a slot, a variable, a hardware index."""
    first: dict[tuple[str, object], UOp] = {}
    for node in nodes:
        name = _name(node)
        if name is not None and first.setdefault(name, node) is not node:
            other = first[name]
            yield Problem(node, f"a different {name[0]} has the same number or name: {_described(other)}")


def _name(node: UOp) -> tuple[str, object] | None:
    match node.arg:
        case RangeArg(axis=axis):
            return "range", axis
        case BufferArg(slot=slot):
            return node.op.name, slot
        case SpecialArg():
            return "hardware index", node.arg
        case VarArg(name=name):
            return "variable", name
    return None


def _described(node: UOp) -> str:
    end = f" up to {expression(node.src[0], 8)}" if node.src else ""
    return f"{node.arg}{end} of type {node.dtype}"


def _scope(node: UOp) -> Iterator[str]:
    """Ranges and effects that stand where they may not."""
    op = node.op
    if op in (ops.ENDRANGE, ops.IF, ops.ENDIF):
        yield "exists in the linear form only"
    elif op is ops.DEFINE_ACC and facts.ranges(node.src[0]) & _bits(node.src[1:]):
        yield "its start value varies in its own ranges"
    elif op is ops.WIDEN:
        if _kind(node.src[1]) not in (AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.PARTIAL):
            yield "operand 1 must be an upcast or unrolled range"
    elif op is ops.SINK:
        yield from _unbound(node)


def _unbound(sink: UOp) -> Iterator[str]:
    """Ranges that no reduction and no lane accounts for: the kernel would store once for each of their values."""
    left = 0
    for store in sink.src:
        left |= facts.ranges(store)
    for node in walk(sink) if left else ():
        kind = _kind(node)
        if kind is not None and kind is not AxisKind.LOOP and left & facts.axis_bit(node):
            yield f"a store varies in {expression(node)}, which is of kind {kind.value}; nothing reduces or widens it"


def _kind(node: UOp) -> AxisKind | None:
    return node.arg.kind if isinstance(node.arg, RangeArg) else None


def _bits(ranges: tuple[UOp, ...]) -> int:
    mask = 0
    for node in ranges:
        mask |= facts.axis_bit(node)
    return mask
