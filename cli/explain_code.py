"""`rulewright explain-code`: what an error code means, with an example and its correction."""

from __future__ import annotations

from ..engine.language.codes import code_pages
from ..engine.language.diagnostics import did_you_mean
from .console import InputError, console


def explain_code_command(code: str) -> int:
    """Prints the page of a code, or without one the list of all."""
    pages = code_pages()
    out = console()
    if not code:
        out.print("\n".join(f"{page.code}  {page.title}" for page in pages.values()), markup=False)
        return 0
    page = pages.get(code.strip().upper())
    if page is None:
        hint = did_you_mean(code.upper(), pages) or "`rulewright explain-code` lists them"
        raise InputError(f"there is no code {code!r}; {hint}")
    text = f"{page.code}: {page.title}\n\n{page.meaning}\n\nWrong:\n\n{_indented(page.wrong)}\n\nMended:\n\n{_indented(page.mended)}"
    out.print(text, markup=False, soft_wrap=True)
    return 0


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())
