"""Verdicts by content: what a rule means, and how it is encoded. The file in the package holds those of our own rules.

A rule that is changed, or an encoder that is, finds no verdict: it is proven anew. A file that cannot be read counts as
empty, which `Cache.problem` says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path

from ...engine.language.syntax import Rule, Span
from ...engine.ops import Op
from .verdicts import RuleVerdict, from_row

COMMITTED = Path(__file__).with_name("proved.json")
"""The verdicts that come with the package."""

VERSION = 1
"""Of the encoder: raised with every change after which an old verdict may not hold any more."""


def meaning_of(rule: Rule) -> str:
    """A hash of all that a rule means, wherever it stands and whatever is said about it."""
    parts = (rule.instances, rule.on, rule.ordered, rule.because)
    return hashlib.sha256(f"{VERSION} {_plain(parts)!r}".encode()).hexdigest()[:24]


def _plain(part: object) -> object:
    """Syntax without its places."""
    if isinstance(part, Op):
        return part.name
    if is_dataclass(part) and not isinstance(part, type):
        inner = [
            _plain(getattr(part, one.name)) for one in fields(part) if not isinstance(getattr(part, one.name), Span)
        ]
        return (type(part).__name__, *inner)
    if isinstance(part, tuple | list):
        return tuple(_plain(one) for one in part)
    return repr(part)


@dataclass(slots=True)
class Cache:
    """Verdicts by the hash of the rule; `problem` says why a file was not read."""

    verdicts: dict[str, RuleVerdict] = field(default_factory=dict)
    problem: str | None = None

    @classmethod
    def read(cls, path: Path) -> Cache:
        """The verdicts in a file; none if it is absent or broken."""
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
            return cls({str(row["key"]): from_row(row) for row in rows})
        except FileNotFoundError:
            return cls(problem=f"{path.name} is not there")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            return cls(problem=f"{path.name} cannot be read ({type(problem).__name__}: {problem}); it is ignored")

    def of(self, rule: Rule) -> RuleVerdict | None:
        """The verdict on a rule, if the rule and the encoder are as they were."""
        found = self.verdicts.get(meaning_of(rule))
        return None if found is None else replace(found, rule=rule.id)

    def add(self, rule: Rule, verdict: RuleVerdict) -> None:
        self.verdicts[meaning_of(rule)] = verdict

    def write(self, path: Path, rules: Iterable[Rule]) -> None:
        """Writes the verdicts on these rules, one a line, in their order."""
        rows = []
        for rule in rules:
            found = self.of(rule)
            if found is not None:
                rows.append(json.dumps({
                    "key": meaning_of(rule), "rule": rule.id, "verdict": found.verdict.value, "detail": found.detail,
                    "questions": found.questions, "seconds": found.seconds, "scalar": found.scalar,
                }, ensure_ascii=False))  # fmt: skip
        path.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
