"""Rule files that a user names, together with our own that they stand on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..engine.language.parser import RuleSource, read_sources
from ..engine.rewriting import RuleSet
from .console import InputError, reading


def sources_with_builtin(paths: Sequence[str]) -> tuple[list[RuleSource], list[RuleSource]]:
    """The user's files, and our own without those that a user's file of the same name replaces."""
    with reading():
        own = read_sources(files(paths))
    replaced = {source.module for source in own}
    return own, [source for source in RuleSet.builtin().sources if source.module not in replaced]


def with_builtin(paths: Sequence[str]) -> RuleSet:
    """The user's rules on top of our own. Raises RuleSyntaxError with everything that is wrong in them."""
    own, builtin = sources_with_builtin(paths)
    return RuleSet.from_sources([*builtin, *own])


def files(paths: Sequence[str]) -> list[Path]:
    """The paths, each folder replaced by the rule files in it."""
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.rules")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"there is no .rules file in the folder {path}")
        found += inside
    return found
