"""What all commands print with: one console, messages for mistakes, and the words for durations and differences."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from ..engine.errors import RulewrightError
from ..engine.language.diagnostics import RuleSyntaxError

WIDTH_OF_LOGS = 110
"""How wide tables are where the output is no terminal."""


class InputError(RulewrightError):
    """What the user gave cannot be used: a file, an expression, a name. Exit status 2."""


def console(*, stderr: bool = False) -> Console:
    """A console on what is now the standard output (or error): a terminal's own width, else a fixed one."""
    file = sys.stderr if stderr else sys.stdout
    width = None if file.isatty() else WIDTH_OF_LOGS
    return Console(file=file, width=width, highlight=False)


def complain(message: str, prefix: str = "error: ") -> None:
    """Prints why a command fails."""
    console(stderr=True).print(Text.assemble((prefix, "bold red"), message), soft_wrap=True)


@contextmanager
def reading(what: str = "") -> Iterator[None]:
    """Inside, a mistake in the input is the user's to correct: it becomes an InputError, `what` in front."""
    try:
        yield
    except (InputError, RuleSyntaxError):
        raise
    except RulewrightError as problem:
        raise InputError(f"{what}: {problem}" if what else str(problem)) from None
    except OSError as problem:
        raise InputError(f"cannot read {problem.filename or what}: {problem.strerror or problem}") from None
    except UnicodeDecodeError as problem:
        raise InputError(f"{what} is not UTF-8 text (byte {problem.start})") from None


def duration(seconds: float) -> str:
    """A time with its unit, to about three digits."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1e3
    return f"{milliseconds:.1f} ms" if milliseconds >= 1 else f"{seconds * 1e6:.0f} µs"
