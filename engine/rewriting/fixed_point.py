"""The fixed point: applies a stage's rules to every node, bottom-up, until none fires.

One work list, no recursion. Each node is brought to its normal form once and remembered (`done`); what a rule made of
a node is brought to its normal form next, and the node takes it over (`takers`). The cost is linear in the nodes
visited and the rules that fire; a shared node is visited once, however many users it has. A node that needs its own
normal form, by way of what rules made of it, shows that the rules loop; so does a stage that runs out of fuel.

An operator that has rules on chains gives its nodes two normal forms. As a *link*, asked for by a user of the same
operator, a node is rewritten by the rules on single nodes only. As a *top*, asked for by any other user, it is the
chain of all links below it, and the rules on chains work on its terms (`engine.rewriting.chain_run`).
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..errors import RewriteError
from ..uop import UOp, intern, walk
from .chain_run import ChainRun
from .chains import terms_of
from .matcher import Matcher, shape_of
from .shapes import shape


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

Rewritten = tuple["UOp | None", str]
"""What a rule made, and the rule; None: no rule fires. Without a rule's name the firings are already counted."""


class _Run:
    """The state of one stage."""

    def __init__(self, matcher: Matcher, once: bool, fuel: int | None, keep_steps: bool) -> None:
        self.matcher, self.once, self.keep_steps = matcher, once, keep_steps
        self.fuel = FUEL if fuel is None else fuel
        self.may_refuel = fuel is None
        self.root: UOp | None = None
        self.stack: list[Form | None] = []  # None above a form: its operands have been asked for
        self.done: dict[Form, UOp] = {}
        self.takers: dict[Form, list[Form | str]] = {}
        """What a rule made and has no normal form yet -> what takes it over, with the rule, in the order of time."""
        self.chains: dict[Form, ChainRun] = {}  # tops whose terms are being rewritten
        self.fires: Counter[str] = Counter()
        self.steps: list[Step] = []

    def normalize(self, root: UOp) -> Report:
        """The engine's inner loop: each turn looks at the top of the work list."""
        stack, done, takers, chains = self.stack, self.done, self.takers, self.chains
        matcher = self.matcher
        trees, pairs, context = matcher.trees, matcher.pairs, matcher.context
        find = done.get
        self.root = root
        stack.append(root)
        while stack:
            form = stack[-1]
            opened = form is None
            if form is None:
                stack.pop()
                form = stack[-1]
                assert form is not None
            value = find(form)
            if value is not None:
                stack.pop()
                if takers and form in takers:
                    self._hand_on(form, value)
                continue
            node = form[0] if isinstance(form, tuple) else form
            op, src = node.op, node.src
            chained = op in pairs

            # the operands in normal form; those that are not there yet go first
            if len(src) == 2:
                x, y = src
                first: Form = (x,) if chained and x.op is op else x
                second: Form = (y,) if chained and y.op is op else y
                a, b = find(first), find(second)
                if a is None and (not x.src and x.op not in trees or first is not x and find(x) is x):
                    a = x  # a leaf that no rule can match, or a link that as a top is as it is
                if b is None and (not y.src and y.op not in trees or second is not y and find(y) is y):
                    b = y
                if a is None or b is None:
                    if opened:
                        raise self._loop(form)
                    stack.append(None)
                    if b is None:
                        stack.append(second)
                    if a is None:
                        stack.append(first)
                    continue
                same = node if a is x and b is y else intern(op, node.dtype, (a, b), node.arg)
                key: object = (a.dtype, a._shape or shape(a), b._shape or shape(b))
            else:
                operands: tuple[Any, ...] = tuple([find(s) for s in src])
                if None in operands:
                    missing = self._missing(src)
                    if missing:
                        if opened:
                            raise self._loop(form)
                        stack.append(None)
                        stack += missing
                        continue
                    operands = tuple([done[s] for s in src])
                same = node if operands == src else intern(op, node.dtype, operands, node.arg)
                key = None
            if same is not node:
                value = find(same if form is node else (same,))
                if value is not None:
                    done[form] = value
                    continue

            # the first rule that fires
            result, rule = None, ""
            if not chained or form not in chains:
                is_pair = chained and form is node and same.src[0].op is not op and same.src[1].op is not op
                tree = pairs[op] if is_pair else trees.get(op)
                if tree is not None:
                    if key is None:
                        key = shape_of(same)
                    leaf = tree.get(key)
                    if leaf is None:
                        leaf = tree.grow(same, key)
                    for candidate in leaf:
                        made = candidate[0](same, context)
                        if made is not None and made is not same:
                            result, rule = made, candidate[1]
                            break
            if result is None and chained and form is node and not is_pair:
                found = self._chain(node, same)
                if found is None:
                    continue
                result, rule = found
            if result is not None:
                self._rewrite(form, same, result, rule)
                continue
            done[form] = same
            if same is not node:
                done[same if form is node else (same,)] = same
            stack.pop()
            if takers and form in takers:
                self._hand_on(form, same)
        stop = StopReason.APPLIED if self.once else StopReason.SATURATED
        return Report(done[root], stop, self.fires, self.steps, len(done))

    def _missing(self, src: tuple[UOp, ...]) -> list[UOp]:
        """The operands that have no normal form yet, the first last; leaves that no rule can match get theirs here."""
        missing = []
        for s in reversed(src):
            if s not in self.done:
                if s.src or s.op in self.matcher.trees:
                    missing.append(s)
                else:
                    self.done[s] = s
        return missing

    def _rewrite(self, form: Form, same: UOp, result: UOp, rule: str) -> None:
        """A rule fired on `same`, which is `form` on its operands' normal forms: now what it made is next."""
        if rule:
            if result.dtype is not same.dtype:
                raise _wrong_type(rule, same, result)
            self.fires[rule] += 1
            if self.keep_steps:
                self.steps.append(Step(rule, same, result))
            self.fuel -= 1
            if self.fuel < 0:
                self._refuel(same)
        done = self.done
        made: Form = (result,) if isinstance(form, tuple) and result.op is same.op else result
        settled = self.once or not result.src and result.op not in self.matcher.trees
        value = result if settled else done.get(made)
        if value is not None:
            done[form] = value  # not for `same`: hardly anything asks for what is rewritten at once
            return
        takers = self.takers.pop(form, None)
        if takers is None:
            takers = [form, rule]
        else:
            takers += (form, rule)
        if made in self.takers or (len(takers) & 1023 < 64 and made in takers):
            self.takers.setdefault(made, []).extend(takers)
            raise self._loop(made)
        self.takers[made] = takers
        self.stack[-1] = made

    def _hand_on(self, form: Form, value: UOp) -> None:
        """The normal form of `form` is also that of what rules turned into it."""
        for taker in self.takers.pop(form):
            if not isinstance(taker, str):
                self.done[taker] = value

    # --- chains ------------------------------------------------------------------------------------------------------

    def _chain(self, form: UOp, node: UOp) -> Rewritten | None:
        """Applies the rules on chains to the top `node`; None while terms that they made have yet to be simplified."""
        rules = self.matcher.chain_rules(node.op, node.dtype)
        if rules is None:
            return None, ""
        run = self.chains.get(form)
        if run is None:
            terms = terms_of(node.op, node)
            attempts = rules.attempts(terms)
            if attempts is not None:
                return rules.first(node, terms, attempts, self.matcher.context) or (None, "")
            run = self.chains[form] = ChainRun(node, rules, self.matcher.context, self._count_terms, self.keep_steps)
        elif any(term not in self.done for term, _ in run.new):
            raise self._loop(form)
        if not self._run_chain(run):
            return None
        result = self.chains.pop(form).result()
        return (
            (result, "")
            if result is not node
            else rules.first_whole(node, rules.whole, self.matcher.context) or (None, "")
        )

    def _run_chain(self, run: ChainRun) -> bool:
        """Applies the rules on terms; False while terms that they made have yet to be simplified."""
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
        self.fuel -= 1
        if self.fuel < 0:
            self._refuel(term)

    # --- the end of the fuel, and loops ----------------------------------------------------------------------------------

    def _refuel(self, term: UOp) -> None:
        """The fuel is used up: a generous multiple of the graph's size is allowed, which only now is worth counting."""
        if self.may_refuel:
            self.may_refuel = False
            self.fuel += FUEL_PER_NODE * _size(self.root or term)
        if self.fuel < 0:
            busiest = [name for name, _ in self.fires.most_common(4)]
            raise LoopError(busiest, term, "the rules do not come to an end; busiest")

    def _loop(self, form: Form) -> LoopError:
        """The rules that led from `form` back to it, and the smallest term on the way."""
        forms: list[Form] = [form]
        rules: list[str] = []
        known = False
        for made, takers in self.takers.items():
            known = known or made == form or form in takers
            if known:
                forms += [made, *(one for one in takers if not isinstance(one, str))]
                rules += [one for one in takers if isinstance(one, str) and one and [one] != rules[-1:]]
        busiest = [name for name, _ in self.fires.most_common(4)]
        return LoopError(rules or busiest, min(map(_node, forms), key=_size), "the rules loop")


def _wrong_type(rule: str, before: UOp, after: UOp) -> RewriteError:
    return RewriteError(
        f"rule {rule} turned a {before.dtype} into a {after.dtype}: {before!r} => {after!r}. "
        "Both sides of a rule must have one type; add a cast or restrict the rule with `on`."
    )


def _node(form: Form) -> UOp:
    return form[0] if isinstance(form, tuple) else form


def _size(node: UOp) -> int:
    return sum(1 for _ in walk(node))
