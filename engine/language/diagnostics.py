"""What can be wrong in a rule file: stable codes, the message with its place, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum

from .sources import RuleError, RuleSource
from .syntax import Span

__all__ = [
    "CODES",
    "Diagnostic",
    "Report",
    "RuleError",
    "RuleSyntaxError",
    "Severity",
    "did_you_mean",
    "format_text",
    "known",
]

CODES: dict[str, str] = {
    "E001": "the text does not follow the grammar",
    "E002": "a statement stands in the wrong place",
    "E003": "a group is not closed, or closed twice",
    "E010": "unknown name",
    "E011": "unknown operator",
    "E012": "unknown function",
    "E013": "unknown family",
    "E014": "unknown type",
    "E015": "unknown group or pipeline",
    "E016": "unknown flag",
    "E017": "unknown module",
    "E018": "an extern function has no implementation",
    "E019": "unknown kind of assumption",
    "E020": "wrong number of operands",
    "E021": "brackets are missing",
    "E022": "wrong contents of brackets",
    "E023": "wrong number of arguments of a function",
    "E024": "wrong kind of argument of a function",
    "E025": "an operator cannot be used like this",
    "E026": "unknown rule",
    "E030": "the types do not agree",
    "E031": "the expression of a test has no type",
    "E040": "a name is not bound by the left side",
    "E041": "a form cannot stand on this side",
    "E042": "a name stands for something else",
    "E043": "the left side is not an operator",
    "E050": "two rules with one name",
    "E051": "two groups or pipelines with one name",
    "E052": "a name is declared twice",
    "E053": "a clause is given twice",
    "E054": "two modules with one name",
    "E055": "a rule is changed twice",
    "E060": "a guarded rule without a test",
    "E061": "a guarded rule without a near miss",
    "E062": "a test line fails",
    "E063": "a keep line fails",
    "E064": "a rule that can never fire",
    "E070": "definitions go in a circle",
    "E071": "no value is possible",
    "W001": "a declared name is never used",
    "W002": "a doc line documents nothing",
}
"""Each code with what it is about. A code is never given another meaning."""


class Severity(str, Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `related` is the second place where two are involved, with what it shows."""

    code: str
    severity: Severity
    message: str
    span: Span
    hint: str | None = None
    related: tuple[str, Span] | None = None


@dataclass(slots=True)
class Report:
    """Collects findings; the same one twice (from two values of a parameter) counts once."""

    found: dict[tuple[str, Span, str], Diagnostic] = field(default_factory=dict)
    errors: int = 0  # reported so far, repeated ones included: tells whether a step went well

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str | None = None,
        related: tuple[str, Span] | None = None,
    ) -> None:
        assert code in CODES
        self.errors += 1
        self.found.setdefault(
            (code, span, message),
            Diagnostic(code, Severity.ERROR, message, span, hint, related),
        )

    def warning(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        assert code in CODES
        self.found.setdefault(
            (code, span, message),
            Diagnostic(code, Severity.WARNING, message, span, hint),
        )

    def add(self, other: Report) -> None:
        """Takes over what another report has found."""
        self.errors += other.errors
        for key, diagnostic in other.found.items():
            self.found.setdefault(key, diagnostic)

    def sorted(self, files: Sequence[str]) -> tuple[Diagnostic, ...]:
        """By place, in the order of the files."""
        order = {name: position for position, name in enumerate(files)}
        return tuple(
            sorted(
                self.found.values(),
                key=lambda d: (order[d.span.file], d.span.line, d.span.column, d.code),
            )
        )


class RuleSyntaxError(RuleError):
    """Rule files that cannot be loaded: everything that is wrong in them, in one error."""

    def __init__(self, diagnostics: Sequence[Diagnostic], sources: Iterable[RuleSource]) -> None:
        self.diagnostics = tuple(diagnostics)
        self.sources = {source.name: source for source in sources}
        super().__init__("\n\n".join(format_text(d, self.sources) for d in self.diagnostics))

    def __reduce__(
        self,
    ) -> tuple[type[RuleSyntaxError], tuple[tuple[Diagnostic, ...], tuple[RuleSource, ...]]]:
        return RuleSyntaxError, (self.diagnostics, tuple(self.sources.values()))


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint with the most similar candidate, or None where none is similar."""
    close = get_close_matches(name, sorted(set(candidates)), n=1)
    return f"did you mean `{close[0]}`?" if close else None


def known(names: Iterable[str]) -> str | None:
    """A hint that lists what there is, where that is short."""
    listed = sorted(set(names))
    return f"there is {', '.join(f'`{name}`' for name in listed)}" if 0 < len(listed) <= 6 else None


def format_text(diagnostic: Diagnostic, sources: RuleSource | Mapping[str, RuleSource]) -> str:
    """The finding as people read it: place, code and message; the line with the place underlined; hint; second place."""
    span = diagnostic.span
    lines = [f"{span}: {diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"]
    lines += _excerpt(span, sources)
    if diagnostic.hint is not None:
        lines.append(f"  hint: {diagnostic.hint}")
    if diagnostic.related is not None:
        message, place = diagnostic.related
        lines.append(f"{place}: {message}")
        lines += _excerpt(place, sources)
    return "\n".join(lines)


def _excerpt(span: Span, sources: RuleSource | Mapping[str, RuleSource]) -> list[str]:
    """The first line of a place and, under it, carets as wide as the place."""
    source = sources.get(span.file) if isinstance(sources, Mapping) else sources
    if source is None or source.name != span.file:
        return []
    text = source.line(span.line)
    end = span.end_column if span.end_line == span.line else len(text.rstrip()) + 1
    before = "".join("\t" if character == "\t" else " " for character in text[: span.column - 1])
    return [f"  {text}", f"  {before}{'^' * max(end - span.column, 1)}"]
