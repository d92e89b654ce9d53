"""The fixed point: applies a stage's rules to every node, bottom-up, until none fires.

One work list, no recursion. Each node is brought to its normal form once and remembered (`done`); what a rule made of
a node is brought to its normal form next, and the node takes it over (`waiting`). The cost is linear in the nodes
visited and the rules that fire; a shared node is visited once, however many users it has. A node that needs its own
normal form, by way of what rules made of it, shows that the rules loop; so does a stage that runs out of fuel.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from ..errors import RewriteError
from ..uop import UOp, intern, walk
from .matcher import Matcher


class StopReason(Enum):
    """Why a stage ended."""

    SATURATED = "no rule fires any more"
    APPLIED = "every node was visited once"


@dataclass(frozen=True, slots=True)
class Step:
    """One firing: which rule turned what into what."""

    rule: str
    before: UOp
    after: UOp


@dataclass(slots=True)
class Report:
    """What a stage did: the new graph, why it ended, how often each rule fired, and each step if it was asked for."""

    graph: UOp
    stop: StopReason
    fires: Counter[str] = field(default_factory=Counter)
    steps: list[Step] = field(default_factory=list)
    visited: int = 0


class LoopError(RewriteError):
    """The rules loop: `rules` is the cycle, `term` the smallest term that comes back."""

    def __init__(self, rules: list[str], term: UOp, problem: str) -> None:
        self.rules, self.term = rules, term
        cycle = " -> ".join(rules)
        super().__init__(
            f"{problem}: {cycle} (smallest term: {term!r}). "
            "Make one of these rules shrink its term, or move it to a `once` stage."
        )


FUEL, FUEL_PER_NODE = 100_000, 1_000
"""How many times rules may fire in a stage: so often, and so often for each node of its graph."""

MAX_CHAIN = 10_000
"""How often one node may be rewritten in a row before the rules are taken to loop."""


@contextmanager
def paused_collector() -> Iterator[None]:
    """No cycle collection meanwhile: graphs have no cycles, and scanning millions of nodes costs more than the work."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def run_stage(
    root: UOp, matcher: Matcher, *, once: bool = False, fuel: int | None = None, keep_steps: bool = False
) -> Report:
    """Brings `root` to the fixed point of the matcher's rules; with `once`, applies them once to each node.

    `fuel` limits how many times rules may fire; by default a generous multiple of the graph's size.
    Raises LoopError if the rules loop or the fuel runs out.
    """
    with paused_collector():
        return _Run(matcher, once, fuel, keep_steps).normalize(root)


class _Run:
    """The state of one stage."""

    def __init__(self, matcher: Matcher, once: bool, fuel: int | None, keep_steps: bool) -> None:
        self.matcher, self.once, self.keep_steps = matcher, once, keep_steps
        self.fuel = FUEL if fuel is None else fuel
        self.may_refuel = fuel is None
        self.root: UOp | None = None
        self.done: dict[UOp, UOp] = {}
        self.waiting: dict[UOp, UOp] = {}
        self.made_by: dict[UOp, tuple[str, int]] = {}  # result -> rule and length of the chain of rules that made it
        self.opened: set[UOp] = set()
        self.fires: Counter[str] = Counter()
        self.steps: list[Step] = []

    def normalize(self, root: UOp) -> Report:
        done, waiting, opened = self.done, self.waiting, self.opened
        self.root = root
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            made = waiting.get(node)
            if made is not None:
                if made not in done:
                    raise self._loop(node, stack)
                done[node] = done[made]
                stack.pop()
                continue
            missing = [s for s in node.src if s not in done]
            if missing:
                if node in opened:
                    raise self._loop(node, stack)
                opened.add(node)
                missing.reverse()
                stack += missing
                continue
            self._finish(node, stack)
        stop = StopReason.APPLIED if self.once else StopReason.SATURATED
        return Report(done[root], stop, self.fires, self.steps, len(done))

    def _finish(self, node: UOp, stack: list[UOp]) -> None:
        """All operands are in normal form: rebuilds the node on them and lets the first rule that fires have it."""
        done = self.done
        rebuilt = node
        for s in node.src:
            if done[s] is not s:
                rebuilt = intern(node.op, node.dtype, tuple([done[s] for s in node.src]), node.arg)
                break
        if rebuilt is not node and rebuilt in done:
            done[node] = done[rebuilt]
            stack.pop()
            return
        found = self.matcher.match(rebuilt)
        if found is None:
            done[node] = done[rebuilt] = rebuilt
            stack.pop()
            return
        result, rule = found
        self._count(rebuilt, result, rule)
        if self.once or result in done:
            done[node] = done[rebuilt] = result if self.once else done[result]
            stack.pop()
            return
        self.waiting[node] = result
        if rebuilt is not node:
            self.waiting[rebuilt] = result
        stack.append(result)

    def _count(self, before: UOp, after: UOp, rule: str) -> None:
        if after.dtype is not before.dtype:
            raise RewriteError(
                f"rule {rule} turned a {before.dtype} into a {after.dtype}: {before!r} => {after!r}. "
                "Both sides of a rule must have one type; add a cast or restrict the rule with `on`."
            )
        self.fires[rule] += 1
        if self.keep_steps:
            self.steps.append(Step(rule, before, after))
        length = self.made_by.get(before, ("", 0))[1] + 1
        self.made_by[after] = (rule, length)
        self.fuel -= 1
        if self.fuel < 0 and self.may_refuel:  # only now is the graph's size worth counting
            self.may_refuel = False
            self.fuel += FUEL_PER_NODE * _size(self.root or before)
        if self.fuel < 0 or length > MAX_CHAIN:
            busiest = [name for name, _ in self.fires.most_common(4)]
            raise LoopError(busiest, min(before, after, key=_size), "the rules do not come to an end; busiest")

    def _loop(self, node: UOp, stack: list[UOp]) -> LoopError:
        """Reads the cycle off the work list: from the earlier visit of `node` up to its top."""
        start = stack.index(node)
        cycle = [n for n in stack[start:] if n in self.waiting or n in self.opened]
        rules: list[str] = []
        for one in cycle:
            made = self.waiting.get(one)
            if made is not None and made in self.made_by and (not rules or rules[-1] != self.made_by[made][0]):
                rules.append(self.made_by[made][0])
        rewritten = [one for one in cycle if one in self.waiting]
        return LoopError(rules, min(rewritten or [node], key=_size), "the rules loop")


def _size(node: UOp) -> int:
    return sum(1 for _ in walk(node))
