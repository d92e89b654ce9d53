"""Verdicts that are known already: a rule that passed once passes again, as long as neither it nor what judges it changes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..engine.cache import cache_directory
from ..engine.language.syntax import Rule
from ..engine.rewriting import ruleset

_PLACE = re.compile(r"Span\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Passed:
    """What the checks of a rule counted when it passed."""

    cases: int
    drawn: int
    fired: int
    seconds: float


def key(rule: Rule, *settings: object) -> str:
    """Names a rule, wherever it stands in its file, with the engine, these checks and their settings."""
    parts = (rule.id, rule.instances, rule.on, rule.ordered)
    digest = hashlib.sha256(_PLACE.sub("", repr(parts)).encode())
    digest.update(repr(settings).encode())
    digest.update(_judges())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=1)
def _judges() -> bytes:
    """The text of the engine and of the checks."""
    digest = hashlib.sha256(ruleset.engine_key())
    for path in sorted(Path(__file__).resolve().parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def read(name: str) -> Passed | None:
    """The counts of a verdict; None if there is none, or none that can be read."""
    try:
        found = json.loads(_path(name).read_text(encoding="utf-8"))
        return Passed(int(found[0]), int(found[1]), int(found[2]), float(found[3]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def store(name: str, passed: Passed) -> None:
    """Keeps a verdict; a cache that cannot be written is no error."""
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump([passed.cases, passed.drawn, passed.fired, round(passed.seconds, 4)], file)
        os.replace(file.name, path)
    except OSError:
        return


def _path(name: str) -> Path:
    return cache_directory() / "properties" / name[:2] / f"{name}.json"
