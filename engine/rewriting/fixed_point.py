"""The fixed point: applies a stage's rules to every node, bottom-up, until none fires.

One work list, no recursion. Each node is brought to its normal form once and remembered (`done`); what a rule made of
a node is brought to its normal form next, and the node takes it over (`waiting`). The cost is linear in the nodes
visited and the rules that fire; a shared node is visited once, however many users it has. A node that needs its own
normal form, by way of what rules made of it, shows that the rules loop; so does a stage that runs out of fuel.

An operator that has rules on chains gives its nodes two normal forms. As a *link*, asked for by a user of the same
operator, a node is rewritten by the rules on single nodes only. As a *top*, asked for by any other user, it is the
chain of all links below it, and the rules on chains work on its terms (`engine.rewriting.chain_run`).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from ..errors import RewriteError
from ..uop import UOp, intern, walk
from .chain_run import ChainRules, ChainRun
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


Form = UOp | tuple[UOp]
"""Which normal form of a node: as a top (the node), or as a link of a chain (a tuple of it)."""


class _Run:
    """The state of one stage."""

    def __init__(self, matcher: Matcher, once: bool, fuel: int | None, keep_steps: bool) -> None:
        self.matcher, self.once, self.keep_steps = matcher, once, keep_steps
        self.fuel = FUEL if fuel is None else fuel
        self.may_refuel = fuel is None
        self.root: UOp | None = None
        self.done: dict[Form, UOp] = {}
        self.waiting: dict[Form, Form] = {}
        self.made_by: dict[UOp, tuple[str, int]] = {}  # result -> rule and length of the chain of rules that made it
        self.opened: set[Form] = set()
        self.chains: dict[UOp, ChainRun] = {}  # tops whose terms are being rewritten
        self.fires: Counter[str] = Counter()
        self.steps: list[Step] = []
        self.stack: list[Form] = []

    def normalize(self, root: UOp) -> Report:
        done, waiting, stack = self.done, self.waiting, self.stack
        chain_operators = self.matcher.chain_operators
        self.root = root
        stack.append(root)
        while stack:
            form = stack[-1]
            if form in done:
                stack.pop()
                continue
            made = waiting.get(form)
            if made is not None:
                if made not in done:
                    raise self._loop(form)
                done[form] = done[made]
                stack.pop()
            elif isinstance(form, tuple):
                (node,) = form
                self._visit(form, node, [(s,) if s.op is node.op else s for s in node.src])
            elif form.op in chain_operators and (rules := self.matcher.chain_rules(form.op, form.dtype)) is not None:
                self._visit_top(form, rules)
            else:
                self._visit(form, form, form.src)
        stop = StopReason.APPLIED if self.once else StopReason.SATURATED
        return Report(done[root], stop, self.fires, self.steps, len(done))

    def _visit(self, form: Form, node: UOp, needed: Sequence[Form]) -> None:
        """Asks for the operands, or, when they are there, rewrites the node."""
        missing = [s for s in needed if s not in self.done]
        if missing:
            if form in self.opened:
                raise self._loop(form)
            self.opened.add(form)
            missing.reverse()
            self.stack += missing
        else:
            self._finish(form, node, needed)

    def _finish(self, form: Form, node: UOp, needed: Sequence[Form]) -> None:
        """All operands are in normal form: rebuilds the node on them and lets the first rule that fires have it."""
        done = self.done
        rebuilt = node
        for s, form_of_s in zip(node.src, needed, strict=True):
            if done[form_of_s] is not s:
                rebuilt = intern(node.op, node.dtype, tuple([done[s] for s in needed]), node.arg)
                break
        same: Form = rebuilt if form is node else (rebuilt,)
        if rebuilt is not node and same in done:
            done[form] = done[same]
            self.stack.pop()
            return
        found = self.matcher.match(rebuilt) if form is node else self.matcher.match_link(rebuilt)
        if found is None:
            done[form] = done[same] = rebuilt
            self.stack.pop()
            return
        result, rule = found
        self._count(rebuilt, result, rule)
        self._continue(form, same, result if form is node or result.op is not node.op else (result,))

    def _continue(self, form: Form, same: Form, made: Form) -> None:
        """What a rule made is brought to its normal form, and `form`, which is now `same`, takes it over."""
        done = self.done
        result = made[0] if isinstance(made, tuple) else made
        if self.once or made in done:
            done[form] = done[same] = result if self.once else done[made]
            self.stack.pop()
            return
        self.waiting[form] = self.waiting[same] = made
        self.stack.append(made)

    # --- chains ------------------------------------------------------------------------------------------------------

    def _visit_top(self, node: UOp, rules: ChainRules) -> None:
        """A node that is the top of a chain: first as a link, then its terms."""
        done = self.done
        link = done.get((node,))
        if link is None:
            self.stack.append((node,))
        elif link.op is not node.op:
            if link in done:
                done[node] = done[link]
                self.stack.pop()
            else:
                self._continue(node, node, link)
        elif link is not node and link in done:
            done[node] = done[link]
            self.stack.pop()
        elif self._run_chain(node, link, rules):
            result = self.chains.pop(node).result()
            found = None if result is not link else self.matcher.match_whole(rules, link)
            if found is not None:
                result, rule = found
                self._count(link, result, rule)
            if result is link:
                done[node] = done[link] = link
                self.stack.pop()
            else:
                self._continue(node, link, result)

    def _run_chain(self, node: UOp, link: UOp, rules: ChainRules) -> bool:
        """Applies the rules on terms; False while terms that they made have yet to be simplified."""
        run = self.chains.get(node)
        if run is None:
            run = self.chains[node] = ChainRun(link, rules, self.matcher.context, self._count_terms, self.keep_steps)
        elif any(term not in self.done for term, _ in run.new):
            raise self._loop(node)
        while True:
            for term, place in run.new:
                run.add(term if self.once else self.done[term], place)
            run.new.clear()
            if self.once and run.changed:
                return True
            run.run()
            if run.steps:
                self.steps += [Step(*step) for step in run.steps]
                run.steps.clear()
            missing = [] if self.once else [term for term, _ in run.new if term not in self.done]
            if missing:
                self.stack += missing
                return False
            if not run.new:
                return True

    def _count_terms(self, rule: str, term: UOp) -> None:
        self.fires[rule] += 1
        self._burn(term)

    # --- counting, loops ---------------------------------------------------------------------------------------------

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
        self._burn(before)
        if length > MAX_CHAIN:
            raise self._endless(min(before, after, key=_size))

    def _burn(self, term: UOp) -> None:
        """One firing less to go."""
        self.fuel -= 1
        if self.fuel < 0 and self.may_refuel:  # only now is the graph's size worth counting
            self.may_refuel = False
            self.fuel += FUEL_PER_NODE * _size(self.root or term)
        if self.fuel < 0:
            raise self._endless(term)

    def _endless(self, term: UOp) -> LoopError:
        busiest = [name for name, _ in self.fires.most_common(4)]
        return LoopError(busiest, term, "the rules do not come to an end; busiest")

    def _loop(self, form: Form) -> LoopError:
        """Reads the cycle off the work list: from the earlier visit of `form` up to its top."""
        start = self.stack.index(form)
        cycle = [one for one in self.stack[start:] if one in self.waiting or one in self.opened]
        rules: list[str] = []
        for one in cycle:
            made = self.waiting.get(one)
            by = self.made_by.get(_node(made)) if made is not None else None
            if by is not None and (not rules or rules[-1] != by[0]):
                rules.append(by[0])
        rewritten = [_node(one) for one in cycle if one in self.waiting]
        busiest = [name for name, _ in self.fires.most_common(4)]
        return LoopError(rules or busiest, min(rewritten or [_node(form)], key=_size), "the rules loop")


def _node(form: Form) -> UOp:
    return form[0] if isinstance(form, tuple) else form


def _size(node: UOp) -> int:
    return sum(1 for _ in walk(node))
