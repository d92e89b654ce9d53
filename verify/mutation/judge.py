"""What becomes of one mutant: refuted by properties, or by a proof; right after all; or a survivor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ...engine.language.syntax import RuleBook
from ...engine.rewriting import RuleSet
from ..properties import check_rule
from .mutants import Mutant

DIRECTED, PLAIN, LAST = 60, 40, 400
"""Instances drawn where only the mutant holds, anywhere, and once more where only it holds if no proof says more."""


class Fate(Enum):
    """What is known of a mutant."""

    REFUTED = "refuted"
    RIGHT = "right"
    SURVIVED = "survived"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The fate of a mutant; `how` is the counterexample, the verdict of the proof, or why nothing is known."""

    mutant: str
    key: str  # the hash of what the mutant means
    fate: Fate
    how: str
    drawn: int  # instances on which it fired
    by_proof: bool = False

    def row(self) -> dict[str, object]:
        """For a file of JSON."""
        return {
            "mutant": self.mutant, "key": self.key, "fate": self.fate.value, "how": self.how, "drawn": self.drawn,
            "by_proof": self.by_proof,
        }  # fmt: skip


def judgement(row: Mapping[str, object]) -> Judgement:
    """Reads what `row` wrote. Raises KeyError, ValueError or TypeError for anything else."""
    drawn = row["drawn"]
    if not isinstance(drawn, int):
        raise TypeError("drawn is a number")
    fate = Fate(str(row["fate"]))
    return Judgement(str(row["mutant"]), str(row["key"]), fate, str(row["how"]), drawn, bool(row["by_proof"]))


def key_of(mutant: Mutant) -> str:
    """The hash of what a mutant means: it is another one if its rule changes."""
    from ..proofs.cache import meaning_of

    return meaning_of(mutant.rule)


def judge(book: RuleBook, mutant: Mutant, *, seed: int = 0, proofs: bool = True) -> Judgement:
    """Draws instances that the mutant takes and its rule does not; if all keep their values, tries to prove it."""
    ruleset = _alone(book, mutant)
    where = check_rule(ruleset, mutant.rule, examples=DIRECTED, seed=seed, drawn_for=mutant.where)
    anywhere = check_rule(ruleset, mutant.rule, examples=PLAIN, seed=seed) if not where.refuted else where
    drawn = where.fired + anywhere.fired
    name, key = mutant.name, key_of(mutant)
    if anywhere.counterexample is not None:
        return Judgement(name, key, Fate.REFUTED, str(anywhere.counterexample), drawn)
    found = _proof(mutant) if proofs else None
    if found is not None:
        fate, how = found
        if fate is not Fate.SURVIVED:
            return Judgement(name, key, fate, how, drawn, by_proof=True)
        last = check_rule(ruleset, mutant.rule, examples=LAST, seed=seed + 1, drawn_for=mutant.where)
        if last.counterexample is not None:
            return Judgement(name, key, Fate.REFUTED, str(last.counterexample), drawn)
        return Judgement(
            name, key, Fate.SURVIVED, f"{how}; {where.fired + last.fired} instances, which keep their value", drawn
        )
    return Judgement(name, key, Fate.SURVIVED, "not proven", drawn)


def _proof(mutant: Mutant) -> tuple[Fate, str] | None:
    """What a proof says; None without a solver."""
    try:
        from ..proofs.prove import prove
    except ImportError:
        return None
    from ..proofs.verdicts import Verdict

    found = prove(mutant.rule)
    if found.verdict is Verdict.REFUTED:
        return Fate.REFUTED, found.detail
    if found.verdict in (Verdict.PROVED, Verdict.SAMPLED, Verdict.BOUNDED):
        return Fate.RIGHT, f"{found.verdict.value}{': ' if found.detail else ''}{found.detail}"
    return Fate.SURVIVED, f"{found.verdict.value}: {found.detail}"


def _alone(book: RuleBook, mutant: Mutant) -> RuleSet:
    """A set with the mutant in its group; with all others if it simplifies on the side."""
    name = mutant.rule.id.split(".")[0]
    group = book.groups[name]
    if "under(" in mutant.rule.text:
        rules = tuple(mutant.rule if rule.id == mutant.rule.id else rule for rule in group.rules)
        return RuleSet.of_book((), replace(book, groups={**book.groups, name: replace(group, rules=rules)}))
    return RuleSet.of_book((), RuleBook({name: replace(group, rules=(mutant.rule,))}, {}))
