"""Proves many rules: from the cache where it knows them, else in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context

from ...engine.errors import RulewrightError
from ...engine.language.parser import RuleSource, load_rules
from ...engine.language.syntax import Rule, RuleBook
from .cache import COMMITTED, Cache
from .verdicts import RuleVerdict


class ProverMissing(RulewrightError):
    """The solver is not installed."""


@dataclass(frozen=True, slots=True)
class Run:
    """The verdicts in the order of the rules, and how many of them the cache did not know."""

    verdicts: tuple[RuleVerdict, ...]
    fresh: int


def rules_of(book: RuleBook, files: set[str] | None = None) -> list[Rule]:
    """The rules that stand in these files, in order; all without files."""
    found = [rule for group in book.groups.values() for rule in group.rules]
    return [rule for rule in found if files is None or rule.span.file in files]


def known_verdicts(book: RuleBook, cache: Cache | None = None) -> dict[str, RuleVerdict]:
    """What is known of the rules without proving anything, by the rule's id: for pages about rules."""
    cache = cache or Cache.read(COMMITTED)
    return {rule.id: known for rule in rules_of(book) if (known := cache.of(rule)) is not None}


def prove_rules(
    sources: Sequence[RuleSource], rules: Sequence[Rule], cache: Cache, jobs: int,
    step: Callable[[str, int, int], None] = lambda rule, done, total: None,
) -> Run:  # fmt: skip
    """A verdict on each rule. New ones are added to the cache; `step(rule, done, total)` is called after each of these.

    Raises ProverMissing if there is something to prove and no solver.
    """
    missing = [rule for rule in rules if cache.of(rule) is None]
    if missing:
        _require_solver()
        for done, (rule, verdict) in enumerate(_proven(sources, missing, jobs), 1):
            cache.add(rule, verdict)
            step(rule.id, done, len(missing))
    found = tuple(known for rule in rules if (known := cache.of(rule)) is not None)
    return Run(found, len(missing))


def _require_solver() -> None:
    try:
        import z3  # type: ignore[import-untyped] # noqa: F401 - only whether it is there
    except ImportError:
        raise ProverMissing(
            "proofs need the solver z3: pip install 'rulewright[verify]'. Without it `rulewright check` still runs the "
            "test and keep lines, and shows the proofs that are known."
        ) from None


def _proven(sources: Sequence[RuleSource], rules: Sequence[Rule], jobs: int) -> Iterator[tuple[Rule, RuleVerdict]]:
    """Verdicts as they come; the processes read the rules anew, so that nothing but names has to travel."""
    if jobs <= 1 or len(rules) == 1:
        from .prove import prove

        yield from ((rule, prove(rule)) for rule in rules)
        return
    by_id = {rule.id: rule for rule in rules}
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(tuple(sources),)) as pool:
        waiting = [pool.submit(_prove_one, rule.id) for rule in rules]
        for future in as_completed(waiting):
            verdict = future.result()
            yield by_id[verdict.rule], verdict


_rules: dict[str, Rule] = {}


def _start(sources: tuple[RuleSource, ...]) -> None:
    """In a process of the pool: reads the rules."""
    _rules.update((rule.id, rule) for rule in rules_of(load_rules(sources)))


def _prove_one(rule: str) -> RuleVerdict:
    from .prove import prove

    return prove(_rules[rule])
