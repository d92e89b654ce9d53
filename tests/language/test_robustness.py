"""Whatever a rule file or an expression holds, the answer is a finding with a place, never a crash."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine.language.diagnostics import RuleSyntaxError, format_text
from rulewright.engine.language.expressions import parse_expression
from rulewright.engine.language.parser import RuleSource, analyse

PAGE = (Path(__file__).parents[2] / "docs" / "rule-language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```rules\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TEXTS = [f"{EXAMPLES[0]}group example {{\n{text}}}\n" if text.startswith("rule ") else text for text in EXAMPLES[1:]]
WORD = re.compile(r'\s+|"[^"\n]*"|\w+|\.\.+|=>|.')
WORDS = sorted({word for text in TEXTS for word in WORD.findall(text) if not word.isspace()})


@st.composite
def broken_files(draw: st.DrawFn) -> str:
    """A file of the reference with a few words left out, put in, or exchanged."""
    words = WORD.findall(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(words) - 1))
        words[place : place + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
        words.append("\n")
    return "".join(words)


@settings(max_examples=150, deadline=None)
@given(broken_files())
def test_a_broken_file_is_reported(text: str) -> None:
    source = RuleSource("t.rules", text)
    analysis = analyse([source])
    assert (analysis.book is None) == bool(analysis.errors)
    lines = text.count("\n") + 1
    for finding in analysis.diagnostics:
        assert 1 <= finding.span.line <= lines
        assert "^" in format_text(finding, source)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_no_crash(text: str) -> None:
    analyse([RuleSource("t.rules", text)])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([*WORDS, "x", "y", "+", "(", ")"]), max_size=12).map(" ".join))
def test_any_expression_is_a_graph_or_a_finding(text: str) -> None:
    try:
        parse_expression(text)
    except RuleSyntaxError as error:
        assert error.diagnostics  # noqa: PT017 - most texts raise, some do not


@pytest.mark.parametrize("text", ["\0", "\ufeffvars x", "vars é", "vars x\u2028", '"', "{", "}", "group", "rule", "##"])
def test_strange_texts(text: str) -> None:
    source = RuleSource("t.rules", text)
    assert [format_text(finding, source) for finding in analyse([source]).diagnostics]
