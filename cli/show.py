"""`rulewright show`: a kernel at one stage of its way, from ranges to source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..engine import ops
from ..engine.bounds import Verdict, accesses
from ..engine.errors import RulewrightError
from ..engine.printing import listing
from ..engine.rewriting import RuleSet
from ..engine.uop import UOp, walk
from ..engine.verifier import verify
from ..kernels.kernel import Kernel
from ..kernels.sizes import product, to_uop
from ..program import Program, compile_kernel
from ..renderers.listing import ListingRenderer
from .choices import check_choices
from .console import InputError, console
from .kernel_files import find_kernel
from .rule_files import with_builtin
from .timings import timings_command

BEFORE, AFTER, VERIFY = "lower", ("linear", "source"), "verify"
"""The stages before and after those of the pipeline, and the one that judges them all."""


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
    if stage == VERIFY:
        return _verify(kernel, _travel(kernel, device, schedule, math, rule_set), rule_set)
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
    raise InputError(f"there is no stage {asked!r}; the stages are all, verify, " + "; ".join(stages))


def _travel(kernel: Kernel, device: str, schedule: str, math: str, rules: RuleSet) -> Travel:
    travel = Travel()
    try:
        travel.program = compile_kernel(
            kernel, device, schedule, math, rules, lambda name, graph: travel.graphs.append((name, graph))
        )
    except RulewrightError as problem:
        travel.problem = problem
    return travel


def _names(travel: Travel) -> list[str]:
    return [BEFORE, *_numbered([name for name, _ in travel.graphs[1:]])]


def _texts(travel: Travel) -> dict[str, str]:
    graphs, names = travel.graphs, _names(travel)
    texts = {name: listing(graph) for name, (_, graph) in zip(names, graphs, strict=False)}
    if travel.program is not None:
        fires = [report.fires.most_common() for _, report in travel.program.trace.stages]
        for name, fired in zip(names[1:], fires, strict=True):
            texts[name] += "".join(f"\n# {count:5} {rule}" for rule, count in fired)
        texts["linear"] = ListingRenderer().render(travel.program.linear).rstrip("\n")
        texts["source"] = travel.program.source.rstrip("\n")
    return texts


def _verify(kernel: Kernel, travel: Travel, rules: RuleSet) -> int:
    """Prints whether each stage left a well-formed graph, and what is proven of each access; 1 if something is wrong."""
    stages = zip(_names(travel), travel.graphs, strict=True)
    wrong = [(name, problem) for name, (_, graph) in stages for problem in verify(graph)]
    console().print(f"{len(travel.graphs)} stages, {len(wrong)} problems")
    for name, problem in wrong:
        console().print(f"{name}: {problem}", markup=False, soft_wrap=True)
    if wrong:
        return 1
    if travel.problem is not None:
        raise travel.problem
    sizes = {a.slot: to_uop(product(a.shape)) for a in kernel.arguments if a.shape is not None}
    judged = list(accesses(_last_with_indices(travel), lambda graph: rules.rewrite(graph, "simplify")[0], sizes))
    counts = Counter(access.verdict for access in judged)
    console().print(", ".join(f"{counts[verdict]} accesses {verdict.value}" for verdict in Verdict if counts[verdict]))
    for access in judged:
        if access.verdict is not Verdict.INSIDE:
            console().print(str(access), markup=False, soft_wrap=True)
    return int(counts[Verdict.OUTSIDE] > 0)


def _last_with_indices(travel: Travel) -> UOp:
    """The graph before integer types are chosen: the last in which every access has an index of type index."""
    return next(
        graph
        for _, graph in reversed(travel.graphs)
        if all(node.src[1].dtype.kind == "index" for node in walk(graph) if node.op in (ops.LOAD, ops.STORE))
    )
