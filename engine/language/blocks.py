"""Cuts a rule file into statements, so that an error in one leaves the others whole.

Every statement begins with a reserved word and lasts until the next one. The `}` that closes a group belongs to the
statement before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .diagnostics import Report
from .sources import RuleSource
from .syntax import Span

KEYWORDS = frozenset(
    (
        *("module", "use", "vars", "consts", "types", "args", "family", "view", "extern"),
        *("group", "rule", "pipeline", "extend", "replace", "disable", "insert"),
    )
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


def split(source: RuleSource, report: Report) -> list[Block]:
    """The statements of a file in order, each up to its last word: comments after it belong to nothing."""
    return _Splitter(source, report).blocks()


class _Splitter:
    """Goes through the words of a file."""

    def __init__(self, source: RuleSource, report: Report) -> None:
        self.source, self.report = source, report
        self.found: list[Block] = []
        self.doc: list[re.Match[str]] = []  # the `##` lines that wait for their statement

    def blocks(self) -> list[Block]:
        for match in _TOKEN.finditer(self.source.text):
            if match.group()[0] == "#":
                if self._is_doc(match):
                    self.doc.append(match)
            else:
                self._word(match)
        self._drop_doc()
        return self.found

    def _word(self, match: re.Match[str]) -> None:
        """A word begins a statement, or belongs to the last one."""
        word = match.group()
        if word in KEYWORDS or not self.found:
            keyword = word if word in KEYWORDS else ""
            doc = "\n".join(line.group()[2:].strip() for line in self.doc)
            self.found.append(Block(self.source, keyword, match.start(), match.end(), doc))
            self.doc.clear()
        else:
            self._drop_doc()
            self.found[-1] = replace(self.found[-1], end=match.end())

    def _is_doc(self, match: re.Match[str]) -> bool:
        """A doc line begins with `##`, and nothing stands before it on its line."""
        column = self.source.place(match.start())[1]
        before = self.source.text[match.start() - column + 1 : match.start()]
        return match.group().startswith("##") and not before.strip()

    def _drop_doc(self) -> None:
        if self.doc:
            span = self.source.span(self.doc[0].start(), self.doc[-1].end())
            hint = "put it before a statement, or write `#` for a comment"
            self.report.warning("W002", "this line documents nothing", span, hint)
            self.doc.clear()
