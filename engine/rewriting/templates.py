"""Python code that builds the right side of a rule: one nested expression, types taken from what the left side bound."""

from __future__ import annotations

from dataclasses import dataclass

from .. import ops
from ..dtypes import bool_, index
from ..language.syntax import (
    Apply,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Lanes,
    Literal,
    Name,
    Operation,
    Pack,
    Term,
    TypeName,
    Var,
    Wildcard,
)
from .formulas import attr_code, computed_code, constant_type, literal_code, op_name, type_name, value_code
from .scope import Binding, Scope, Sort, UnsupportedRule


@dataclass(frozen=True, slots=True)
class Built:
    """Code of a node, and code of its type."""

    node: str
    dtype: str


SAME_TYPE = frozenset(
    op for op in ops.ELEMENTWISE if op.negated is None and op not in (ops.WHERE, ops.CAST, ops.BITCAST)
)
"""Operators whose result has the type of their operands."""


def build(term: Term, scope: Scope, expected: str | None) -> Built:
    """Code for `term`; `expected` is code of the type that must stand here, where that is known."""
    match term:
        case Var():
            return _variable(term, scope, expected)
        case Literal():
            dtype = _needed(term, expected)
            return Built(f"const({dtype}, {literal_code(term.value)})", dtype)
        case Compute():
            return _computed(term, scope, expected)
        case Apply():
            return _application(term, scope, expected)
        case Lanes():
            return _lanes(term, scope, expected)
        case Chain(rest=Var() as chain):
            node = _variable(chain, scope, expected)
            return Built(f"sorted_chain({op_name(term.op)}, {node.node})", node.dtype)
        case Bind() | Wildcard() | Pack() | Comprehension() | Chain():
            raise UnsupportedRule(term.span, f"a {type(term).__name__.lower()} cannot stand here on the right")


def _needed(term: Term, expected: str | None) -> str:
    if expected is None:
        raise UnsupportedRule(term.span, "the type of this constant cannot be told; write cast[type](…) around it")
    return expected


def _variable(term: Var, scope: Scope, expected: str | None) -> Built:
    binding = scope.look_up(term.name, term.span)
    if binding.sort is Sort.NUMBER:
        dtype = _needed(term, expected)
        return Built(f"const({dtype}, {binding.code})", dtype)
    if binding.sort not in (Sort.NODE, Sort.CONST):
        raise UnsupportedRule(term.span, f"`{term.name}` is not one node; write `...{term.name}`")
    return Built(binding.code, f"{binding.code}.dtype")


def _computed(term: Compute, scope: Scope, expected: str | None) -> Built:
    if isinstance(term.formula, Name):
        binding = scope.look_up(term.formula.name, term.span)
        if binding.sort is Sort.CONST and expected is None:
            expected = f"{binding.code}.dtype"
    if isinstance(term.formula, Operation) and term.formula.op in (ops.CAST, ops.BITCAST) and term.formula.attrs:
        source = constant_type(term.formula.args[0], scope)
        lanes = f".vec({source}.lanes)" if source is not None else ""
        expected = attr_code(term.formula.attrs[0], scope) + lanes
    dtype = _needed(term, expected)
    value = computed_code(term.formula, dtype, scope)
    if value.startswith("fold("):
        return Built(f"folded({dtype}, {value.removeprefix('fold(')}", dtype)
    return Built(f"constant({dtype}, {value})", dtype)


def _application(term: Apply, scope: Scope, expected: str | None) -> Built:
    op = term.op
    if op is ops.GEP:
        return _lane(term, scope)
    if op is ops.UNDER:
        return _under(term, scope, expected)
    if any(isinstance(arg, Pack) for arg in term.args):
        return _general(term, scope, expected)
    if op in SAME_TYPE:
        args, dtype = _alike(term.args, scope, expected)
        return Built(f"intern({op_name(op)}, {dtype}, ({_commas(args)}))", dtype)
    if op.negated is not None:
        args, dtype = _alike(term.args, scope, None)
        result = f"bool_.vec({dtype}.lanes)"
        return Built(f"intern({op_name(op)}, {result}, ({_commas(args)}))", result)
    if op is ops.WHERE:
        branches, dtype = _alike(term.args[1:], scope, expected)
        condition = build(term.args[0], scope, f"bool_.vec({dtype}.lanes)")
        return Built(f"intern(OP_where, {dtype}, ({_commas([condition, *branches])}))", dtype)
    if op in (ops.CAST, ops.BITCAST):
        source = build(term.args[0], scope, None)
        if not term.attrs:
            raise UnsupportedRule(term.span, f"{op.name} needs its type in brackets: {op.name}[float32](…)")
        dtype = f"{attr_code(term.attrs[0], scope)}.vec({source.dtype}.lanes)"
        return Built(f"intern({op_name(op)}, {dtype}, ({source.node},))", dtype)
    return _general(term, scope, expected)


def _under(term: Apply, scope: Scope, expected: str | None) -> Built:
    """`under(p, x)` is made while the rule fires; where nothing comes of it the rule does not."""
    condition, value = build(term.args[0], scope, type_name(bool_)), build(term.args[1], scope, expected)
    return Built(_named(f"under(ctx.simplify, {condition.node}, {value.node})", scope).node, value.dtype)


def _lane(term: Apply, scope: Scope) -> Built:
    """`gep[k](v)`, a scalar for a scalar; `gep[k](...xs)` is one node of a pack."""
    (argument,) = term.args
    number = attr_code(term.attrs[0], scope)
    if isinstance(argument, Pack):
        assert isinstance(argument.term, Var)
        element = f"{scope.look_up(argument.term.name, argument.span).code}[{number}]"
        return Built(element, f"{element}.dtype")
    vector = build(argument, scope, None)
    return Built(f"lane({vector.node}, {number})", f"{vector.dtype}.scalar")


def _commas(args: list[Built]) -> str:
    return ", ".join(arg.node for arg in args) + ("," if len(args) == 1 else "")


def _alike(terms: tuple[Term, ...], scope: Scope, expected: str | None) -> tuple[list[Built], str]:
    """Operands of one type: those without a type of their own take it from the first that has one."""
    dtype = expected
    for term in terms:
        if _has_own_type(term, scope):
            dtype = build(term, scope, expected).dtype
            break
    return [build(term, scope, dtype) for term in terms], _needed(terms[0], dtype)


def _has_own_type(term: Term, scope: Scope) -> bool:
    match term:
        case Literal() | Compute():
            return False
        case Var():
            return scope.look_up(term.name, term.span).sort in (Sort.NODE, Sort.CONST)
        case Apply():
            if term.op in SAME_TYPE:
                return any(_has_own_type(arg, scope) for arg in term.args)
            if term.op is ops.WHERE:
                return any(_has_own_type(arg, scope) for arg in term.args[1:])
            return True
        case Lanes():
            return bool(term.elements)
        case _:
            return True


def _general(term: Apply, scope: Scope, expected: str | None) -> Built:
    """Operators whose type is inferred when the rule fires."""
    op = term.op
    if op is ops.WIDEN:
        widened, over = (build(arg, scope, None).node for arg in term.args)
        return _named(f"widened({widened}, {over})", scope)
    operands = _operands(term, scope, expected)
    attrs = [attr_code(attr, scope) for attr in term.attrs]
    asked, arg = "None", "None"
    if op is ops.LOAD and attrs:
        pointer = build(term.args[0], scope, None)
        asked = f"{pointer.dtype}.element.vec({attrs[0]})"
    elif op is ops.FOLD_LANES:
        value = build(term.args[0], scope, None)
        arg, asked = attrs[0], f"{value.dtype}.vec({attrs[1]})"
    elif op in (ops.VAR, ops.BUFFER, ops.LOCAL):
        arg, asked = attrs[0], _needed(term, _leaf_type(term, attrs, expected))
    elif attrs:
        arg = attrs[0]
    return _named(f"build({op_name(op)}, {operands}, {asked}, {arg})", scope)


def _named(node: str, scope: Scope) -> Built:
    """A node whose type is read off it: built once, in a statement of its own, except inside a comprehension."""
    if scope.nested:
        return Built(node, f"{node}.dtype")
    name = scope.built.get(node)
    if name is None:
        name = scope.built[node] = scope.python_name("t")
        scope.statements.append(f"{name} = {node}")
    return Built(name, f"{name}.dtype")


def _leaf_type(term: Apply, attrs: list[str], expected: str | None) -> str | None:
    """A leaf's second attribute is its type: `var[a, int32]()`."""
    return attrs[1] if len(attrs) > 1 and isinstance(term.attrs[1], TypeName | Var) else expected


def _operands(term: Apply, scope: Scope, expected: str | None) -> str:
    """A tuple of operands, packs spread out."""
    parts = []
    for position, arg in enumerate(term.args):
        if isinstance(arg, Pack):
            parts.append(f"*{_spread(arg, scope, None)}")
        else:
            parts.append(build(arg, scope, _operand_type(term, position, expected, scope)).node)
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _operand_type(term: Apply, position: int, expected: str | None, scope: Scope) -> str | None:
    """The type that a constant takes as this operand."""
    if (
        term.op in SAME_TYPE
        or term.op in (ops.PHI, ops.TEXEL)
        or (term.op in (ops.REDUCE, ops.GROUP_REDUCE, ops.DEFINE_ACC) and position == 0)
    ):
        return expected
    if term.op is ops.STORE and position == 2:
        return f"{build(term.args[0], scope, None).dtype}.element"
    if term.op is ops.LOAD and position == 3:
        lanes = f".vec({attr_code(term.attrs[0], scope)})" if term.attrs else ""
        return f"{build(term.args[0], scope, None).dtype}.element{lanes}"
    if term.op in (ops.LOAD, ops.STORE) and position == 1:
        return type_name(index)
    return type_name(bool_) if term.op in (ops.LOAD, ops.STORE) else None


def _spread(pack: Pack, scope: Scope, expected: str | None) -> str:
    """`...f(xs, y)`: a generator over the packs named inside, in step; a plain `...xs` is the pack itself."""
    names = sorted(_packs(pack.term, scope))
    if isinstance(pack.term, Var) and names:
        return scope.look_up(pack.term.name, pack.span).code
    if not names:
        raise UnsupportedRule(pack.span, "after `...` there is no name that stands for several nodes")
    outer = {name: scope.names[name] for name in names}
    inner = {name: f"e{scope.nested}_{number}" for number, name in enumerate(names)}
    for name in names:
        scope.names[name] = Binding(Sort.NODE, inner[name])
    scope.nested += 1
    element = build(pack.term, scope, expected).node
    scope.nested -= 1
    scope.names.update(outer)
    packs = ", ".join(outer[name].code for name in names)
    source = f"zip({packs})" if len(names) > 1 else packs
    return f"tuple({element} for {', '.join(inner[name] for name in names)} in {source})"


def _packs(term: Term, scope: Scope) -> set[str]:
    match term:
        case Var():
            bound = scope.names.get(term.name)
            return {term.name} if bound is not None and bound.sort is Sort.PACK else set()
        case Apply():
            return set().union(*(_packs(arg, scope) for arg in term.args))
        case Lanes():
            return set().union(*(_packs(element, scope) for element in term.elements))
        case Comprehension() | Pack():
            return _packs(term.term, scope)
        case _:
            return set()


def _lanes(term: Lanes, scope: Scope, expected: str | None) -> Built:
    scalar = f"{expected}.scalar" if expected is not None else None
    parts = []
    for element in term.elements:
        match element:
            case Pack():
                parts.append(f"*{_spread(element, scope, scalar)}")
            case Comprehension():
                parts.append(f"*{_comprehension(element, scope, scalar)}")
            case _:
                parts.append(build(element, scope, scalar).node)
    return _named(f"vector(({', '.join(parts)}{',' if len(parts) == 1 else ''}))", scope)


def _comprehension(term: Comprehension, scope: Scope, scalar: str | None) -> str:
    counter = f"k{scope.nested}"  # by depth, so that equal terms have equal code
    bounds = f"{value_code(term.low, scope)}, {value_code(term.high, scope)}"
    shadowed = scope.names.get(term.counter)
    scope.names[term.counter] = Binding(Sort.NUMBER, counter)
    scope.nested += 1
    if isinstance(term.term, Pack):
        element = "e"
        inner = f" for e in {_spread(term.term, scope, scalar)}"
    else:
        element, inner = build(term.term, scope, scalar).node, ""
    scope.nested -= 1
    del scope.names[term.counter]
    if shadowed is not None:
        scope.names[term.counter] = shadowed
    return f"tuple({element} for {counter} in range({bounds}){inner})"
