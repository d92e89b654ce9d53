"""`rulewright show`: a kernel at one stage of its way, from ranges to source."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..engine.errors import RulewrightError
from ..engine.printing import listing
from ..engine.rewriting import RuleSet
from ..engine.uop import UOp
from ..kernels.kernel import Kernel
from ..program import Program, compile_kernel
from ..renderers.listing import ListingRenderer
from .choices import check_choices
from .console import InputError, console
from .kernel_files import find_kernel
from .rule_files import with_builtin
from .timings import timings_command

BEFORE, AFTER = "lower", ("linear", "source")
"""The stages before and after those of the pipeline."""


@dataclass(slots=True)
class Travel:
    """What a kernel became, stage by stage, up to the first error."""

    graphs: list[tuple[str, UOp]] = field(default_factory=list)
    program: Program | None = None
    problem: RulewrightError | None = None


def show_command(
    name: str, stage: str, device: str, schedule: str, math: str, rules: list[str], timings: bool = False
) -> int:
    """Prints the stage alone, so that the source can be piped into a file; `all` prints each with a heading."""
    check_choices(device, schedule)
    kernel = find_kernel(name)
    rule_set = with_builtin(rules) if rules else RuleSet.builtin()
    if timings:
        return timings_command(kernel, device, schedule, math, rule_set)
    wanted = _stages(rule_set) if stage == "all" else [_find(stage, _stages(rule_set))]
    travel = _travel(kernel, device, schedule, math, rule_set)
    texts = _texts(travel)
    out = console()
    for one in wanted:
        if one not in texts and travel.problem is not None:
            raise travel.problem
        if stage == "all":
            out.rule(one, align="left")
        out.print(texts[one], markup=False, soft_wrap=True)
    return 0


def _stages(rules: RuleSet) -> list[str]:
    return [BEFORE, *_numbered([f"{mode}({', '.join(groups)})" for mode, groups in rules.stages("kernel")]), *AFTER]


def _numbered(names: list[str]) -> list[str]:
    return [f"{number} {name}" for number, name in enumerate(names, 1)]


def _find(asked: str, stages: list[str]) -> str:
    """The stage of this name or number, or the one that is called after the group it begins with."""
    for matches in (
        lambda stage: asked == stage,
        lambda stage: asked == stage.split()[0],
        lambda stage: f"({asked}," in stage or f"({asked})" in stage,
    ):
        found = [stage for stage in stages if matches(stage)]
        if found:
            return found[0]
    raise InputError(f"there is no stage {asked!r}; the stages are all, " + "; ".join(stages))


def _travel(kernel: Kernel, device: str, schedule: str, math: str, rules: RuleSet) -> Travel:
    travel = Travel()
    try:
        travel.program = compile_kernel(
            kernel, device, schedule, math, rules, lambda name, graph: travel.graphs.append((name, graph))
        )
    except RulewrightError as problem:
        travel.problem = problem
    return travel


def _texts(travel: Travel) -> dict[str, str]:
    graphs = travel.graphs
    names = [BEFORE, *_numbered([name for name, _ in graphs[1:]])]
    texts = {name: listing(graph) for name, (_, graph) in zip(names, graphs, strict=False)}
    if travel.program is not None:
        fires = [report.fires.most_common() for _, report in travel.program.trace.stages]
        for name, fired in zip(names[1:], fires, strict=True):
            texts[name] += "".join(f"\n# {count:5} {rule}" for rule, count in fired)
        texts["linear"] = ListingRenderer().render(travel.program.linear).rstrip("\n")
        texts["source"] = travel.program.source.rstrip("\n")
    return texts
