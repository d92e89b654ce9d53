"""Why a rule fires on a node or does not: what its names stand for, how far the match went, what the guard saw.

The code that explains is the code that matches (`PatternCode`, `value_code`), in a form that says where it stopped;
so an explanation cannot tell another story than the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .. import facts
from ..intervals import type_range
from ..language.sources import RuleSource
from ..language.syntax import (
    Bind,
    Chain,
    Formula,
    Function,
    InRange,
    Instance,
    Logic,
    Name,
    Operation,
    Rule,
    Span,
    Term,
    Var,
)
from ..language.terms import walk
from ..ops import Op
from ..printing import expression
from ..target import Context
from ..uop import UOp, intern
from .compiler import admits, generated_globals
from .fixed_point import Step
from .formulas import value_code
from .functions import parameters
from .patterns import PatternCode, variants
from .ruleset import RuleSet
from .scope import Scope, Sort
from .shapes import root_operator
from .support import NO_VALUE


@dataclass(frozen=True, slots=True)
class Value:
    """What a name of the rule stands for, or a function of the guard gave, with what is known of it."""

    text: str  # as the rule writes it
    value: str
    facts: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """One part of the guard, of those that `and` joins: whether it holds, and the values it was decided by."""

    text: str
    span: Span
    holds: bool
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rule tried on one node. `problem` says why it does not fire; None: it does, and gives `after`."""

    rule: Rule
    node: UOp
    names: tuple[Value, ...] = ()
    guard: tuple[Clause, ...] = ()
    problem: str | None = None
    place: Span | None = None  # the part of the rule that does not fit
    after: UOp | None = None
    progress: int = 0  # how many tests passed: of several attempts the furthest is the one to show


@dataclass
class Explainer:
    """Tries the rules of a set one by one."""

    rules: RuleSet
    context: Context = field(default_factory=Context)

    @cached_property
    def by_id(self) -> dict[str, Rule]:
        """Every rule, by `group.name`."""
        return {rule.id: rule for group in self.rules.book().groups.values() for rule in group.rules}

    @cached_property
    def sources(self) -> dict[str, RuleSource]:
        return {source.name: source for source in self.rules.sources}

    def roots(self, rule: Rule) -> set[Op]:
        """The operators that a node must have for the rule to be tried on it."""
        lefts = [pattern.term if isinstance(pattern, Bind) else pattern for _, pattern in _forms(rule)]
        return {op for left in lefts if (op := left.op if isinstance(left, Chain) else root_operator(left)) is not None}

    def attempt(self, rule: Rule, node: UOp) -> Attempt:
        """The rule on this node: of its parameter values and operand orders the one that fires, else that came furthest."""
        on = tuple((one.name, frozenset(one.flags)) for one in rule.on)
        if not admits(on, _judged_type(node), self.context.flags):
            return Attempt(rule, node, problem=self._not_on(rule, node), place=rule.on[0].span)
        found = self.rules.rule_matcher(rule.id, self.context).match(node)
        if any(isinstance(part, Chain) for instance in rule.instances for part in walk(instance.left)):
            problem = "no terms fit together, or the guard holds for none that do" if found is None else None
            return Attempt(rule, node, problem=problem, place=rule.span, after=found[0] if found else None)
        tried = [self._instance(rule, instance, pattern, node) for instance, pattern in _forms(rule)]
        matched = [one for one in tried if one.problem is None]
        if found is not None and matched:
            best = matched[0]
            return Attempt(rule, node, best.names, best.guard, after=found[0], progress=best.progress)
        if matched:
            best = matched[0]
            why = "the right side has no value here, or is the same node"
            return Attempt(rule, node, best.names, best.guard, why, rule.instances[0].right.span, None, best.progress)
        return max(tried, key=lambda one: one.progress)

    def text(self, span: Span) -> str:
        """What stands in a rule file at this place, on one line."""
        return self.sources[span.file].text_at(span)

    def _not_on(self, rule: Rule, node: UOp) -> str:
        wanted = ", ".join(self.text(on.span) for on in rule.on)
        granted = ", ".join(sorted(self.context.flags)) or "no flags"
        dtype = _judged_type(node)
        return f"the rule is on {wanted}, and this is {dtype}" + (f" with {granted}" if dtype.is_float else "")

    def _instance(self, rule: Rule, instance: Instance, pattern: Term, node: UOp) -> Attempt:
        """One form of the rule, from the root down."""
        scope = Scope(names=parameters(instance))
        code = TracedPattern(scope)
        code.match(pattern, "n")
        reached, held = code.run(node, self.context)
        names = self._names(scope, held)
        if reached is not None:
            stop = code.stops[reached]
            return Attempt(rule, node, names, (), self._misfit(stop, held), stop.term.span, None, reached)
        guard = tuple(self._clauses(instance.when, scope, held))
        failed = next((clause for clause in guard if not clause.holds), None)
        progress = len(code.stops) + sum(clause.holds for clause in guard)
        if failed is None:
            return Attempt(rule, node, names, guard, progress=progress)
        return Attempt(rule, node, names, guard, f"`{failed.text}` is not known to hold", failed.span, None, progress)

    def _misfit(self, stop: Stop, held: Mapping[str, Any]) -> str:
        found = _look_up(stop.place, held)
        wanted = self.text(stop.term.span)
        if stop.earlier is not None:
            return f"`{wanted}` is {described(_look_up(stop.earlier, held))}, and here stands {described(found)}"
        dtype = f" ({found.dtype})" if isinstance(found, UOp) else ""
        return f"`{wanted}` does not match {described(found)}{dtype}"

    def _names(self, scope: Scope, held: Mapping[str, Any]) -> tuple[Value, ...]:
        values = []
        for name, binding in scope.names.items():
            try:
                found = _look_up(binding.code, held)
            except NameError:  # bound after the place where the match stopped
                continue
            values.append(Value(name, described(found), _facts(found)))
        return tuple(values)

    def _clauses(self, when: Formula | None, scope: Scope, held: Mapping[str, Any]) -> Iterator[Clause]:
        """The parts of a guard in order, up to the first that does not hold."""
        for part in _conjuncts(when):
            holds = bool(self._evaluate(part, scope, held))
            yield Clause(self.text(part.span), part.span, holds, tuple(self._values(part, scope, held)))
            if not holds:
                return

    def _values(self, part: Formula, scope: Scope, held: Mapping[str, Any]) -> Iterator[Value]:
        """The functions and names that a part of the guard was decided by, each once."""
        seen: set[str] = set()
        for formula in _below(part):
            text = self.text(formula.span)
            if text in seen:
                continue
            seen.add(text)
            if isinstance(formula, Function):
                yield Value(text, described(self._evaluate(formula, scope, held)))
            elif isinstance(formula, Name):
                binding = scope.names[formula.name]
                found = _look_up(binding.code, held)
                if binding.sort is Sort.CONST:
                    found = found.arg
                yield Value(text, described(found), _facts(found))

    def _evaluate(self, formula: Formula, scope: Scope, held: Mapping[str, Any]) -> object:
        names = dict(held) | {"ctx": self.context}
        try:
            return eval(value_code(formula, scope), generated_globals(), names)
        except NO_VALUE:
            return False


@dataclass(frozen=True, slots=True)
class Stop:
    """A test of a match: the part of the pattern, and as Python code the place in the node that it looks at."""

    term: Term
    place: str
    earlier: str | None  # what the name already stands for, where it stands again


class TracedPattern(PatternCode):
    """Matching code that returns the number of the test that failed, and the names bound so far."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.stops: list[Stop] = []
        self._inside: list[Stop] = []

    def match(self, term: Term, place: str, known_op: bool = False) -> None:
        """As for the engine, but with the operators tested too, which there the decision tree has seen to."""
        earlier = self.scope.names.get(term.name) if isinstance(term, Var) else None
        self._inside.append(Stop(term, place, earlier.code if earlier else None))
        super().match(term, place)
        self._inside.pop()

    def require(self, condition: str) -> None:
        self.emit(f"if not ({condition}): return {len(self.stops)}, dict(locals())")
        self.stops.append(self._inside[-1])

    def run(self, node: UOp, context: Context) -> tuple[int | None, dict[str, Any]]:
        """Matches a node: the number of the test that failed, None if none did, and the Python names at the end."""
        body = "\n".join(self.lines)
        namespace: dict[str, Any] = generated_globals()
        exec(f"def traced(n, ctx):\n{body}\n    return None, dict(locals())", namespace)  # noqa: S102
        reached, held = namespace["traced"](node, context)
        return reached, held


def _look_up(code: str, held: Mapping[str, Any]) -> Any:
    """The value of an expression of the generated code, with the names that the match had bound."""
    return eval(code, generated_globals(), dict(held))


def wholes(root: UOp, steps: Iterable[Step]) -> Iterator[tuple[UOp, UOp]]:
    """For each step the whole term before and after it, as if the rules had worked on the whole term all along."""
    made: dict[UOp, UOp] = {}
    for step in steps:
        root = _replaced(root, made)
        made[step.before] = step.after
        yield root, _replaced(root, made)


def _replaced(root: UOp, made: Mapping[UOp, UOp]) -> UOp:
    """The term with everything replaced by what the rules made of it so far."""
    done: dict[UOp, UOp] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [operand for operand in node.src if operand not in done]
        if missing:
            stack += missing
            continue
        rebuilt = (
            intern(node.op, node.dtype, tuple(done[operand] for operand in node.src), node.arg) if node.src else node
        )
        after = made.get(rebuilt, rebuilt)
        if after is not rebuilt and after not in done:
            stack.append(after)
            continue
        done[node] = done.get(after, after)
        stack.pop()
    return done[root]


def place_of(node: UOp, root: UOp) -> tuple[int, ...] | None:
    """The operand numbers, from 0, that lead from the root to a node; the first such way, None if it is not there."""
    way: dict[UOp, tuple[int, ...]] = {root: ()}
    stack = [root]
    while stack:
        above = stack.pop()
        if above is node:
            return way[above]
        for number, operand in reversed(list(enumerate(above.src))):
            if operand not in way:
                way[operand] = (*way[above], number)
                stack.append(operand)
    return None


def _forms(rule: Rule) -> Iterator[tuple[Instance, Term]]:
    """Every parameter value with every order of operands, as they are compiled."""
    for instance in rule.instances:
        for pattern in [instance.left] if rule.ordered else variants(instance.left):
            yield instance, pattern


def _judged_type(node: UOp) -> Any:
    """The type that `on` speaks of: of a comparison its operands', of a store the value's."""
    if node.op.negated is not None:
        return node.src[0].dtype
    return node.src[2].dtype if node.op.name == "store" else node.dtype


def _conjuncts(when: Formula | None) -> list[Formula]:
    if when is None:
        return []
    if isinstance(when, Logic) and when.word == "and":
        return [part for argument in when.args for part in _conjuncts(argument)]
    return [when]


def _below(formula: Formula) -> Iterator[Formula]:
    """The functions and names of a formula; what is inside a function is told by the function."""
    match formula:
        case Function():
            yield formula
            for argument in formula.args:
                if isinstance(argument, Name):
                    yield argument
        case Name():
            yield formula
        case InRange():
            for part in (formula.value, formula.low, formula.high):
                yield from _below(part)
        case Operation() | Logic():
            for part in formula.args:
                yield from _below(part)


def described(found: object) -> str:
    match found:
        case UOp():
            return expression(found, limit=40)
        case tuple():
            return ", ".join(described(one) for one in found) or "nothing"
        case Op():
            return found.name
        case bool():
            return "true" if found else "false"
        case _:
            return str(found)


def _facts(found: object) -> str:
    """What is known of an integer node: its bounds and its remainder."""
    if not isinstance(found, UOp) or found.op.name == "const" or found.dtype.kind not in ("index", "sint", "uint"):
        return ""
    low, high = facts.interval(found)
    modulus, remainder = facts.congruence(found)
    told = []
    if (low, high) != type_range(found.dtype):
        told.append(f"in {low}..{high + 1}" if isinstance(high, int) else f">= {low}")
    if modulus > 1:
        told.append(f"a multiple of {modulus}" if remainder == 0 else f"{remainder} more than a multiple of {modulus}")
    return ", ".join(told)
