"""`rulewright rules`: every rule by group, with its documentation and examples; also the page of them in the docs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.markup import escape

from ..engine.language.diagnostics import did_you_mean
from ..engine.language.parser import RuleSource
from ..engine.language.syntax import Case, Group, Rule, RuleBook
from ..engine.rewriting import RuleSet
from .console import InputError, console
from .rule_files import with_builtin

HEAD = """# All rules

Every rule of Rulewright by group, in the order in which they are tried, with the examples that are run whenever the
rules are checked. This page is made by `rulewright rules --markdown`; the rules stand in `rules/`.
"""


def rules_command(wanted: list[str], files: list[str], markdown: bool) -> int:
    """Prints groups and rules by name, else all; as a page of the docs with `markdown`."""
    rule_set = with_builtin(files) if files else RuleSet.builtin()
    sources = {source.name: source for source in rule_set.sources}
    groups = list(_chosen(rule_set.book(), wanted))
    if markdown:
        print("\n".join(page(groups, sources)))
        return 0
    out = console()
    for group in groups:
        out.print(f"[bold]{escape(group.name)}[/]   [dim]{group.span.file}[/]   {escape(group.doc)}", soft_wrap=True)
        for rule in group.rules:
            out.print(f"  [cyan]{rule.id}[/]   {escape(_line(rule, sources))}", soft_wrap=True)
            if wanted:
                _print_details(rule, sources)
    return 0


def _chosen(book: RuleBook, wanted: list[str]) -> Iterator[Group]:
    """The groups with these names, and of the others the rules; all if none is asked for."""
    known = {*book.groups, *(rule.id for group in book.groups.values() for rule in group.rules)}
    for name in wanted:
        if name not in known:
            raise InputError(
                f"there is no group or rule {name!r}: {did_you_mean(name, known) or 'see `rulewright rules`'}"
            )
    for group in book.groups.values():
        rules = tuple(rule for rule in group.rules if not wanted or {group.name, rule.id} & set(wanted))
        if rules:
            yield Group(group.name, group.doc, rules, group.span)


def _print_details(rule: Rule, sources: dict[str, RuleSource]) -> None:
    out = console()
    if rule.doc:
        out.print(f"      {rule.doc}", markup=False, soft_wrap=True)
    for case in rule.cases:
        out.print(f"      {sources[case.span.file].text_at(case.span)}", markup=False, style="dim", soft_wrap=True)


def _line(rule: Rule, sources: dict[str, RuleSource]) -> str:
    """The rule without its cases, on one line."""
    return "   ".join(_clauses(rule, sources))


def _clauses(rule: Rule, sources: dict[str, RuleSource]) -> list[str]:
    source = sources[rule.span.file]
    instance = rule.instances[0]  # those of other parameters are written the same
    clauses = [rule.text, *_parameters(rule)]
    clauses += [f"let {name} = {source.text_at(term.span)}" for name, term in instance.lets]
    if instance.when is not None:
        clauses.append(f"when {source.text_at(instance.when.span)}")
    if rule.on:
        clauses.append("on " + ", ".join(source.text_at(on.span) for on in rule.on))
    if rule.ordered:
        clauses.append("ordered")
    if rule.because is not None:
        clauses.append(f'because "{rule.because}"')
    return clauses


def _parameters(rule: Rule) -> Iterator[str]:
    """What each parameter of the rule stands for, in the order in which it is tried."""
    for name, _ in rule.instances[0].bindings:
        values = dict.fromkeys(str(dict(instance.bindings)[name]) for instance in rule.instances)
        yield f"for {name} in {', '.join(values)}"


# --- the page of the docs --------------------------------------------------------------------------------------------


def page(groups: Iterable[Group], sources: dict[str, RuleSource]) -> Iterator[str]:
    """The lines of the page."""
    groups = list(groups)
    yield HEAD
    for group in groups:
        yield f"- [{group.name}](#{group.name}): {len(group.rules)} in `{group.span.file}`. {group.doc}".rstrip()
    for group in groups:
        yield f"\n## {group.name}\n"
        if group.doc:
            yield f"{group.doc}\n"
        for rule in group.rules:
            yield from _rule_section(rule, sources)


def _rule_section(rule: Rule, sources: dict[str, RuleSource]) -> Iterator[str]:
    yield f"### {rule.id}\n"
    if rule.doc:
        yield f"{rule.doc}\n"
    equation, *clauses = _clauses(rule, sources)
    yield "\n".join(["```", equation, *(f"  {clause}" for clause in clauses), "```", ""])
    for case in rule.cases:
        yield _example(case, sources[case.span.file])
    yield ""


def _example(case: Case, source: RuleSource) -> str:
    before = source.text_at(case.before.span)
    given = ", ".join(source.text_at(one.span) for one in case.given)
    where = f", given `{given}`" if given else ""
    if case.after is None:
        return f"- does not fire on `{before}`{where}"
    return f"- `{before}` becomes `{source.text_at(case.after.span)}`{where}"
