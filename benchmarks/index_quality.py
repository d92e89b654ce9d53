"""How far index expressions get simplified: cost before and after, beside a form that is known to be good.

    python benchmarks/index_quality.py index.jsonl [kernels.jsonl] [--losers] [--peers]

`index.jsonl` holds one case a line: `id`, `kind`, `vars` (name: [lowest, highest]), `expr`, `expect`, perhaps `assume`
(conditions that hold) and `free` (the bounds are only for checking). Every result is checked on every point of the
ranges, or on a sample where there are many. Of `kernels.jsonl` the indices of loads and stores are simplified.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from index_forms import Array, Form, cost, from_graph, text, to_graph, truths, values, variables
from rulewright.engine import ops
from rulewright.engine.errors import RewriteError
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.uop import UOp, make, walk

POINTS = 20_000
"""Above so many points a sample of so many is checked."""


@dataclass(frozen=True)
class Case:
    """One line of the file."""

    name: str
    kind: str
    bounds: dict[str, tuple[int, int]]
    free: bool
    expression: Form
    expected: Form
    assumptions: tuple[Form, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `wrong` says where the value changed."""

    case: Case
    result: Form
    wrong: str | None

    @property
    def reached(self) -> bool:
        return self.wrong is None and cost(self.result) <= cost(self.case.expected)


def read_cases(path: Path) -> Iterator[Case]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        bounds = {name: (low, high) for name, (low, high) in row["vars"].items()}
        yield Case(
            row["id"], row["kind"], bounds, row.get("free", False), row["expr"], row["expect"], tuple(row.get("assume", ()))
        )  # fmt: skip


def points(case: Case) -> dict[str, Array]:
    """Values for the names: all combinations in their bounds that the assumptions allow, or a sample of them."""
    sizes = [high - low + 1 for low, high in case.bounds.values()]
    if not sizes:
        return {}
    total = int(np.prod(sizes, dtype=float))
    if total <= POINTS:
        rows = np.array(list(itertools.product(*(range(low, high + 1) for low, high in case.bounds.values()))))
    else:
        chance = random.Random(case.name)
        draws = [[chance.randint(low, high) for _ in range(POINTS)] for low, high in case.bounds.values()]
        rows = np.array(draws).T
    found = dict(zip(case.bounds, rows.T.astype(np.int64), strict=True))
    holds = np.full(len(rows), True)
    for assumption in case.assumptions:
        holds &= values(assumption, found)[0].astype(bool)
    return {name: column[holds] for name, column in found.items()}


def difference(case: Case, result: Form) -> str | None:
    """Where the result has another value than the expression, or None where the expression has one."""
    at = points(case)
    before, defined = values(case.expression, at)
    after, still = values(result, at)
    different = np.atleast_1d(defined & ((before != after) | ~still))
    if not different.any():
        return None
    place = int(np.argmax(different))
    where = {name: int(column[place]) for name, column in at.items()}
    return f"{text(case.expression)} is not {text(result)} at {where}"


def simplified(case: Case, rules: RuleSet) -> Outcome:
    """The case through the rules."""
    names = variables(case.bounds, case.free, truths([case.expression, case.expected, *case.assumptions]))
    graph = to_graph(case.expression, names)
    for assumption in case.assumptions:
        graph = make(ops.ASSUME, to_graph(assumption, names), graph)
    try:
        graph, _ = rules.rewrite(graph, "simplify")
    except RewriteError as problem:
        return Outcome(case, case.expression, str(problem))
    while graph.op is ops.ASSUME:
        graph = graph.src[1]
    result = from_graph(graph, names)
    return Outcome(case, result, difference(case, result))


# --- indices of kernels ----------------------------------------------------------------------------------------------


def kernel_indices(path: Path, limit: int) -> Iterator[UOp]:
    """The indices and gates of every load and store, as the kernels are lowered, each once a kernel."""
    from rulewright.engine.target import ANY_TARGET
    from rulewright.kernels.json_form import read_kernels
    from rulewright.kernels.lower import lower

    for kernel in itertools.islice(read_kernels(path), limit):
        graph = lower(kernel, (), ANY_TARGET)
        found = dict.fromkeys(
            operand
            for node in walk(graph)
            if node.op in (ops.LOAD, ops.STORE)
            for operand in (node.src[1], *(node.src[2:3] if node.op is ops.LOAD else node.src[3:4]))
        )
        yield from found


def graph_cost(graph: UOp) -> int:
    """The cost of a graph, every node counted once."""
    costs = {ops.FLOORDIV: 10, ops.FLOORMOD: 10, ops.TRUNCDIV: 10, ops.TRUNCMOD: 10, ops.MUL: 3}
    return sum(costs.get(node.op, 1) for node in walk(graph) if node.src and node.op not in (ops.RANGE, ops.SPECIAL))


# --- the tables ------------------------------------------------------------------------------------------------------


def report_cases(outcomes: list[Outcome], seconds: float, losers: bool) -> None:
    kinds = Counter(outcome.case.kind for outcome in outcomes)
    print(f"{'kind':10} {'cases':>6} {'reached':>8} {'before':>8} {'after':>8} {'expected':>9}")
    for kind in [*kinds, None]:
        part = [outcome for outcome in outcomes if kind in (outcome.case.kind, None)]
        reached = sum(outcome.reached for outcome in part)
        sums = [sum(map(cost, forms)) for forms in zip(
            *((o.case.expression, o.result, o.case.expected) for o in part), strict=True)]  # fmt: skip
        share = f"{100 * reached / len(part):.1f} %"
        print(f"{kind or 'all':10} {len(part):6} {share:>8} {sums[0]:8} {sums[1]:8} {sums[2]:9}")
    untouched = sum(cost(outcome.case.expression) <= cost(outcome.case.expected) for outcome in outcomes)
    print(f"{len(outcomes)} cases in {seconds:.2f} s; doing nothing reaches {100 * untouched / len(outcomes):.1f} %")
    for outcome in outcomes:
        if outcome.wrong:
            print(f"WRONG {outcome.case.name}: {outcome.wrong}")
        elif losers and not outcome.reached:
            case = outcome.case
            given = "".join(f"; {text(assumption)}" for assumption in case.assumptions)
            print(f"{case.name}: {text(case.expression)} [{'free' if case.free else case.bounds}{given}]")
            print(f"    {cost(outcome.result):4} {text(outcome.result)}")
            print(f"    {cost(case.expected):4} {text(case.expected)}")


def report_peer(name: str, cases: list[Case], simplify: Any) -> None:
    """One line for another simplifier; what it cannot be asked counts as not reached."""
    reached = wrong = unasked = 0
    for case in cases:
        result = simplify(case)
        if result is None:
            unasked += 1
        elif difference(case, result):
            wrong += 1
        else:
            reached += cost(result) <= cost(case.expected)
    share = 100 * reached / len(cases)
    print(f"{name}: {share:.1f} % reached, {wrong} wrong, {unasked} not asked or failed")


def report_kernels(path: Path, rules: RuleSet, limit: int) -> None:
    indices = list(dict.fromkeys(kernel_indices(path, limit)))
    begin = time.perf_counter()
    after = [rules.rewrite(index, "simplify")[0] for index in indices]
    seconds = time.perf_counter() - begin
    before, now = sum(map(graph_cost, indices)), sum(map(graph_cost, after))
    print(f"{len(indices)} indices and gates of kernels: cost {before} before, {now} after, in {seconds:.2f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("kernels", type=Path, nargs="?")
    parser.add_argument("--losers", action="store_true", help="list the cases that cost more than expected")
    parser.add_argument("--peers", action="store_true", help="the same cases through tinygrad and TVM, where installed")
    parser.add_argument("--limit", type=int, default=600, help="how many kernels")
    options = parser.parse_args()
    if not options.cases.exists():
        print(f"there is no {options.cases}", file=sys.stderr)
        return 2
    rules = RuleSet.builtin()
    cases = list(read_cases(options.cases))
    begin = time.perf_counter()
    outcomes = [simplified(case, rules) for case in cases]
    report_cases(outcomes, time.perf_counter() - begin, options.losers)
    if options.peers:
        from index_peers import peers

        for name, simplify in peers():
            report_peer(name, cases, simplify)
    if options.kernels is not None and options.kernels.exists():
        report_kernels(options.kernels, rules, options.limit)
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
