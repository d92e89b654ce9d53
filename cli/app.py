"""What `rulewright` understands: the commands with their options and help. What a command does stands in its module.

Each command imports its module when it runs, so that `rulewright --help` starts at once.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Math(str, Enum):
    """Which float rules a kernel allows: `strict` keeps every bit of IEEE arithmetic, `fast` allows all."""

    STRICT = "strict"
    FAST = "fast"


class Order(str, Enum):
    """What a table of rules is sorted by."""

    TIME = "time"
    HITS = "hits"
    TRIES = "tries"
    RULE = "rule"


DeviceOption = Annotated[str, typer.Option("--device", "-d", help="Where it runs; `rulewright devices` lists them.")]
ScheduleOption = Annotated[
    str, typer.Option(help='`default`, `none`, `search`, or options such as "UPCAST(1, 4) UNROLL(2, 8)".')
]
RulesOption = Annotated[list[str] | None, typer.Option(help="Your rule files, on top of our own; may be repeated.")]
MathOption = Annotated[Math, typer.Option(help="Keep every bit of IEEE arithmetic, or allow all float rules.")]
KernelArgument = Annotated[
    str,
    typer.Argument(
        metavar="KERNEL",
        help="A kernel's JSON file, or FILE.jsonl:ID for one line of a corpus, or the name of a demo kernel.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rulewright {version('rulewright')}")
        raise typer.Exit


@app.callback()
def rulewright(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Fast kernels from declarative rewrite rules.

    Start with `rulewright demo`. Then look at one kernel on its way: `rulewright show softmax`,
    at what the rules make of an expression: `rulewright simplify '(i*12 + j) % 4' --given 'j in 0..4'`,
    and check rules of your own: `rulewright check my.rules`.

    Exit status: 0 all is well, 1 something failed, 2 the input cannot be used.
    """


@app.command()
def demo() -> None:
    """Compile a few kernels through the rules, run them on every device, and compare them with NumPy.

    Shows the times, the source of one kernel, and the rules that fired.
    """
    from .demo import demo_command

    raise typer.Exit(demo_command())


@app.command()
def run(
    kernel: KernelArgument,
    device: DeviceOption = "llvm",
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="NAME=FILE.npy", help="The contents of a buffer.")
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--output", metavar="NAME=FILE.npy", help="Where a result goes.")
    ] = None,
    var: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="The value of a symbolic size.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare the result with NumPy's.")] = False,
    schedule: ScheduleOption = "default",
    math: MathOption = Math.STRICT,
    rules: RulesOption = None,
) -> None:
    """Compile a kernel and run it.

    A buffer is called by its name or its number. What gets no file is filled with random numbers, the same each time.

    Examples:

    - `rulewright run matmul --check`
    - `rulewright run kernel.json --input data1=a.npy --input data2=b.npy --output data0=sum.npy`
    - `rulewright run kernels.jsonl:k04999-8b7a6c --device c --schedule none --check`
    """
    from .run import run_command

    files = inputs or [], outputs or [], var or []
    raise typer.Exit(run_command(kernel, device, schedule, math.value, *files, check, rules or []))


@app.command()
def tune(
    kernel: KernelArgument,
    device: DeviceOption = "llvm",
    math: MathOption = Math.STRICT,
    seconds: Annotated[float, typer.Option(min=1, help="About how long it may search.")] = 60.0,
) -> None:
    """Search for a kernel's fastest schedule by measuring.

    Shows each schedule that is faster than all before, and what was gained over the default. The best is kept on disk
    for this kernel, device, driver and version: `--schedule search` and `rw.compile(…, schedule="search")` use it.

    Example: `rulewright tune matmul --device c --math fast --seconds 30`
    """
    from .tune import tune_command

    raise typer.Exit(tune_command(kernel, device, math.value, seconds))


@app.command()
def show(
    kernel: KernelArgument,
    stage: Annotated[
        str, typer.Option("--stage", "-s", help="lower, 1, 2, …, linear, source, verify, or all.")
    ] = "source",
    device: DeviceOption = "llvm",
    schedule: ScheduleOption = "default",
    math: MathOption = Math.STRICT,
    rules: RulesOption = None,
    timings: Annotated[bool, typer.Option("--timings", help="The time that each stage takes, instead.")] = False,
) -> None:
    """Print a kernel at one stage of its way, from ranges to source.

    The stages are `lower` (ranges, before any rule), those of the rules' pipeline by number or by their first group,
    with the rules that fired, `linear` (the order of execution) and `source`. `verify` checks the graph after each
    stage, and whether every load and store is proven to stay inside its buffer.

    Examples:

    - `rulewright show softmax --device opencl`
    - `rulewright show matmul --stage lower`
    - `rulewright show conv3x3 --stage verify`
    - `rulewright show matmul --stage vector --schedule "UPCAST(1, 4)"`
    - `rulewright show softmax --timings`
    """
    from .show import show_command

    raise typer.Exit(show_command(kernel, stage, device, schedule, math.value, rules or [], timings))


@app.command()
def corpus(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="Kernels as JSON, one a line.")],
    device: DeviceOption = "llvm",
    check: Annotated[bool, typer.Option("--check", help="Compare each result with NumPy's.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N kernels.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="How many child processes; by default one a core.")] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that one kernel may take.")] = 120.0,
    report: Annotated[Path | None, typer.Option(help="A file for the results as JSON, one kernel a line.")] = None,
    schedule: ScheduleOption = "default",
    math: MathOption = Math.STRICT,
    rules: RulesOption = None,
) -> None:
    """Compile every kernel of a file, run those that are small enough, and count what became of them.

    A kernel that crashes or never ends costs one entry in the count, not the run. Exit status 1 if any went wrong.

    Examples:

    - `rulewright corpus kernels.jsonl --device opencl --check`
    - `rulewright corpus kernels.jsonl --limit 50 --report results.jsonl`
    """
    from ..runtimes.devices import default_threads
    from .corpus import corpus_command

    raise typer.Exit(
        corpus_command(
            file,
            device,
            schedule,
            math.value,
            check=check,
            limit=limit,
            jobs=jobs or default_threads(),
            seconds=timeout,
            report=report,
            rules=rules or [],
        )
    )


@app.command()
def check(
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="[RULES]...", help="Rule files, or folders of them.")
    ] = None,
    style: Annotated[
        str, typer.Option("--format", help="text, or for programs json, sarif or github; these without properties.")
    ] = "text",
    prove: Annotated[bool, typer.Option("--prove", help="Also prove each rule, or show where it is wrong.")] = False,
    renew: Annotated[
        bool, typer.Option("--renew", help="With --prove: write the verdicts on our own rules into the package.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="With --prove: how many processes; by default one a core.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="With --prove: a file for the verdicts as JSON.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--rule", metavar="NAME", help="Check the properties of this rule or group only; may be repeated."
        ),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(
            min=0, help="Instances drawn for each rule: 100, for all of ours 12; 0 leaves the properties out."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws other instances.")] = 0,
    table: Annotated[bool, typer.Option("--table", help="Show what was checked, rule by rule.")] = False,
    mutate: Annotated[
        bool, typer.Option("--mutate", help="Instead: weaken each guard, one way at a time; is each mutant refuted?")
    ] = False,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the results there as JSON.")
    ] = None,
) -> None:
    """Check rule files: syntax, names, types, the test and keep lines beside the rules, and that no rule changes a value.

    For the last, instances of each rule's left side are drawn that satisfy its guard, in every type that it admits; both
    sides are evaluated and compared bit for bit. A rule that changes a value is shown with the smallest instance found,
    and with a `keep` line to paste. All of our rules take less than a minute on one core; the time grows with `--examples`.
    Rules that passed are not checked again until they, or Rulewright, change. With --prove, proofs besides.

    Without files our own rules are checked. Yours are read together with ours, whose families they may use; a file of
    the same name replaces ours.

    Examples:

    - `rulewright check`
    - `rulewright check my.rules --table`
    - `rulewright check --rule remainder --examples 2000 --seed 7`
    - `rulewright check my.rules --prove`
    - `rulewright check my.rules --mutate`
    """
    if style != "text":
        from .findings import findings_command

        raise typer.Exit(findings_command(rules or [], style))
    if mutate:
        from ..runtimes.devices import default_threads
        from .mutating import mutate_command

        workers = jobs or default_threads()
        raise typer.Exit(mutate_command(rules or [], only or [], jobs=workers, seed=seed, renew=renew, report=json))
    from .checking import Prover, check_command
    from .properties import PropertyOptions

    prover: Prover | None = None
    if prove:
        from ..runtimes.devices import default_threads
        from .proving import prove_command

        prover = partial(prove_command, jobs=jobs or default_threads(), renew=renew, report=report)
    if examples is None:
        examples = 100 if rules or only else 12
    options = PropertyOptions(examples, seed, table)
    raise typer.Exit(check_command(rules or [], only or [], options, json, prover))


@app.command()
def fmt(
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="[RULES]...", help="Rule files, or folders of them; else our own.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; status 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; show what would change.")] = False,
) -> None:
    """Put rule files into their standard layout: a clause a line, long lines broken, every comment kept.

    Examples:

    - `rulewright fmt my.rules`
    - `rulewright fmt --check`
    """
    from .fmt import fmt_command

    raise typer.Exit(fmt_command(rules or [], check, diff))


@app.command(name="explain-code")
def explain_code(
    code: Annotated[str, typer.Argument(metavar="[CODE]", help="An error code; without it all are listed.")] = "",
) -> None:
    """Tell what an error code of the rule language means, with an example and its correction.

    Examples:

    - `rulewright explain-code E012`
    """
    from .explain_code import explain_code_command

    raise typer.Exit(explain_code_command(code))


@app.command(name="rules")
def list_rules(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Groups, or rules as group.name.")
    ] = None,
    rules: RulesOption = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a page of documentation.")] = False,
) -> None:
    """List the rules by group; of those that are named also the documentation and the examples.

    Examples:

    - `rulewright rules`
    - `rulewright rules remainder`
    - `rulewright rules remainder.mod-terms`
    """
    from .rules import rules_command

    raise typer.Exit(rules_command(names or [], rules or [], markdown))


@app.command()
def watch(
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="[RULES]...", help="Rule files, or folders of them; else our own.")
    ] = None,
) -> None:
    """Check rule files whenever they are saved: their syntax, names and types, their test and keep lines.

    Only what was saved is checked again, which takes a fraction of a second. Ctrl-C ends it.

    Examples:

    - `rulewright watch my.rules`
    """
    from .watch import watch_command

    raise typer.Exit(watch_command(rules or []))


@app.command()
def simplify(
    text: Annotated[str, typer.Argument(metavar="EXPR", help="An expression as rule files write it.")],
    given: Annotated[str, typer.Option(help="What is known of its names, as after `given` in a rule.")] = "",
    dtype: Annotated[str, typer.Option("--type", help="The type of names that --given does not describe.")] = "index",
    math: MathOption = Math.STRICT,
    rules: RulesOption = None,
    steps: Annotated[bool, typer.Option("--steps", help="Show which rule did what.")] = False,
) -> None:
    """Print what the rules make of an expression.

    Examples:

    - `rulewright simplify '(i*12 + j) % 4' --given 'j in 0..4'`
    - `rulewright simplify 'x*1 + 0*y' --type int32 --steps`
    - `rulewright simplify 'a + b*c' --given 'a: float32, b: float32' --rules my.rules`
    """
    from .simplify import simplify_command

    raise typer.Exit(simplify_command(text, given, dtype, math.value, rules or [], steps))


@app.command()
def explain(
    text: Annotated[str, typer.Argument(metavar="EXPR", help="An expression as rule files write it.")],
    given: Annotated[str, typer.Option(help="What is known of its names, as after `given` in a rule.")] = "",
    rule: Annotated[str | None, typer.Option(metavar="GROUP.NAME", help="Why this rule fires or does not.")] = None,
    dtype: Annotated[str, typer.Option("--type", help="The type of names that --given does not describe.")] = "index",
    math: MathOption = Math.STRICT,
    pipeline: Annotated[str, typer.Option(help="The pipeline of rules to explain.")] = "simplify",
    rules: RulesOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Tell step by step which rule did what to an expression, and the facts that allowed it.

    With `--rule` that rule alone is tried on each node of the expression: how far the match went, which part of the
    guard failed, and with which values.

    Examples:

    - `rulewright explain '(i*12 + j) % 4' --given 'i in 0..64, j in 0..4'`
    - `rulewright explain '(i*6 + j) % 4' --given 'i in 0..64' --rule remainder.mod-terms`
    """
    from .explain import explain_command

    raise typer.Exit(explain_command(text, given, dtype, math.value, rules or [], rule, pipeline, as_json))


@app.command()
def fuzz(
    device: Annotated[
        list[str] | None, typer.Option("--device", help="A device; may be repeated. Else all that work here.")
    ] = None,
    examples: Annotated[int, typer.Option(min=1, help="How many kernels.")] = 300,
    seed: Annotated[int | None, typer.Option(help="The same number, the same kernels.")] = None,
    output: Annotated[Path, typer.Option(help="Where the kernel goes that fails.")] = Path("fuzz-failure.json"),
) -> None:
    """Try random kernels with random schedules on devices, against NumPy; exit status 1 with the smallest that fails.

    Examples:

    - `rulewright fuzz --device c --examples 1000`
    - `rulewright fuzz --seed 7 --output found.json`
    """
    from .fuzz import fuzz_command

    raise typer.Exit(fuzz_command(device or [], examples, seed, output))


@app.command()
def stats(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KERNEL]...", help="Kernels as JSON, corpora, or names of demo kernels; else all of these."
        ),
    ] = None,
    device: DeviceOption = "llvm",
    schedule: ScheduleOption = "default",
    math: MathOption = Math.STRICT,
    rules: RulesOption = None,
    order: Annotated[Order, typer.Option("--sort", help="What the rules are sorted by.")] = Order.TIME,
    top: Annotated[int, typer.Option(min=1, help="How many rules are shown.")] = 25,
    as_json: Annotated[bool, typer.Option("--json", help="For programs: every rule.")] = False,
) -> None:
    """Count for each rule how often it was tried and fired while kernels were compiled, and the time it took.

    Below the table stand the rules that never fired: dead weight, or rules whose kernels are not in the set.

    Examples:

    - `rulewright stats`
    - `rulewright stats kernels.jsonl --sort hits --top 50`
    """
    from .stats import stats_command

    raise typer.Exit(stats_command(kernels or [], device, schedule, math.value, rules or [], order.value, top, as_json))


@app.command()
def devices() -> None:
    """List the devices that work here, and why the others do not.

    A device counts as present when a small kernel has been built and has run on it.
    """
    from .devices import devices_command

    raise typer.Exit(devices_command())
