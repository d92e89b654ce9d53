"""`rulewright stats`: what each rule costs and brings over a set of kernels, and which rules never fire."""

from __future__ import annotations

import json
from collections.abc import Callable

from rich.progress import track
from rich.table import Table

from ..engine.errors import RulewrightError
from ..engine.rewriting import RuleSet
from ..engine.rewriting.statistics import RuleCost, measured
from ..kernels.kernel import Kernel
from ..program import compile_kernel
from .choices import check_choices
from .console import complain, console, duration
from .kernel_files import find_kernels
from .rule_files import with_builtin
from .samples import SAMPLES

ORDERS: dict[str, Callable[[tuple[str, RuleCost]], tuple[float, str]]] = {
    "time": lambda one: (-one[1].seconds, one[0]),
    "hits": lambda one: (-one[1].hits, one[0]),
    "tries": lambda one: (-one[1].tries, one[0]),
    "rule": lambda one: (0, one[0]),
}
"""What the table may be sorted by."""


def stats_command(
    names: list[str], device: str, schedule: str, math: str, rules: list[str], order: str, top: int, as_json: bool
) -> int:
    """Prints the table; 1 if some kernel could not be compiled (its reason is printed, the others count)."""
    check_choices(device, schedule)
    kernels = [kernel for name in names or SAMPLES for kernel in find_kernels(name)]
    rule_set, costs = measured(with_builtin(rules) if rules else RuleSet.builtin())
    failed = 0
    with_bar = track(kernels, "kernels", console=console(stderr=True), transient=True, disable=len(kernels) < 3)
    for kernel in with_bar:
        failed += not _compiled(kernel, device, schedule, math, rule_set)
    if as_json:
        document = {
            rule: {"tries": cost.tries, "hits": cost.hits, "seconds": cost.seconds} for rule, cost in costs.items()
        }
        print(json.dumps({"kernels": len(kernels), "failed": failed, "rules": document}, indent=2))
    else:
        _print(costs, len(kernels), order, top)
    return 1 if failed else 0


def _compiled(kernel: Kernel, device: str, schedule: str, math: str, rules: RuleSet) -> bool:
    try:
        compile_kernel(kernel, device, schedule, math, rules)
    except RulewrightError as problem:
        complain(str(problem), f"{kernel.id or 'kernel'}: ")
        return False
    return True


def _print(costs: dict[str, RuleCost], kernels: int, order: str, top: int) -> None:
    out = console()
    table = Table("rule", show_edge=False, pad_edge=False)
    for column in ("tries", "hits", "share", "time", "a try"):
        table.add_column(column, justify="right")
    tried = sorted(((rule, cost) for rule, cost in costs.items() if cost.tries), key=ORDERS[order])
    for rule, cost in tried[:top]:
        times = duration(cost.seconds), duration(cost.seconds / cost.tries)
        table.add_row(rule, f"{cost.tries:,}", f"{cost.hits:,}", f"{cost.hits / cost.tries:.1%}", *times)
    out.print(table)
    if len(tried) > top:
        out.print(f"… and {len(tried) - top} more rules; --top shows them")
    idle = [rule for rule, cost in costs.items() if cost.tries and not cost.hits]
    never = [rule for rule, cost in costs.items() if not cost.tries]
    hits = sum(cost.hits for cost in costs.values())
    out.print(f"\n{kernels} kernels: {len(costs)} rules, {hits:,} hits, {sum(c.tries for c in costs.values()):,} tries")
    _print_names("tried, but never fired", idle)
    _print_names("never tried: no node had their operators", never)


def _print_names(what: str, rules: list[str]) -> None:
    if rules:
        console().print(f"\n{len(rules)} {what}:\n  " + ", ".join(rules), markup=False)
