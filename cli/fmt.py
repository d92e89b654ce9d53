"""`rulewright fmt`: rule files in their standard layout."""

from __future__ import annotations

import difflib
from pathlib import Path

from rich.text import Text

from ..engine.language.formatting import format_rules
from ..engine.language.sources import RuleSource, read_sources
from .console import InputError, complain, console, reading
from .rule_files import own_rules


def fmt_command(paths: list[str], check: bool, diff: bool) -> int:
    """Rewrites the files that are not in the standard layout; with `check` or `diff` only tells about them, status 1."""
    with reading():
        sources = read_sources(paths or [own_rules()])
    changed = [(source, text) for source in sources if (text := format_rules(source)) != source.text]
    out = console()
    for source, text in changed:
        if diff:
            lines = difflib.unified_diff(
                source.text.splitlines(), text.splitlines(), source.name, source.name, lineterm=""
            )
            out.print(Text("\n".join(lines)), soft_wrap=True)
        elif check:
            complain(f"{source.name} is not in the standard layout: run `rulewright fmt {source.name}`", prefix="")
        else:
            _write(source, text)
            out.print(Text(f"{source.name}: formatted"), soft_wrap=True)
    return 1 if changed and (check or diff) else 0


def _write(source: RuleSource, text: str) -> None:
    try:
        Path(source.name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as problem:
        raise InputError(f"cannot write {source.name}: {problem.strerror}") from None
