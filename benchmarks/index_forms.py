"""Index expressions as nested lists, apart from the engine: their cost, their values, and the way to a graph and back.

`["op", a, …]`, a name, a number, or true and false. The values are computed here with NumPy, independently of the
engine's own evaluation, so that one mistake cannot hide another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from rulewright.engine import dtypes, ops
from rulewright.engine.ops import VarArg
from rulewright.engine.uop import UOp, const, make, walk

Form = Any
"""A nested list, a name, a number or a truth value."""

Array = npt.NDArray[Any]

OPERATORS = {
    "add": ops.ADD, "sub": ops.SUB, "mul": ops.MUL, "floordiv": ops.FLOORDIV, "floormod": ops.FLOORMOD,
    "truncdiv": ops.TRUNCDIV, "truncmod": ops.TRUNCMOD, "min": ops.MIN, "max": ops.MAX, "lt": ops.LT, "le": ops.LE,
    "gt": ops.GT, "ge": ops.GE, "eq": ops.EQ, "ne": ops.NE, "and": ops.AND, "or": ops.OR, "not": ops.NOT,
    "where": ops.WHERE, "neg": ops.NEG,
}  # fmt: skip
LOGICAL = frozenset({"and", "or", "not"})
COSTS = {"floordiv": 10, "floormod": 10, "truncdiv": 10, "truncmod": 10, "mul": 3}


def cost(form: Form) -> int:
    """Division and remainder 10, product 3, every other operator 1, names and constants nothing; written out as a tree."""
    if not isinstance(form, list):
        return 0
    return COSTS.get(form[0], 1) + sum(map(cost, form[1:]))


# --- values ----------------------------------------------------------------------------------------------------------


def _divided(a: Array, b: Array, floor: bool, remainder: bool) -> Array:
    """Of a division by zero some number; `values` says where that is."""
    safe = np.where(b == 0, 1, b)
    quotient = a // safe
    if not floor:
        quotient = np.where((a % safe != 0) & ((a < 0) != (safe < 0)), quotient + 1, quotient)
    return a - quotient * safe if remainder else quotient


_MEANING: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not, "neg": np.negative,
    "floordiv": lambda a, b: _divided(a, b, True, False), "floormod": lambda a, b: _divided(a, b, True, True),
    "truncdiv": lambda a, b: _divided(a, b, False, False), "truncmod": lambda a, b: _divided(a, b, False, True),
}  # fmt: skip


def values(form: Form, points: Mapping[str, Array]) -> tuple[Array, Array]:
    """The values of a form at the points, and where they are defined: no divisor is 0 on the way that is taken."""
    if isinstance(form, str):
        return points[form], np.array(True)
    if not isinstance(form, list):
        return np.array(form), np.array(True)
    parts = [values(part, points) for part in form[1:]]
    if form[0] == "where":
        (condition, known), (a, a_defined), (b, b_defined) = parts
        chosen = condition.astype(bool)
        return np.where(chosen, a, b), known & np.where(chosen, a_defined, b_defined)
    defined = np.array(True)
    for _, also in parts:
        defined = defined & also
    if COSTS.get(form[0]) == 10:
        defined = defined & (parts[1][0] != 0)
    return _MEANING[form[0]](*(value for value, _ in parts)), defined


# --- graphs ----------------------------------------------------------------------------------------------------------


def truths(forms: Iterable[Form]) -> set[str]:
    """The names that stand where a truth value must."""
    found: set[str] = set()
    stack = [(form, False) for form in forms]
    while stack:
        form, logical = stack.pop()
        if isinstance(form, str) and logical:
            found.add(form)
        elif isinstance(form, list):
            inner = [form[0] in LOGICAL or form[0] == "where" and place == 0 for place in range(len(form) - 1)]
            stack.extend(zip(form[1:], inner, strict=True))
    return found


def variables(bounds: Mapping[str, tuple[int, int]], free: bool, truth: set[str]) -> dict[str, UOp]:
    """A variable for each name, with its bounds unless they are `free`; of type bool where it is in `truth`."""
    nodes = {}
    for name, (low, high) in bounds.items():
        if name in truth:
            nodes[name] = make(ops.VAR, dtype=dtypes.bool_, arg=name)
        else:
            nodes[name] = make(ops.VAR, dtype=dtypes.index, arg=name if free else VarArg(name, low, high))
    return nodes


def to_graph(form: Form, names: Mapping[str, UOp]) -> UOp:
    """The graph of a form."""
    if isinstance(form, str):
        return names[form]
    if isinstance(form, bool):
        return const(dtypes.bool_, form)
    if isinstance(form, int):
        return const(dtypes.index, form)
    return make(OPERATORS[form[0]], *(to_graph(part, names) for part in form[1:]))


def from_graph(graph: UOp, names: Mapping[str, UOp]) -> Form:
    """The form of a graph, written out as a tree."""
    known: dict[UOp, Form] = {node: name for name, node in names.items()}
    for node in walk(graph):
        if node.op is ops.CONST:
            known[node] = node.arg
        elif node not in known:
            known[node] = [node.op.name, *(known[operand] for operand in node.src)]
    return known[graph]


def text(form: Form) -> str:
    """A form for people."""
    if not isinstance(form, list):
        return str(form)
    symbol = OPERATORS[form[0]].symbol
    parts = [text(part) for part in form[1:]]
    return f"({f' {symbol} '.join(parts)})" if symbol and len(parts) == 2 else f"{form[0]}({', '.join(parts)})"
