"""What each rule costs and brings: how often it was tried, how often it fired, and the time that its matching took."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from ..target import Context
from ..uop import UOp
from .compiler import Function
from .ruleset import RuleSet


@dataclass(slots=True)
class RuleCost:
    """Of one rule: calls of its matching functions, those that gave a result, and the seconds spent in them.

    A node whose operators do not fit costs a rule nothing: the decision tree never tries it.
    """

    tries: int = 0
    hits: int = 0
    seconds: float = 0.0


def measured(rules: RuleSet) -> tuple[RuleSet, dict[str, RuleCost]]:
    """The same rules, counting; and the counts of every rule by `group.name`, which grow as the rules are used.

    The clock is read twice for each try, so the times are for comparing rules, not to be added up.
    """
    rows = [row for group in rules.compiled.groups.values() for row in group]
    costs = {row.rule: RuleCost() for row in rows}
    plain = rules.functions()
    functions = plain | {
        name: _counting(plain[name], costs[row.rule])
        for row in rows
        for name in (row.function, *[direct.function for direct in row.direct])
    }
    return RuleSet(rules.sources, rules.compiled, functions), costs


def _counting(function: Function, cost: RuleCost) -> Function:
    def counted(node: UOp, context: Context, *values: object) -> object:
        begin = perf_counter()
        result = function(node, context, *values)
        cost.seconds += perf_counter() - begin
        cost.tries += 1
        cost.hits += result is not None
        return result

    return counted
