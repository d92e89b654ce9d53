"""Cuts a rule file into statements, so that an error in one leaves the others whole.

Every statement begins with a reserved word and lasts until the next one. The `}` that closes a group belongs to the
statement before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .diagnostics import Report
from .sources import RuleSource
from .syntax import Span

KEYWORDS = frozenset(
    ["module", "use", "vars", "consts", "types", "args", "family", "extern", "group", "rule", "pipeline"]
)

_TOKEN = re.compile(r'#[^\n]*|"[^"\n]*"?|[A-Za-z_]\w*(?:-\w+)*|\S')


@dataclass(frozen=True, slots=True)
class Block:
    """One statement: its first word, where its text stands, and the `##` lines before it."""

    source: RuleSource
    keyword: str  # empty: text before the first statement
    start: int
    end: int
    doc: str

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def span(self, start: int, end: int) -> Span:
        """The place of a part, by its positions in `text`."""
        return self.source.span(self.start + start, self.start + end)

    @property
    def head(self) -> Span:
        """The place of the first word."""
        return self.span(0, len(self.keyword))


@dataclass(slots=True)
class _Doc:
    """Doc lines that wait for their statement."""

    start: int
    end: int
    lines: list[str]


def split(source: RuleSource, report: Report) -> list[Block]:
    """The statements of a file in order, without their comments' lines before them."""
    heads: list[tuple[str, int, str]] = []
    end = 0  # of the last token that is no comment
    ends: list[int] = []
    doc: _Doc | None = None
    for match in _TOKEN.finditer(source.text):
        word = match.group()
        if word[0] == "#":
            doc = _doc_line(source, match, doc)
            continue
        if word in KEYWORDS or not heads:
            if heads:
                ends.append(end)
            heads.append(
                (
                    word if word in KEYWORDS else "",
                    match.start(),
                    "\n".join(doc.lines) if doc else "",
                )
            )
        elif doc is not None:
            _warn_idle(source, doc, report)
        doc, end = None, match.end()
    if doc is not None:
        _warn_idle(source, doc, report)
    if heads:
        ends.append(end)
    return [Block(source, word, start, stop, text) for (word, start, text), stop in zip(heads, ends, strict=True)]


def _doc_line(source: RuleSource, match: re.Match[str], doc: _Doc | None) -> _Doc | None:
    """Adds a comment to the doc lines if it is one: `##`, first on its line."""
    comment = match.group()
    column = source.place(match.start())[1]
    if not comment.startswith("##") or source.text[match.start() - column + 1 : match.start()].strip():
        return doc
    line = comment[2:].strip()
    if doc is None:
        return _Doc(match.start(), match.end(), [line])
    doc.lines.append(line)
    return doc


def _warn_idle(source: RuleSource, doc: _Doc, report: Report) -> None:
    hint = "put it before a statement, or write `#` for a comment"
    report.warning("W002", "this line documents nothing", source.span(doc.start, doc.end), hint)
