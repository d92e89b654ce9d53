"""The pages about error codes: what each means, a file with the mistake, and the same file mended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class CodePage:
    code: str
    title: str
    meaning: str
    wrong: str
    mended: str


_PAGE = re.compile(
    r"^## (?P<code>[EW]\d{3}): (?P<title>[^\n]*)\n\n(?P<meaning>.*?)\n\n"
    r"```rules wrong\n(?P<wrong>.*?)```\n\n```rules mended\n(?P<mended>.*?)```$",
    re.MULTILINE | re.DOTALL,
)


@lru_cache(maxsize=1)
def code_pages() -> dict[str, CodePage]:
    """Every page by its code, from `codes.md`."""
    text = resources.files(__package__).joinpath("codes.md").read_text(encoding="utf-8")
    return {match["code"]: CodePage(**match.groupdict()) for match in _PAGE.finditer(text)}
