"""Python code for formulas: guards, bounds of comprehensions, and the values of `{…}`."""

from __future__ import annotations

from .. import ops
from ..dtypes import DType
from ..language.externs import EXTERNS
from ..language.syntax import Attr, Formula, Function, InRange, Logic, Name, Number, Operation, Text, TypeName, Var
from ..ops import Op
from .scope import Scope, Sort, UnsupportedRule

PYTHON_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "floormod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
"""In a guard, numbers are mathematical integers (or Python floats): no type, no wrap-around."""


def op_name(op: Op) -> str:
    """The global of the generated module that holds an operator."""
    return f"OP_{op.name}"


def type_name(dtype: DType) -> str:
    """The global of the generated module that holds a type."""
    return "T_" + dtype.name.replace(" ", "_").replace("*", "_ptr")


def attr_code(attr: Attr, scope: Scope) -> str:
    """What stands in brackets, as a Python expression."""
    match attr:
        case Op():
            return op_name(attr)
        case TypeName():
            return type_name(attr.dtype)
        case Var():
            return scope.look_up(attr.name, attr.span).code
        case _:
            return value_code(attr, scope)


def value_code(formula: Formula, scope: Scope) -> str:
    """A formula as a Python expression on mathematical values."""
    match formula:
        case Name():
            binding = scope.look_up(formula.name, formula.span)
            return f"{binding.code}.arg" if binding.sort is Sort.CONST else binding.code
        case Number():
            return literal_code(formula.value)
        case TypeName():
            return type_name(formula.dtype)
        case Text():
            return repr(formula.value)
        case InRange():
            low, high = value_code(formula.low, scope), value_code(formula.high, scope)
            return f"inside({_node_code(formula.value, scope)}, {low}, {high})"
        case Logic():
            parts = [f"({value_code(part, scope)})" for part in formula.args]
            return f"not {parts[0]}" if formula.word == "not" else f" {formula.word} ".join(parts)
        case Function():
            return _call_code(formula, scope)
        case Operation():
            return _operation_code(formula, scope)


def literal_code(value: bool | int | float) -> str:
    return (
        f'float("{value}")'
        if isinstance(value, float) and (value != value or abs(value) == float("inf"))
        else repr(value)
    )


def _operation_code(formula: Operation, scope: Scope) -> str:
    parts = [f"({value_code(part, scope)})" for part in formula.args]
    if formula.op is ops.NEG:
        return f"-{parts[0]}"
    if formula.op is ops.NOT:
        return f"~{parts[0]}"
    if formula.op in (ops.MIN, ops.MAX):
        return f"{formula.op.name}({', '.join(parts)})"
    if formula.op.name in ("eq", "ne") and any(_is_type(part, scope) for part in formula.args):
        return f"{parts[0]} is {'not ' if formula.op is ops.NE else ''}{parts[1]}"
    symbol = PYTHON_OPERATORS.get(formula.op.name)
    if symbol is None:
        raise UnsupportedRule(formula.span, f"`{formula.op.name}` can stand in {{…}}, not in a guard")
    return f"{parts[0]} {symbol} {parts[1]}"


def _is_type(formula: Formula, scope: Scope) -> bool:
    if isinstance(formula, Name):
        return scope.look_up(formula.name, formula.span).sort is Sort.TYPE
    return isinstance(formula, TypeName) or isinstance(formula, Function) and formula.name == "dtype"


def _node_code(formula: Formula, scope: Scope) -> str:
    """An argument that is looked at as a node rather than as a constant's value."""
    if isinstance(formula, Name):
        binding = scope.look_up(formula.name, formula.span)
        if binding.sort is not Sort.NUMBER:
            return binding.code
    raise UnsupportedRule(formula.span, "this must be a name that the left side binds")


NODE_FUNCTIONS = frozenset({
    "min", "max", "uses", "varies", "extent", "kind", "dtype", "width", "size", "image", "bits", "constant",
    "less", "at_most", "factor", "ratio", "modulus", "remainder",
})  # fmt: skip
"""Functions all of whose arguments are nodes (bits also takes a type); the others say below which are."""


def _call_code(formula: Function, scope: Scope) -> str:
    name, args = formula.name, formula.args
    if name == "target.has":
        return f"ctx.target.has({value_code(args[0], scope)})"
    if name == "target.width":
        return f"({value_code(args[0], scope)} in ctx.target.widths)"
    if name == "target.half":
        return f"ctx.target.half({value_code(args[0], scope)})"
    if name == "identity":
        raise UnsupportedRule(formula.span, "identity(…) is a value: write it in {…}")
    if name in NODE_FUNCTIONS:
        return f"g_{name}({', '.join(_node_code(arg, scope) for arg in args)})"
    if name == "gcd":
        return f"g_gcd({', '.join(value_code(arg, scope) for arg in args)})"
    if name == "cancels":
        x, times, rest = args
        return f"g_cancels({_node_code(x, scope)}, {value_code(times, scope)}, {_node_code(rest, scope)})"
    if name == "divides":
        return f"g_divides({value_code(args[0], scope)}, {_node_code(args[1], scope)})"
    if name in ("aligned", "fits"):
        return f"g_{name}({_node_code(args[0], scope)}, {value_code(args[1], scope)})"
    if formula.means is not None and name not in EXTERNS:
        return f"({value_code(formula.means, scope)})"
    return f"x_{name}({', '.join(_extern_argument(arg, scope) for arg in args)})"


def _extern_argument(formula: Formula, scope: Scope) -> str:
    """Nodes and packs are passed as they are, constants as values."""
    if isinstance(formula, Name) and scope.look_up(formula.name, formula.span).sort in (Sort.NODE, Sort.PACK):
        return scope.look_up(formula.name, formula.span).code
    return value_code(formula, scope)


# --- {…}: exact, in the node's type ----------------------------------------------------------------------------------


def computed_code(formula: Formula, dtype: str, scope: Scope) -> str:
    """The value of `{formula}` where type `dtype` (Python code) stands, each step exact and put into its type."""
    match formula:
        case Operation() if formula.op in (ops.CAST, ops.BITCAST):
            source = constant_type(formula.args[0], scope) or dtype
            convert = "convert" if formula.op is ops.CAST else "reinterpret"
            target = attr_code(formula.attrs[0], scope) if formula.attrs else dtype
            return f"{convert}({source}, {computed_code(formula.args[0], source, scope)}, {target})"
        case Operation():
            inner = constant_type(formula, scope) or dtype
            values = ", ".join(computed_code(part, inner, scope) for part in formula.args)
            return f"fold({op_name(formula.op)}, {inner}, {values})"
        case Function() if formula.name == "identity":
            reducer = formula.args[0]
            assert isinstance(reducer, Name)
            return f"identity_of({scope.look_up(reducer.name, reducer.span).code}, {dtype})"
        case _:
            return value_code(formula, scope)


def constant_type(formula: Formula, scope: Scope) -> str | None:
    """The type of the first constant below a formula, as Python code: the type that its arithmetic is done in."""
    match formula:
        case Name():
            binding = scope.look_up(formula.name, formula.span)
            return f"{binding.code}.dtype" if binding.sort is Sort.CONST else None
        case Operation() if formula.op in (ops.CAST, ops.BITCAST):
            return attr_code(formula.attrs[0], scope) if formula.attrs else None
        case Operation() if formula.op is ops.WHERE:
            return constant_type(formula.args[1], scope) or constant_type(formula.args[2], scope)
        case Operation():
            return next(filter(None, (constant_type(part, scope) for part in formula.args)), None)
        case _:
            return None
