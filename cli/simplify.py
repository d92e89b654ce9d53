"""`rulewright simplify`: what the rules make of an expression, and on request by which steps."""

from __future__ import annotations

from ..engine.language.expressions import parse_expression
from ..engine.printing import expression
from ..engine.rewriting import RuleSet
from ..engine.target import MATH_MODES, Context
from .choices import named_type
from .console import console, reading
from .rule_files import with_builtin

PIPELINE = "simplify"


def simplify_command(text: str, given: str, dtype: str, math: str, rules: list[str], steps: bool) -> int:
    """Prints the simplified expression alone, so that scripts can use it; with `steps` each firing before it."""
    with reading():
        graph = parse_expression(text, given, default=named_type(dtype))
        rule_set = with_builtin(rules) if rules else RuleSet.builtin()
    out = console()
    result, trace = rule_set.rewrite(graph, PIPELINE, Context(flags=MATH_MODES[math]), keep_steps=steps)
    for _, report in trace.stages:
        for step in report.steps:
            before, after = expression(step.before), expression(step.after)
            out.print(f"{step.rule}: {before}  =>  {after}", markup=False, soft_wrap=True)
    out.print(expression(result), markup=False, soft_wrap=True)
    return 0
