"""What is known of a rule: the verdict of its proof, and the reports made of verdicts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum


class Verdict(str, Enum):
    """How far a rule is proven."""

    PROVED = "proved"
    SAMPLED = "proved for sampled constants"
    BOUNDED = "bounded"
    REFUTED = "refuted"
    TRUSTED = "trusted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The verdict on one rule. `detail` says of what it holds, or the counterexample, or why the rule is trusted."""

    rule: str
    verdict: Verdict
    detail: str
    questions: int  # that were put to the solver, or were plain
    seconds: float  # of processor time
    scalar: bool  # about values of one lane, without loops and memory

    @property
    def line(self) -> str:
        """One line for a page about the rule."""
        return f"{self.verdict.value}: {self.detail}" if self.detail else self.verdict.value


def as_json(verdicts: Iterable[RuleVerdict]) -> str:
    """The verdicts as a JSON array, one rule a line."""
    rows = ",\n".join(json.dumps(asdict(one), ensure_ascii=False) for one in verdicts)
    return f"[\n{rows}\n]\n"


def from_row(row: dict[str, object]) -> RuleVerdict:
    """A verdict read back from JSON. Raises KeyError, ValueError or TypeError if it is none."""
    seconds, questions = row["seconds"], row["questions"]
    if not isinstance(seconds, int | float) or not isinstance(questions, int):
        raise TypeError("a verdict needs its time and its number of questions")
    return RuleVerdict(
        str(row["rule"]), Verdict(row["verdict"]), str(row["detail"]), questions, float(seconds), row["scalar"] is True
    )


def summary(verdicts: Iterable[RuleVerdict]) -> str:
    """How many rules have which verdict, the share of the scalar ones that is proved last."""
    found = list(verdicts)
    counts = Counter(one.verdict for one in found)
    parts = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    scalar = [one for one in found if one.scalar]
    proved = sum(one.verdict is Verdict.PROVED for one in scalar)
    share = f"; of {len(scalar)} scalar rules {100 * proved / len(scalar):.1f} % are proved" if scalar else ""
    return ", ".join(parts) + share
