"""The layout of rule files, `rulewright fmt`: one statement or clause a line, long ones broken, every comment kept.

The layout follows from the words and comments of a file alone, and from which lines are blank: formatting twice is
formatting once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lark import Token

from .blocks import split
from .diagnostics import Report, RuleError, RuleSyntaxError
from .grammar import lark
from .modules import start_symbol
from .parser import analyse_syntax
from .sources import RuleSource

WIDTH = 120
CONTINUED = 4
"""How far the rest of a broken line stands to the right."""

CLAUSES = frozenset({"LET", "WHEN", "ON", "ORDERED", "DECREASES", "BECAUSE", "TEST", "KEEP"})
OPERANDS = frozenset({"NAME", "KEBAB", "INT", "FLOAT", "STRING", "WORD_VALUE", "UNDERSCORE"})
"""What ends an operand, beside closing brackets: a sign after it has two operands."""
OPEN, CLOSE = frozenset("([{"), frozenset(")]}")
SIGNS = frozenset({"COMPARE", "PLUS", "MINUS", "STAR", "SLASHES", "SHIFT", "AMPERSAND", "CARET", "BAR"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word or sign, or a comment, as it is written and what it means for the layout."""

    text: str
    type: str  # lark's, or COMMENT
    spaced: bool  # whether a space is before it
    depth: int  # how many brackets are open around it
    alone: bool = False  # a comment with nothing before it on its line
    blank: bool = False  # a blank line is before it
    starts: bool = False  # begins a line
    indent: int = 0  # of the line that it begins


@dataclass(slots=True)
class Line:
    """What belongs on one line if that is wide enough."""

    indent: int
    blank: bool
    words: list[Word] = field(default_factory=list)


def format_rules(source: RuleSource) -> str:
    """The text in its standard layout. Raises RuleSyntaxError if it does not follow the grammar."""
    report = analyse_syntax(source)
    if report.errors:
        raise RuleSyntaxError(report.sorted([source.name]), [source])
    words = _words(source)
    text = "".join(f"{line}\n" for line in _layout(words))
    again = _words(RuleSource(source.name, text))
    if [(word.text, word.alone) for word in again] != [(word.text, word.alone) for word in words]:
        raise RuleError(f"{source.name}: this layout cannot be improved without a change of meaning; please report it")
    return text


# --- words -----------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"#[^\n]*")


def _words(source: RuleSource) -> list[Word]:
    """The words and comments of a file in order."""
    found: list[Word] = []
    end = 0  # of the last word
    inside = False  # a group is open
    for block in split(source, Report()):
        parser = lark().parse_interactive(block.text, start_symbol(block.keyword))
        depth = 0
        for token in parser.iter_parse():
            assert token.start_pos is not None and token.end_pos is not None
            start = block.start + token.start_pos
            gap = source.text[end:start]
            head = block.keyword in ("group", "extend") and depth == 0 and token == "{"
            closes = token == "}" and depth == 0
            indent = 0 if closes or not inside or block.keyword != "rule" else 2
            starts = closes or token.start_pos == 0
            if depth == 0 and token.type in CLAUSES and not starts:
                starts, indent = True, (4 if inside else 2)
            found += _comments(gap, end == 0)
            blank = _blank(gap) if not found or found[-1].type != "COMMENT" else _blank(gap[gap.rfind("#") :])
            depth -= token in CLOSE and not closes
            spaced = not starts and _spaced(found, token, gap, head)
            found.append(Word(str(token), token.type, spaced, depth, False, blank, starts, indent))
            depth += token in OPEN and not head
            inside = inside and not closes or head
            end = block.start + token.end_pos
    return found + _comments(source.text[end:], end == 0)


def _blank(gap: str) -> bool:
    return gap.count("\n") > 1


def _comments(gap: str, first: bool) -> list[Word]:
    """The comments between two words."""
    found = []
    end = 0
    for match in _COMMENT.finditer(gap):
        before = gap[end : match.start()]
        alone = "\n" in before or end > 0 or first
        found.append(Word(match.group().rstrip(), "COMMENT", True, 0, alone, _blank(before)))
        end = match.end()
    return found


def _spaced(before: Sequence[Word], token: Token, gap: str, head: bool) -> bool:
    """Whether a space stands before a word."""
    word = before[-1]
    if word.type == "COMMENT":
        return False
    if token in (")", "]", ",", ":", ".", "@", "..", "[") or token == "}" and word.text != "{":
        return False
    if word.text in ("(", "[", ".", "@", "..", "...") or word.text == "{" or _is_unary(before):
        return False
    if token == "(" or token == "{" and not head:
        if word.type in ("AND", "OR", "NOT"):
            return bool(gap)  # `not (…)` of a formula, `not(…)` of a term
        return word.type not in ("NAME", "KEBAB", "FIX", "ONCE") and word.text != "]"
    return True


def _is_unary(words: Sequence[Word]) -> bool:
    """Whether the last word is a sign with one operand."""
    if words[-1].text not in ("-", "~"):
        return False
    before = next((word for word in reversed(words[:-1]) if word.type != "COMMENT"), None)
    return before is None or not (before.type in OPERANDS or before.text in CLOSE)


# --- lines -----------------------------------------------------------------------------------------------------------


def _layout(words: Sequence[Word]) -> list[str]:
    out: list[str] = []
    for line in _lines(words):
        if line.blank and out and not out[-1].endswith("{"):
            out.append("")
        if line.words[0].text == "}":
            while out and not out[-1]:
                out.pop()
        out += _shown(line)
    return out


def _lines(words: Sequence[Word]) -> list[Line]:
    """The words of each line; a comment alone before a line stands as far to the right as that line."""
    lines: list[Line] = []
    for position, word in enumerate(words):
        if word.type == "COMMENT" and word.alone:
            follows = next((other for other in words[position:] if other.type != "COMMENT"), None)
            if follows is None or follows.starts:
                closing = follows is not None and follows.text == "}"
                indent = 2 if closing else follows.indent if follows is not None else 0
                lines.append(Line(indent, word.blank, [word]))
                continue
        if word.starts:
            lines.append(Line(word.indent, word.blank, [word]))
        else:
            lines[-1].words.append(word)
    return lines


def _shown(line: Line) -> list[str]:
    """A line as text, broken where it is too long and behind every comment."""
    shown: list[str] = []
    indent = line.indent
    part: list[Word] = []
    for word in line.words:
        if word.type != "COMMENT":
            part.append(word)
            continue
        if part:
            shown += _wrapped(part, indent)
            indent, part = line.indent + CONTINUED, []
        if word.alone or not shown:
            shown.append(" " * indent + word.text)
        else:
            shown[-1] += f"  {word.text}"
        indent = line.indent + CONTINUED
    return shown + (_wrapped(part, indent) if part else [])


def _text(words: Sequence[Word]) -> str:
    return "".join((" " if word.spaced and number else "") + word.text for number, word in enumerate(words))


def _wrapped(words: Sequence[Word], indent: int, rest: int | None = None) -> list[str]:
    """The words on as many lines as they need, broken at the outermost places first."""
    rest = indent + CONTINUED if rest is None else rest
    text = " " * indent + _text(words)
    if len(text) <= WIDTH:
        return [text]
    breaks = {number: rank for number in range(1, len(words)) if (rank := _break(words, number)) is not None}
    if not breaks:
        return [text]
    outermost = min(breaks.values())
    cuts = [0, *(number for number, rank in breaks.items() if rank == outermost), len(words)]
    pieces = [words[first:end] for first, end in pairwise(cuts)]
    fill = outermost[1] >= 2
    lines: list[str] = []
    for piece in pieces:
        joined = f"{lines[-1]}{' ' if piece[0].spaced else ''}{_text(piece)}" if lines else ""
        if lines and fill and len(joined) <= WIDTH:
            lines[-1] = joined
        else:
            lines += _wrapped(piece, rest if lines else indent, rest + (2 if lines else 0))
    return lines


def _break(words: Sequence[Word], number: int) -> tuple[int, int] | None:
    """How readily a line is broken before a word: depth first, then what stands there. None: not here."""
    before, word = words[number - 1], words[number]
    if word.text in ("=>", "given") and word.depth == 0:
        return word.depth, 0
    if word.type in ("OR", "AND") and (before.type in OPERANDS or before.text in CLOSE):
        return word.depth, 1 if word.type == "OR" else 2
    if before.text in (",", ";"):
        return word.depth, 3
    if word.type == "FOR":
        return word.depth, 4
    if word.type in SIGNS and (before.type in OPERANDS or before.text in CLOSE) and word.spaced:
        return word.depth, 5 if word.type == "COMPARE" else 6
    return None
