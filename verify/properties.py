"""Property-based checks: every rule keeps the value of whatever it fires on.

For each rule, hypothesis draws instances of the left side that satisfy the guard (`verify.instances`); the real matcher
applies the rule, alone; and both sides are evaluated in the reference semantics in many worlds and compared bit for bit.
The same seed gives the same verdicts on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from ..engine.errors import GraphError, RulewrightError
from ..engine.language.syntax import Rule
from ..engine.rewriting import RuleSet
from ..engine.rewriting.matcher import Matcher
from ..engine.target import Context
from ..engine.uop import UOp, walk
from ..engine.verifier import node_problems
from . import verdicts
from .choices import Choices, decisions
from .comparison import LOOSE, difference
from .counterexample import Counterexample, found, malformed
from .instances import Case, Drawn, cases_of
from .reference import NoMeaning
from .worlds import Worlds, constants

EXAMPLES = 100
"""Instances drawn for a rule, unless it has so many types and parameters that it needs more."""

WORLDS = 16
"""Worlds in which an instance is evaluated."""

WORK = 1200
"""Nodes evaluated for an instance, after which there are no more worlds: loops are slow."""


@dataclass(frozen=True, slots=True)
class PropertyResult:
    """What the checks of one rule found."""

    rule: str
    place: str
    cases: int  # types and parameters
    drawn: int
    fired: int  # drawn instances on which the rule fired: those that count
    seconds: float
    counterexample: Counterexample | None = None
    cached: bool = False  # a verdict of an earlier run, on the same rule with the same checks

    @property
    def acceptance(self) -> float:
        return self.fired / self.drawn if self.drawn else 0.0

    @property
    def refuted(self) -> bool:
        return self.counterexample is not None


class _Refuted(Exception):
    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__(str(counterexample))
        self.counterexample = counterexample


def check_properties(
    ruleset: RuleSet, rules: Iterable[Rule] | None = None, *, examples: int = EXAMPLES, seed: int = 0
) -> Iterator[PropertyResult]:
    """Checks these rules of the set, or all of them in the order of the files. What passed before is not drawn again."""
    if rules is None:
        rules = [rule for group in ruleset.book().groups.values() for rule in group.rules]
    for rule in rules:
        name = verdicts.key(rule, examples, seed)
        known = verdicts.read(name)
        if known is not None:
            counts = known.cases, known.drawn, known.fired, known.seconds
            yield PropertyResult(rule.id, str(rule.span), *counts, cached=True)
            continue
        result = check_rule(ruleset, rule, examples=examples, seed=seed)
        if not result.refuted and result.fired:
            verdicts.store(name, verdicts.Passed(result.cases, result.drawn, result.fired, result.seconds))
        yield result


def check_rule(
    ruleset: RuleSet, rule: Rule, *, examples: int = EXAMPLES, seed: int = 0, drawn_for: Rule | None = None
) -> PropertyResult:
    """Draws instances of one rule until it is refuted or `examples` have passed.

    With `drawn_for`, instances of that rule, which has the same left side and a guard that holds less often: the cases
    that one wants to know about.
    """
    run = _Run(ruleset, rule)
    begun = perf_counter()
    by_instance: dict[int, list[Case]] = {}
    for case in filter(lambda case: case.shapes, cases_of(drawn_for or rule)):
        by_instance.setdefault(id(case.instance), []).append(case)
    total = sum(map(len, by_instance.values()))
    counterexample = None
    for cases in by_instance.values():
        count = max(len(cases) * max(1, examples // 20), examples * len(cases) // max(1, total))
        counterexample = run.search(cases, count, seed)
        if counterexample is not None:
            break
    seconds = perf_counter() - begun
    return PropertyResult(rule.id, str(rule.span), total, run.drawn, run.fired, seconds, counterexample)


class _Run:
    """The checks of one rule, with their counts."""

    def __init__(self, ruleset: RuleSet, rule: Rule) -> None:
        self.ruleset, self.rule = ruleset, rule
        self.matchers: dict[Context, Matcher] = {}
        self.drawn = self.fired = 0

    def search(self, cases: list[Case], examples: int, start: int) -> Counterexample | None:
        """The smallest counterexample that hypothesis finds among these types."""

        @seed(start)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        @given(decisions())
        def holds(data: bytes) -> None:
            self.try_one(cases, Choices(data))

        try:
            holds()
        except _Refuted as refuted:
            return refuted.counterexample
        return None

    def try_one(self, cases: list[Case], choices: Choices) -> None:
        """Draws one instance and compares its sides. Raises _Refuted."""
        self.drawn += 1
        drawn = choices.pick(cases).draw(choices)
        if drawn is None:
            return
        counterexample = self.judge(drawn, choices.below(1 << 15))
        if counterexample is not None:
            raise _Refuted(counterexample)

    def judge(self, drawn: Drawn, start: int) -> Counterexample | None:
        """What is wrong with the rule on one instance."""
        matcher = self.matchers.get(drawn.context)
        if matcher is None:
            matcher = self.matchers[drawn.context] = self.ruleset.rule_matcher(self.rule.id, drawn.context)
        try:
            fired = matcher.match(drawn.graph)
        except (GraphError, TypeError, AttributeError, AssertionError, LookupError) as problem:
            return malformed(drawn.graph, drawn.graph, drawn.context, f"the right side cannot be built: {problem}")
        if fired is None:
            return None
        try:
            counterexample = compare(drawn.graph, fired[0], drawn.context, start)
        except NoMeaning:
            return None
        self.fired += 1
        return counterexample


def compare(before: UOp, after: UOp, context: Context, start: int, worlds: int = WORLDS) -> Counterexample | None:
    """Values for which two graphs differ, searched in a number of worlds."""
    problem = _malformed(before, after)
    if problem is not None:
        return malformed(before, after, context, problem)
    mild = bool(context.flags & LOOSE)
    work = WORK
    try:
        for world in Worlds(start, constants(before, after), mild=mild, total=worlds):
            seen = difference(before, after, world, context.flags)
            if seen is not None:
                return found(before, after, context, world, seen)
            work -= world.work
            if work <= 0:
                break
    except NoMeaning:
        raise
    except RulewrightError as unknown:
        return malformed(before, after, context, f"it has no value: {unknown}")
    return None


def _malformed(before: UOp, after: UOp) -> str | None:
    """Why the new graph is no graph: a node with wrong operands, or another type than before."""
    if after.dtype is not before.dtype:
        return f"the type changes from {before.dtype} to {after.dtype}"
    known = set(walk(before))
    for node in walk(after):
        if node not in known:
            for problem in node_problems(node):
                return f"the result is not well formed: {problem}"
    return None
