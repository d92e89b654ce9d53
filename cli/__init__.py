"""The command line: one module for each command, and `main`, which turns errors into messages and exit statuses."""

from __future__ import annotations

from collections.abc import Sequence

from ..engine.errors import RulewrightError
from ..engine.language.diagnostics import RuleSyntaxError
from .console import InputError, complain


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs `rulewright` and leaves by SystemExit: 0 all is well, 1 something failed, 2 the input cannot be used."""
    from .app import app

    try:
        app(args=None if arguments is None else list(arguments), prog_name="rulewright")
    except RulewrightError as problem:
        shows_place = isinstance(problem, RuleSyntaxError)  # and begins with it, as compilers do
        complain(str(problem), prefix="" if shows_place else "error: ")
        raise SystemExit(2 if shows_place or isinstance(problem, InputError) else 1) from None
