"""`rulewright watch`: checks a rule file again whenever it is saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ..engine.errors import RulewrightError
from ..engine.language.sources import read_sources, rule_files
from ..engine.rewriting import RuleSet
from .checking import check_sources
from .console import complain, console, duration
from .rule_files import own_rules

INTERVAL = 0.1
"""Seconds between two looks at the files."""

Stamp = tuple[int, int]
"""When a file was written, in nanoseconds, and its size."""


def watch_command(paths: list[str]) -> int:
    """Checks all files once, then each as it is saved, until the user interrupts."""
    watched = paths or [str(own_rules())]
    with suppress(KeyboardInterrupt):
        _watch(watched)
    return 0


def _watch(watched: list[str]) -> None:
    for changed in changes(lambda: rule_files(watched)):
        begin = time.perf_counter()
        try:
            _check(watched, changed)
        except RulewrightError as problem:  # half-written, or gone for a moment: the next look will tell
            complain(str(problem))
        console().print(f"{time.strftime('%H:%M:%S')}, {duration(time.perf_counter() - begin)}; waiting", style="dim")


def _check(watched: list[str], changed: list[Path]) -> None:
    own = read_sources(watched)
    check_sources([*RuleSet.builtin_beside(own), *own], {str(path) for path in changed})


def changes(
    look: Callable[[], list[Path]], pause: Callable[[], None] = lambda: time.sleep(INTERVAL)
) -> Iterator[list[Path]]:
    """All files first; then, whenever some were written or are new, those."""
    before: dict[Path, Stamp] = {}
    while True:
        now = {path: stamp for path in look() if (stamp := _stamp(path)) is not None}
        changed = [path for path in now if before.get(path) != now[path]]
        before = now
        if changed:
            yield changed
        pause()


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
