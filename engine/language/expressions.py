"""Expressions in the rule language's notation to graphs: for `rulewright simplify`, and for the tests beside rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..dtypes import DType, bool_, by_name, float32, index, int32, uint32
from ..ops import LOCAL, VAR, AxisKind, BufferArg, VarArg
from ..target import Context, Target
from ..uop import UOp, buffer, make, range_
from .blocks import Block
from .cases import LOOPS, read_given
from .diagnostics import Report, RuleSyntaxError, Severity
from .drafts import TermError, build_term
from .grammar import nodes, parse
from .modules import Statement
from .names import ModuleNames, Scope
from .sources import RuleSource
from .syntax import Case, Given, Rule, Term, Var
from .terms import Side, TermReader, walk

__all__ = [
    "TermError",
    "build_term",
    "case_context",
    "default_type",
    "free_names",
    "parse_expression",
    "parse_given",
]

UNSAID_SIZE = 1 << 20
"""The number of elements of a buffer whose description does not say it."""

IMAGE_SIDE = 64
"""The height of an image, and its width where its description does not say it, in texels."""


def parse_expression(text: str, given: str | Sequence[Given] = (), *, default: DType = index) -> UOp:
    """The graph of an expression. `given` describes its names, as in a rule's test: `i in 0..64, f: float32`.

    A name that `given` does not describe has type `default`. Raises RuleSyntaxError that shows the place.
    """
    assumed = parse_given(given) if isinstance(given, str) else given
    source = RuleSource("<expression>", text)
    report = Report()
    statement = _statement(source, "expression_statement", report)
    if statement is not None:
        reader = TermReader(statement, Scope(ModuleNames(), free=True), report, Side.CASE)
        term = reader.term(nodes(statement.tree)[0])
        if not report.errors:
            try:
                return build_term(term, free_names(assumed, [term], default))
            except TermError as problem:
                report.error("E030", problem.problem, problem.span)
    raise _failure(report, source)


def parse_given(text: str) -> tuple[Given, ...]:
    """The assumptions in `text`, written as after `given`. Raises RuleSyntaxError that shows the place."""
    source = RuleSource("<given>", text)
    report = Report()
    statement = _statement(source, "given_statement", report)
    found = read_given(statement, statement.tree, report) if statement is not None else ()
    if report.errors:
        raise _failure(report, source)
    return found


def _statement(source: RuleSource, start: str, report: Report) -> Statement | None:
    block = Block(source, "", 0, len(source.text), "")
    tree = parse(source.text, start, block.span, report)
    return None if tree is None else Statement(block, tree)


def _failure(report: Report, source: RuleSource) -> RuleSyntaxError:
    errors = [found for found in report.sorted([source.name]) if found.severity is Severity.ERROR]
    return RuleSyntaxError(errors, [source])


# --- names -----------------------------------------------------------------------------------------------------------


def free_names(given: Sequence[Given], terms: Iterable[Term], default: DType = index) -> dict[str, UOp]:
    """A node for every name that `given` describes, then for every other name in the terms, of type `default`.

    Buffers, local memories and loops are numbered in the order in which they are described.
    """
    names: dict[str, UOp] = {}
    counts = {"buffer": 0, "local": 0, "loop": 0}
    for one in given:
        if one.form in ("target", "flags"):
            continue
        kind = "loop" if one.form in LOOPS else "buffer" if one.form == "image" else one.form
        names[one.names[0]] = _described(one, counts.get(kind, 0), default)
        if kind in counts:
            counts[kind] += 1
    for term in terms:
        for part in walk(term):
            if isinstance(part, Var) and part.name not in names:
                names[part.name] = make(VAR, dtype=default, arg=part.name)
    return names


def _described(given: Given, number: int, default: DType) -> UOp:
    if given.form in LOOPS:
        assert given.high is not None
        kind = AxisKind.LOOP if given.form == "range" else AxisKind(given.form)
        return range_(number, given.high, kind)
    if given.form == "buffer":
        assert given.dtype is not None
        return buffer(number, given.dtype, given.high if given.high is not None else UNSAID_SIZE)
    if given.form == "image":
        assert given.dtype is not None
        width = given.high if given.high is not None else IMAGE_SIDE
        return buffer(number, given.dtype, IMAGE_SIDE * width * 4, (IMAGE_SIDE, width))
    if given.form == "local":
        assert given.dtype is not None
        size = given.high if given.high is not None else UNSAID_SIZE
        return make(LOCAL, dtype=given.dtype.ptr("local"), arg=BufferArg(number, size))
    return _value(given, default)


def _value(given: Given, default: DType) -> UOp:
    """A free variable; one with bounds counts something, so that without a type it is no float."""
    name = given.names[0]
    if given.low is None or given.high is None:
        return make(VAR, dtype=given.dtype or default, arg=name)
    dtype = given.dtype or (default if default.kind in ("index", "sint", "uint") else index)
    return make(VAR, dtype=dtype, arg=VarArg(name, given.low, given.high - 1))


_FIRST_OF_CLASS = {"int": int32, "sint": int32, "uint": uint32, "float": float32, "bool": bool_}


def default_type(rule: Rule) -> DType:
    """The type of a name that a test of the rule does not describe: the first that the rule's `on` admits."""
    if not rule.on:
        return index
    name = rule.on[0].name
    return _FIRST_OF_CLASS.get(name) or by_name(name)


def case_context(case: Case) -> Context:
    """The target and the float flags that a test assumes."""
    target, flags = Target("any"), frozenset[str]()
    for one in case.given:
        if one.form == "target":
            target = Target("test", frozenset(one.names), tuple(sorted(one.widths, reverse=True)))
        elif one.form == "flags":
            flags |= frozenset(one.names)
    return Context(target, flags)
