"""Graphs as text: an expression in the rule language's own notation, or a listing of one node a line."""

from __future__ import annotations

from . import ops
from .dtypes import DType, Scalar, bool_, float32, index
from .ops import BufferArg, Op, RangeArg, SpecialArg, VarArg
from .uop import UOp, walk

UNARY = 11  # the precedence of a prefix operator; those of infix operators stand in `ops`
ATOM = 12

SHARED_TYPE = frozenset(op for op in ops.ELEMENTWISE if op not in (ops.WHERE, ops.CAST, ops.BITCAST))
"""Operators whose operands have one type, so that one operand tells the type of a literal beside it."""

_Item = str | tuple[UOp, int, bool]
"""What is still to be printed: text, or a node with the precedence that needs no parentheses, and whether a literal
there needs to say its type."""


def expression(node: UOp, limit: int = 500) -> str:
    """The node as a rule file would write it, with the fewest parentheses; `parse_expression` reads it back.

    At most `limit` nodes are printed, counted as often as they occur; then the text ends with `…` and cannot be read
    back. A literal says its type, as in `int32(5)`, only where nothing beside it does.
    """
    pieces: list[str] = []
    stack: list[_Item] = [(node, 0, True)]
    printed = 0
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif printed >= limit:
            pieces.append("…")
            break
        else:
            printed += 1
            stack += reversed(_spelled(*item))
    return "".join(pieces)


def _spelled(node: UOp, precedence: int, alone: bool) -> list[_Item]:
    """The text of one node with its operands still to be printed."""
    op = node.op
    if op is ops.CONST:
        return [_constant(node, alone)]
    name = _LEAVES.get(op)
    if name is not None:
        return [f"{name}{_number(node)}"]
    if op is ops.VAR:
        return [node.arg.name if isinstance(node.arg, VarArg) else str(node.arg)]
    if op is ops.SPECIAL:
        assert isinstance(node.arg, SpecialArg)
        return [f"{node.arg.kind.value}_{node.arg.dim}"]
    if op.symbol is not None:
        return _infix(node, precedence)
    if op in _PREFIX and node.src[0].op is not ops.CONST:
        inside: list[_Item] = [_PREFIX[op], (node.src[0], UNARY, True)]
        return ["(", *inside, ")"] if precedence > UNARY else inside
    if op is ops.VECTORIZE and len(node.src) > 1:
        return ["vec[", *_operands(node), "]"]
    return [f"{op.name}{_brackets(node)}(", *_operands(node), ")"]


_LEAVES = {ops.BUFFER: "buffer_", ops.LOCAL: "shared_", ops.RANGE: "r"}
_PREFIX = {ops.NEG: "-", ops.NOT: "~"}


def _number(node: UOp) -> int:
    if isinstance(node.arg, RangeArg):
        return node.arg.axis
    assert isinstance(node.arg, BufferArg)
    return node.arg.slot


def _infix(node: UOp, precedence: int) -> list[_Item]:
    """Operators lean to the left; comparisons do not chain."""
    op = node.op
    left, right = node.src
    first = op.precedence + (op.negated is not None)
    says = _says_types(node)
    inside: list[_Item] = [(left, first, says[0]), f" {op.symbol} ", (right, op.precedence + 1, says[1])]
    return ["(", *inside, ")"] if precedence > op.precedence else inside


def _operands(node: UOp) -> list[_Item]:
    items: list[_Item] = []
    for operand, says in zip(node.src, _says_types(node), strict=True):
        items += [", ", (operand, 0, says)]
    return items[1:]


def _says_types(node: UOp) -> list[bool]:
    """For each operand whether a literal there must say its type, since no operand beside it has one."""
    op, src = node.op, node.src
    if op in SHARED_TYPE or op in (ops.PHI, ops.VECTORIZE):
        return _alone(src)
    if op is ops.WHERE:
        return [False, *_alone(src[1:])]
    if op in (ops.LOAD, ops.STORE):
        return [position < 2 or operand.dtype is not _stored(node, position) for position, operand in enumerate(src)]
    return [True] * len(src)


def _stored(node: UOp, position: int) -> DType:
    """The type that a literal takes in a memory access: the element's, for a gate bool."""
    if position == (2 if node.op is ops.LOAD else 3):
        return bool_
    element = node.src[0].dtype.element
    assert element is not None
    return node.dtype if node.op is ops.LOAD else element.vec(node.src[1].dtype.lanes)


def _alone(group: tuple[UOp, ...]) -> list[bool]:
    """Of operands with one type: the first literal says it if all are literals."""
    if any(operand.op is not ops.CONST for operand in group):
        return [False] * len(group)
    return [True, *([False] * (len(group) - 1))]


def _brackets(node: UOp) -> str:
    op, dtype = node.op, node.dtype
    if op in (ops.CAST, ops.BITCAST):
        return f"[{dtype.scalar}]"
    if op is ops.LOAD:
        return f"[{dtype.lanes}]" if dtype.lanes != node.src[1].dtype.lanes else ""
    if op is ops.FOLD_LANES:
        return f"[{node.arg}, {dtype.lanes}]"
    if isinstance(node.arg, Op | int):
        return f"[{node.arg}]"
    return "" if node.arg is None else "[…]"


# --- literals --------------------------------------------------------------------------------------------------------


def _constant(node: UOp, alone: bool) -> str:
    assert isinstance(node.arg, bool | int | float)
    text = literal(node.arg)
    return f"{node.dtype}({text})" if alone and node.dtype is not _own_type(node.arg) else text


def _own_type(value: Scalar) -> DType:
    """The type of a literal that stands alone."""
    if isinstance(value, bool):
        return bool_
    return float32 if isinstance(value, float) else index


def literal(value: Scalar) -> str:
    """A constant's value as rules write it: `true`, `-3`, `1.5`, `1e-07`, `inf`, `nan`."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


# --- listings --------------------------------------------------------------------------------------------------------


def listing(root: UOp) -> str:
    """Every node below `root`, one a line, operands before users: number, type, operator, operands' numbers, argument."""
    place: dict[UOp, int] = {}
    rows = []
    for node in walk(root):
        place[node] = len(place)
        operands = ", ".join(f"%{place[operand]}" for operand in node.src)
        rows.append((f"%{place[node]}", str(node.dtype), f"{node.op.name}({operands}){_argument(node, place)}"))
    width = max(len(name) for name, _, _ in rows)
    types = max(len(dtype) for _, dtype, _ in rows)
    return "\n".join(f"{name:>{width}}: {dtype:<{types}}  {text}" for name, dtype, text in rows)


def _argument(node: UOp, place: dict[UOp, int]) -> str:
    """What an operator has beside its operands, for people."""
    match node.arg:
        case None:
            return ""
        case VarArg(name, low, high):
            return f" {name} in {low}..{high + 1}"
        case BufferArg(slot, size):
            return f" #{slot}" if size is None else f" #{slot} of {size}"
        case RangeArg(axis, kind):
            return f" r{axis} {kind.value}"
        case SpecialArg(kind, dim):
            return f" {kind.value}_{dim}"
        case UOp():
            return f" for %{place[node.arg]}" if node.arg in place else ""
        case bool() | int() | float():
            return f" {literal(node.arg)}"
        case _:
            return f" {node.arg}"
