"""The pages about codes are true: each wrong example has exactly that code, its mended one nothing."""

from __future__ import annotations

import re

import pytest
from rulewright.engine.language.codes import CodePage, code_pages
from rulewright.engine.language.diagnostics import CODES
from rulewright.engine.language.parser import RuleSource, analyse
from rulewright.engine.rewriting import RuleSet
from rulewright.verify.cases import run_cases


def codes_in(text: str) -> set[str]:
    """The codes of all findings; a text of several files says where each begins."""
    parts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)
    sources = [RuleSource("t.rules", parts[0])] if len(parts) == 1 else []
    sources += [RuleSource(name, body) for name, body in zip(parts[1::2], parts[2::2], strict=True)]
    analysis = analyse(sources)
    found = {one.code for one in analysis.diagnostics}
    if analysis.book is not None:
        cases = run_cases(RuleSet.of_book(sources, analysis.book), analysis.book, {one.name for one in sources})
        found |= {case.finding.code for case in cases if case.finding is not None}
    return found


def test_every_code_has_a_page() -> None:
    assert {code: page.title for code, page in code_pages().items()} == CODES


@pytest.mark.parametrize("page", code_pages().values(), ids=code_pages())
def test_examples(page: CodePage) -> None:
    assert codes_in(page.wrong) == {page.code}
    assert codes_in(page.mended) == set()
