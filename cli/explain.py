"""`rulewright explain`: step by step, which rule did what and why; or why one rule does not fire."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from ..engine.language.diagnostics import did_you_mean
from ..engine.language.expressions import parse_expression
from ..engine.printing import expression
from ..engine.rewriting import RuleSet
from ..engine.rewriting.explanation import Attempt, Clause, Explainer, Value, place_of, wholes
from ..engine.target import MATH_MODES, Context
from ..engine.uop import UOp, walk
from .choices import named_type
from .console import InputError, console, reading
from .rule_files import with_builtin

SHOWN = 5
"""Of the nodes that a rule was tried on, so many are shown."""


def explain_command(
    text: str, given: str, dtype: str, math: str, rules: list[str], rule: str | None, pipeline: str, as_json: bool
) -> int:
    """Prints each step of a pipeline on an expression; with `rule` how far that rule alone comes on each of its nodes."""
    with reading():
        graph = parse_expression(text, given, default=named_type(dtype))
        rule_set = with_builtin(rules) if rules else RuleSet.builtin()
        explainer = Explainer(rule_set, Context(flags=MATH_MODES[math]))
        if rule is None:
            result, trace = rule_set.rewrite(graph, pipeline, explainer.context, keep_steps=True)
    if rule is not None:
        attempts = _tried(explainer, rule, graph)
        return _print_attempts(explainer, attempts, graph, as_json)
    steps = [step for _, report in trace.stages for step in report.steps]
    told = [
        (explainer.attempt(explainer.by_id[step.rule], step.before), whole, after)
        for step, (whole, after) in zip(steps, wholes(graph, steps), strict=True)
    ]
    if as_json:
        _dump({"before": expression(graph), "after": expression(result), "steps": [_step(*one) for one in told]})
        return 0
    out = console()
    _line(out, expression(graph))
    for number, (attempt, whole, after) in enumerate(told, 1):
        _print_step(out, number, attempt, whole, after)
    _line(out, f"\n{expression(result)}" if told else "no rule fires")
    return 0


def _tried(explainer: Explainer, name: str, graph: UOp) -> list[Attempt]:
    """The rule on every node with its root operator, the outermost first."""
    rule = explainer.by_id.get(name)
    if rule is None:
        hint = did_you_mean(name, explainer.by_id) or "`rulewright stats` lists them all"
        raise InputError(f"there is no rule {name!r}: {hint}")
    roots = explainer.roots(rule)
    nodes = [node for node in walk(graph) if node.op in roots]
    if not nodes:
        names = " or ".join(sorted(op.name for op in roots))
        raise InputError(f"{name} is a rule about {names}, and there is none in {expression(graph)}")
    return [explainer.attempt(rule, node) for node in reversed(nodes)]


def _print_attempts(explainer: Explainer, attempts: list[Attempt], graph: UOp, as_json: bool) -> int:
    if as_json:
        _dump({"before": expression(graph), "attempts": [_attempt(one, graph) for one in attempts]})
        return 0
    out = console()
    rule = attempts[0].rule
    _head(out, rule.id, str(rule.span))
    for attempt in attempts[:SHOWN]:
        _line(out, f"\non {expression(attempt.node)}")
        _print_reasons(out, attempt)
        if attempt.after is not None:
            _line(out, f"  fires: {expression(attempt.after)}", "green")
        else:
            _line(out, f"  does not fire: {attempt.problem}", "red")
            assert attempt.place is not None
            _underlined(out, explainer, attempt)
    if len(attempts) > SHOWN:
        _line(out, f"\n… and {len(attempts) - SHOWN} more nodes; --json has them all")
    return 0


def _underlined(out: Console, explainer: Explainer, attempt: Attempt) -> None:
    """The line of the rule that the attempt stopped at, with the place marked."""
    span = attempt.place
    assert span is not None
    line = explainer.sources[span.file].line(span.line)
    end = span.end_column if span.end_line == span.line else len(line) + 1
    indent = len(line) - len(line.lstrip())
    _line(out, f"    {span}")
    _line(out, f"    {line.strip()}")
    _line(out, "    " + " " * (span.column - 1 - indent) + "^" * max(1, end - span.column), "red")


def _print_step(out: Console, number: int, attempt: Attempt, whole: UOp, after: UOp) -> None:
    _line(out, "")
    _head(out, f"{number}. {attempt.rule.id}", str(attempt.rule.span), attempt.rule.text)
    text, part = expression(whole), expression(attempt.node)
    _line(out, f"  {text}")
    if part in text and part != text:
        _line(out, "  " + " " * text.index(part) + "^" * len(part), "cyan")
    _print_reasons(out, attempt)
    _line(out, f"  => {expression(after)}", "green")


def _head(out: Console, title: str, place: str, equation: str = "") -> None:
    out.print(
        Text.assemble((title, "bold"), f"   {equation}   " if equation else "   ", (place, "dim")), soft_wrap=True
    )


def _print_reasons(out: Console, attempt: Attempt) -> None:
    for value in attempt.names:
        _line(out, f"    {_value(value)}")
    for clause in attempt.guard:
        mark = Text("✓", "green") if clause.holds else Text("✗", "red")
        known = {clause.text, *(name.text for name in attempt.names)}
        values = "; ".join(f"{one.text} = {one.value}" for one in clause.values if one.text not in known)
        out.print(
            Text.assemble("    ", mark, f" {clause.text}", (f"   {values}" if values else "", "dim")), soft_wrap=True
        )


def _value(value: Value) -> str:
    return f"{value.text} = {value.value}" + (f"   ({value.facts})" if value.facts else "")


def _line(out: Console, text: str, style: str = "") -> None:
    out.print(Text(text, style), soft_wrap=True)


# --- as JSON ---------------------------------------------------------------------------------------------------------


def _step(attempt: Attempt, whole: UOp, after: UOp) -> dict[str, Any]:
    return {**_attempt(attempt, whole), "whole": expression(whole), "whole_after": expression(after)}


def _attempt(attempt: Attempt, whole: UOp) -> dict[str, Any]:
    span = attempt.rule.span
    place = place_of(attempt.node, whole)
    return {
        "rule": attempt.rule.id,
        "equation": attempt.rule.text,
        "file": span.file,
        "line": span.line,
        "place": None if place is None else list(place),
        "before": expression(attempt.node),
        "after": None if attempt.after is None else expression(attempt.after),
        "names": [_value_json(value) for value in attempt.names],
        "guard": [_clause_json(clause) for clause in attempt.guard],
        "problem": attempt.problem,
    }


def _clause_json(clause: Clause) -> dict[str, Any]:
    values = [_value_json(value) for value in clause.values]
    return {"text": clause.text, "holds": clause.holds, "values": values}


def _value_json(value: Value) -> dict[str, str]:
    return {"name": value.text, "value": value.value, **({"facts": value.facts} if value.facts else {})}


def _dump(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2))
