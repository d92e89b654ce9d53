"""Rules to Python: one small function for each rule, parameter value and operand order.

A function takes a node whose operator, type and operands' operators already fit (`engine.rewriting.matcher` has seen to
that), makes the remaining tests, evaluates the guard and builds the right side; it returns None where the rule does
not apply. The functions of all groups stand in one generated module, which is cached on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import CodeType
from typing import Any

from .. import dtypes, ops
from ..language.externs import EXTERNS
from ..language.syntax import Apply, Bind, Chain, Instance, Pack, Rule, RuleBook, Term, Var
from ..uop import const, intern
from . import chains, support
from .assumptions import under
from .formulas import op_name, type_name
from .functions import Direct, Writer, made_terms
from .patterns import variants
from .scope import UnsupportedRule
from .shapes import Wanted, root_operator, wanted

Function = Callable[..., Any]
"""(node, context, for terms of a chain also the values of the names) -> the new node, or the new terms, or None."""


class RowKind(Enum):
    """What a compiled function is called with."""

    NODE = "a node"
    CHAIN = "the top of a chain"
    TERMS = "terms found in a chain"


@dataclass(frozen=True, slots=True)
class Row:
    """One compiled function and what must be true of a node before it is called."""

    rule: str  # the rule's id
    root: str  # the operator's name
    operands: tuple[Wanted, ...]  # the shapes of the first operands
    on: tuple[tuple[str, frozenset[str]], ...]  # (type class, flags); empty: every type
    function: str
    kind: RowKind = RowKind.NODE
    pattern: str = ""  # the ChainPattern of the terms
    direct: tuple[Direct, ...] = ()  # functions of the terms themselves, one for each order of their operands
    repeats: bool = False  # two of the terms are one name
    terms: tuple[tuple[Wanted, ...], ...] = ()  # the shapes of each term that a chain names, in any order of operands


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
    on = tuple((on.name, frozenset(on.flags)) for on in rule.on)
    made = made_terms(instance)
    if made is not None:
        chain = instance.left
        assert isinstance(chain, Chain)
        writer = Writer(f"rule_{len(texts)}", rule, instance)
        terms = writer.chain_function(chain, made)
        direct = tuple(writer.direct_functions(chain, made))
        plain = [term.name for term in chain.terms if isinstance(term, Var)]
        texts += writer.texts
        return [
            Row(rule.id, chain.op.name, (), on, writer.name, RowKind.TERMS, terms, direct, len(set(plain)) < len(plain))
        ]
    rows = []
    for pattern in [instance.left] if rule.ordered else variants(instance.left):
        writer = Writer(f"rule_{len(texts)}", rule, instance)
        writer.function(pattern)
        texts += writer.texts
        rows.append(_row(rule, pattern, on, writer.name))
    return rows


def _row(rule: Rule, pattern: Term, on: tuple[tuple[str, frozenset[str]], ...], function: str) -> Row:
    while isinstance(pattern, Bind):
        pattern = pattern.term
    if isinstance(pattern, Chain):
        terms = tuple(tuple(map(wanted, [term] if rule.ordered else variants(term))) for term in pattern.terms)
        return Row(rule.id, pattern.op.name, (), on, function, RowKind.CHAIN, terms=terms)
    root = root_operator(pattern)
    if root is None:
        raise UnsupportedRule(rule.span, "the left side must be an operator, not a plain name")
    return Row(rule.id, root.name, _operands(pattern), on, function)


def _operands(pattern: Term) -> tuple[Wanted, ...]:
    fixed = [arg for arg in pattern.args if not isinstance(arg, Pack)] if isinstance(pattern, Apply) else []
    return tuple(wanted(arg) for arg in fixed[:3])


def generated_globals() -> dict[str, object]:
    """What generated code may name."""
    names: dict[str, object] = {
        "intern": intern, "const": const, "bool_": dtypes.bool_, "inside": support.inside,
        "identity_of": ops.identity_of,
        "NO_VALUE": support.NO_VALUE, "ChainPattern": chains.ChainPattern,
    }  # fmt: skip
    for function in (
        support.constant, support.fold, support.folded, support.convert, support.reinterpret, support.build, support.vector,
        support.widened, support.lane, support.split_offset, support.is_positive_zero, support.is_negative_zero, under,
        chains.may_chain, chains.terms_of, chains.combined, chains.others, chains.shared_out, chains.sorted_chain,
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
