"""The text of a rule file, and the way from a position in it to a line and a column."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..errors import RulewrightError
from .syntax import Span


class RuleError(RulewrightError):
    """Something about rules that their author can correct."""


@dataclass(frozen=True)
class RuleSource:
    """A rule file: the name that messages show, and the text."""

    name: str
    text: str

    @property
    def module(self) -> str:
        """The module's name where the text does not say it: the file's name without its ending."""
        return Path(self.name).stem

    @cached_property
    def _line_starts(self) -> list[int]:
        return [
            0,
            *(position + 1 for position, character in enumerate(self.text) if character == "\n"),
        ]

    def place(self, position: int) -> tuple[int, int]:
        """The line and column, from 1, of a position in the text."""
        line = bisect_right(self._line_starts, position)
        return line, position - self._line_starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        """The place between two positions."""
        return Span(self.name, *self.place(start), *self.place(end))

    def line(self, number: int) -> str:
        """The text of a line, without its end."""
        start = self._line_starts[number - 1]
        return self.text[start:].split("\n", 1)[0].rstrip("\r")

    def text_at(self, span: Span) -> str:
        """What stands at a place, on one line and without comments."""
        lines = [self.line(number) for number in range(span.line, span.end_line + 1)]
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return " ".join(" ".join(line.split("#")[0] for line in lines).split())


def read_sources(paths: Iterable[str | Path]) -> list[RuleSource]:
    """The rule files at these paths, of a folder all in it. Raises RuleError naming what cannot be read, and why.

    A byte order mark is dropped, line ends of Windows are read as plain ones.
    """
    return [RuleSource(str(path), _read(path)) for path in rule_files(paths)]


def rule_files(paths: Iterable[str | Path]) -> list[Path]:
    """The paths, each folder replaced by the rule files in it, in the order of their names; each file once."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.rules")) if path.is_dir() else [path]
        if not inside:
            raise RuleError(f"there is no .rules file in the folder {path}")
        found += inside
    return list(dict.fromkeys(found))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise RuleError(f"cannot read the rule file {path}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise RuleError(f"the rule file {path} is not UTF-8 text (byte {problem.start})") from None
