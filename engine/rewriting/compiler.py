"""Rules to Python: one small function for each rule, parameter value and operand order.

A function takes a node whose operator, type and operands' operators already fit (`engine.rewriting.matcher` has seen to
that), makes the remaining tests, evaluates the guard and builds the right side; it returns None where the rule does
not apply. The functions of all groups stand in one generated module, which is cached on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from .. import dtypes, ops
from ..language.externs import EXTERNS
from ..language.syntax import Apply, Bind, Instance, Pack, Rule, RuleBook, Term
from ..ops import Op
from ..target import Context
from ..uop import UOp, const, intern
from . import support
from .formulas import op_name, type_name, value_code
from .patterns import PatternCode, root_operator, variants
from .scope import Binding, Scope, Sort, UnsupportedRule
from .templates import build

Function = Callable[[UOp, Context], "UOp | None"]


@dataclass(frozen=True, slots=True)
class Row:
    """One compiled function and what must be true of a node before it is called."""

    rule: str  # the rule's id
    root: str  # the operator's name
    operands: tuple[str | None, ...]  # operator names of the first operands; None: any
    on: tuple[tuple[str, frozenset[str]], ...]  # (type class, flags); empty: every type
    function: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule book as code: the rows of each group in order, the pipelines, and the module that defines the functions."""

    groups: dict[str, tuple[Row, ...]]
    pipelines: dict[str, tuple[tuple[str, tuple[str, ...]], ...]]
    code: CodeType

    def functions(self) -> dict[str, Function]:
        """Runs the generated module."""
        namespace: dict[str, Any] = generated_globals()
        exec(self.code, namespace)  # noqa: S102 - our own generated text, see compile_rules
        return {name: value for name, value in namespace.items() if name.startswith("rule_")}


def compile_rules(book: RuleBook) -> Compiled:
    """Generates and compiles the code of every rule. Raises UnsupportedRule with the place of what has no meaning."""
    groups: dict[str, tuple[Row, ...]] = {}
    texts: list[str] = []
    for group in book.groups.values():
        rows: list[Row] = []
        for rule in group.rules:
            for instance in rule.instances:
                rows += _compile_instance(rule, instance, texts)
        groups[group.name] = tuple(rows)
    pipelines = {
        name: tuple((stage.mode, stage.groups) for stage in pipeline.stages)
        for name, pipeline in book.pipelines.items()
    }
    return Compiled(groups, pipelines, compile("\n".join(texts), "<rules>", "exec"))


def _compile_instance(rule: Rule, instance: Instance, texts: list[str]) -> list[Row]:
    rows = []
    for pattern in [instance.left] if rule.ordered else variants(instance.left):
        name = f"rule_{len(texts)}"
        texts.append(function_text(name, rule, instance, pattern))
        root = root_operator(pattern)
        if root is None:
            raise UnsupportedRule(rule.span, "the left side must be an operator, not a plain name")
        on = tuple((on.name, frozenset(on.flags)) for on in rule.on)
        rows.append(Row(rule.id, root.name, _operand_names(pattern), on, name))
    return rows


def _operand_names(pattern: Term) -> tuple[str | None, ...]:
    while isinstance(pattern, Bind):
        pattern = pattern.term
    if not isinstance(pattern, Apply):
        return ()
    fixed = [arg for arg in pattern.args if not isinstance(arg, Pack)]
    operators = [root_operator(arg) for arg in fixed[:3]]
    return tuple(op.name if op is not None else None for op in operators)


def function_text(name: str, rule: Rule, instance: Instance, pattern: Term) -> str:
    """The Python source of one matching function: what `rulewright` runs for the rule."""
    scope = Scope(names=parameters(instance))
    code = PatternCode(scope)
    code.match(pattern, "n", known_op=True)
    if instance.when is not None:
        code.require(value_code(instance.when, scope))
    for let, term in instance.lets:
        built = build(term, scope, "n.dtype")
        scope.names[let] = Binding(Sort.NODE, _flush(code, scope, built.node))
    result = build(instance.right, scope, "n.dtype")
    _flush(code, scope, None)
    code.emit(f"return {result.node}")
    body = "\n".join(code.lines)
    if _may_lack_value(body):
        body = "    try:\n" + "\n".join("    " + line for line in code.lines)
        body += "\n    except NO_VALUE:\n        return None"
    return f"def {name}(n, ctx):  # {rule.id}: {' '.join(rule.text.split())}\n{body}\n"


def parameters(instance: Instance) -> dict[str, Binding]:
    """The names that stand for a parameter of the rule, bound to what this instance puts there."""
    return {
        name: Binding(Sort.ARG, op_name(value)) if isinstance(value, Op) else Binding(Sort.NUMBER, str(value))
        for name, value in instance.bindings
    }


def _flush(code: PatternCode, scope: Scope, value: str | None) -> str:
    """Emits the pending statements, and `value` under a name of its own."""
    for statement in scope.statements:
        code.emit(statement)
    scope.statements.clear()
    if value is None or value.isidentifier():
        return value or ""
    name = scope.python_name("t")
    code.emit(f"{name} = {value}")
    return name


def _may_lack_value(body: str) -> bool:
    risky = (
        "constant(",
        "fold(",
        "convert(",
        "reinterpret(",
        " // ",
        " % ",
        " << ",
        " >> ",
        "extent",
        "g_size",
        "widened",
        "x_",
    )
    return any(word in body for word in risky)


def generated_globals() -> dict[str, object]:
    """What generated code may name."""
    names: dict[str, object] = {
        "intern": intern, "const": const, "bool_": dtypes.bool_, "inside": support.inside,
        "identity_of": ops.identity_of,
        "NO_VALUE": (support.NoValue, ZeroDivisionError, OverflowError, ValueError),
    }  # fmt: skip
    for function in (
        support.constant, support.fold, support.convert, support.reinterpret, support.build, support.vector,
        support.widened, support.lane, support.split_offset, support.is_positive_zero, support.is_negative_zero,
    ):  # fmt: skip
        names[function.__name__] = function
    names |= {f"g_{name}": function for name, function in support.GUARD_FUNCTIONS.items()}
    names |= {f"x_{name}": function for name, function in EXTERNS.items()}
    names |= {op_name(op): op for op in ops.OPS.values()}
    names |= {type_name(dtype): dtype for dtype in (*dtypes.DATA_TYPES, dtypes.index)}
    return names


def admits(on: tuple[tuple[str, frozenset[str]], ...], dtype: dtypes.DType, flags: frozenset[str]) -> bool:
    """Whether an `on` clause lets a rule work in `dtype` when the kernel grants `flags`."""
    return not on or any(
        name in type_classes(dtype) and (not dtype.is_float or required <= flags) for name, required in on
    )


def type_classes(dtype: dtypes.DType) -> tuple[str, ...]:
    """The names by which an `on` clause may mean a type."""
    kind = dtype.kind
    return (dtype.scalar.name, kind, "int") if kind in ("sint", "uint") else (dtype.scalar.name, kind)
