"""Rule files that a user names, together with our own that they stand on."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from ..engine.language.parser import RuleSource, read_sources
from ..engine.rewriting import RuleSet
from .console import reading


def sources_with_builtin(paths: Sequence[str]) -> tuple[list[RuleSource], list[RuleSource]]:
    """The user's files, and our own without those that a user's file of the same name replaces."""
    with reading():
        own = read_sources(paths)
    return own, RuleSet.builtin_beside(own)


def with_builtin(paths: Sequence[str]) -> RuleSet:
    """The user's rules on top of our own. Raises RuleSyntaxError with everything that is wrong in them."""
    own, builtin = sources_with_builtin(paths)
    return RuleSet.from_sources([*builtin, *own])


def own_rules() -> Path:
    """The folder of our own rules."""
    return Path(str(resources.files(__package__.split(".")[0]) / "rules"))
