"""Judges many mutants, in parallel; what is known of them from the package's file or the user's cache is not judged again."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from ...engine.cache import cache_directory
from ...engine.language.parser import RuleSource, load_rules
from ...engine.language.syntax import Rule, RuleBook
from .. import verdicts
from .judge import Fate, Judgement, judge, judgement, key_of
from .mutants import Mutant, mutants_of

EXPLAINED = Path(__file__).with_name("explained.json")
"""The mutants of our own rules that are not refuted: proven right, or each with a reason why it is right after all."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a mutant is not refuted."""

    mutant: str
    key: str
    how: str  # what the proof said
    because: str  # a reason that a person gave; empty where the proof is one

    @property
    def proven(self) -> bool:
        return not self.because


def read_explained(path: Path = EXPLAINED) -> dict[str, Explanation]:
    """By the mutant's name; empty if the file is not there."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {row["mutant"]: Explanation(row["mutant"], row["key"], row["how"], row["because"]) for row in rows}


def write_explained(judged: Iterable[Judgement], known: dict[str, Explanation], path: Path = EXPLAINED) -> None:
    """The mutants that are right, and those that survived with the reasons that are known of them."""
    rows = []
    for one in judged:
        before = known.get(one.mutant)
        if one.fate is not Fate.REFUTED:
            because = before.because if before is not None and one.fate is Fate.SURVIVED else ""
            row = {"mutant": one.mutant, "key": one.key, "how": one.how, "because": because}
            if one.fate is Fate.RIGHT or because:
                rows.append(json.dumps(row, ensure_ascii=False))
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")


def stale(book: RuleBook, explained: dict[str, Explanation]) -> list[str]:
    """The explanations of mutants that are none any more, or other ones: their rules have changed."""
    keys = {mutant.name: key_of(mutant) for mutant in mutants_in(book)}
    return [name for name, one in explained.items() if keys.get(name) != one.key]


def mutants_in(book: RuleBook, files: set[str] | None = None) -> Iterator[Mutant]:
    """The mutants of the rules that stand in these files, in order; all without files."""
    for group in book.groups.values():
        for rule in group.rules:
            if files is None or rule.span.file in files:
                yield from mutants_of(rule)


# --- judging ----------------------------------------------------------------------------------------------------------


def judge_mutants(
    sources: Sequence[RuleSource], mutants: Sequence[Mutant], jobs: int, *, seed: int = 0, proofs: bool = True,
    step: Callable[[Judgement, int, int], None] = lambda judged, done, total: None,
) -> list[Judgement]:  # fmt: skip
    """A judgement on each mutant, in order. `step(judgement, done, total)` is called after each that was not known."""
    explained = read_explained()
    found: dict[str, Judgement] = {}
    for mutant in mutants:
        known = _known(mutant, explained, seed, proofs)
        if known is not None:
            found[mutant.name] = known
    missing = [mutant for mutant in mutants if mutant.name not in found]
    for done, (mutant, one) in enumerate(_judged(sources, missing, jobs, seed, proofs), 1):
        found[mutant.name] = one
        _store(_path(mutant, seed, proofs), one)
        step(one, done, len(missing))
    return [found[mutant.name] for mutant in mutants]


def _known(mutant: Mutant, explained: dict[str, Explanation], seed: int, proofs: bool) -> Judgement | None:
    one = explained.get(mutant.name)
    if one is not None and one.proven and one.key == key_of(mutant):
        return Judgement(mutant.name, one.key, Fate.RIGHT, one.how, 0, by_proof=True)
    try:
        found = judgement(json.loads(_path(mutant, seed, proofs).read_text(encoding="utf-8")))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return replace(found, mutant=mutant.name)


def _judged(
    sources: Sequence[RuleSource], mutants: Sequence[Mutant], jobs: int, seed: int, proofs: bool
) -> Iterator[tuple[Mutant, Judgement]]:
    """Judgements as they come; the processes read the rules anew, so that nothing but names has to travel."""
    if jobs <= 1 or len(mutants) < 4:
        book = load_rules(sources)
        yield from ((mutant, judge(book, mutant, seed=seed, proofs=proofs)) for mutant in mutants)
        return
    by_name = {mutant.name: mutant for mutant in mutants}
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(tuple(sources),)) as pool:
        waiting = [pool.submit(_judge_one, mutant.rule.id, mutant.name, seed, proofs) for mutant in mutants]
        for future in as_completed(waiting):
            one = future.result()
            yield by_name[one.mutant], one


_book: list[RuleBook] = []


def _start(sources: tuple[RuleSource, ...]) -> None:
    """In a process of the pool: reads the rules."""
    _book[:] = [load_rules(sources)]


def _judge_one(rule: str, name: str, seed: int, proofs: bool) -> Judgement:
    (book,) = _book
    mutant = next(one for one in mutants_of(_rule(book, rule)) if one.name == name)
    return judge(book, mutant, seed=seed, proofs=proofs)


def _rule(book: RuleBook, name: str) -> Rule:
    return next(rule for rule in book.groups[name.split(".")[0]].rules if rule.id == name)


# --- the user's cache -------------------------------------------------------------------------------------------------


def _path(mutant: Mutant, seed: int, proofs: bool) -> Path:
    digest = hashlib.sha256(f"{verdicts.key(mutant.rule, seed, proofs)} {_judge_text()}".encode()).hexdigest()[:32]
    return cache_directory() / "mutants" / digest[:2] / f"{digest}.json"


def _judge_text() -> str:
    here = Path(__file__).parent
    return "".join((here / name).read_text(encoding="utf-8") for name in ("judge.py", "mutants.py"))


def _store(path: Path, one: Judgement) -> None:
    """A cache that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(one.row(), file)
        os.replace(file.name, path)
    except OSError:
        return
