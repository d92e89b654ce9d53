"""Every message, whole: each file in `errors/` lists rule texts with what is reported about them.

A case is a line `=== what is wrong`, the text of a rule file, a line `---`, and all messages, a blank line between two.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from rulewright.engine.language.diagnostics import CODES, RuleSyntaxError, Severity, format_text
from rulewright.engine.language.parser import RuleSource, analyse, load_rules

FOLDER = Path(__file__).parent / "errors"

ELSEWHERE = {"E031", "E054", "E062", "E063"}
"""Codes whose messages are tested below, need two files, or come from running the lines beside rules."""


def cases() -> list[tuple[str, str, str]]:
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("=== ")[1:]:
            title, _, rest = block.partition("\n")
            text, _, expected = rest.partition("\n---\n")
            found.append((f"{path.stem}: {title}", text + "\n", expected.strip("\n")))
    return found


CASES = cases()


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_message(text: str, expected: str) -> None:
    source = RuleSource("t.rules", text)
    analysis = analyse([source])
    assert "\n\n".join(format_text(finding, source) for finding in analysis.diagnostics) == expected
    has_error = any(finding.severity is Severity.ERROR for finding in analysis.diagnostics)
    assert (analysis.book is None) == has_error


def test_every_code_has_a_case() -> None:
    shown = {code for code in CODES for _, _, expected in CASES if f"[{code}]" in expected}
    assert set(CODES) - shown - ELSEWHERE == set()


def test_errors_of_all_files_come_in_one_exception() -> None:
    first = RuleSource("one.rules", "vars x\ngroup a {\n  rule r: x + y => x\n}\n")
    second = RuleSource("two.rules", "group b {\n  rule r: 1 +\n}\n")
    with pytest.raises(RuleSyntaxError) as caught:
        load_rules([first, second])
    assert [(d.span.file, d.code) for d in caught.value.diagnostics] == [("one.rules", "E010"), ("two.rules", "E001")]
    assert str(caught.value) == (
        "one.rules:3:15: error[E010]: unknown name `y`\n"
        "    rule r: x + y => x\n"
        "                ^\n"
        "  hint: declare it with `vars` or `consts`\n"
        "\n"
        "two.rules:3:1: error[E001]: expected a term, found `}`\n"
        "  }\n"
        "  ^"
    )


def test_two_modules_with_one_name() -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        load_rules([RuleSource("a/m.rules", "vars x\n"), RuleSource("b.rules", "module m\n")])
    assert str(caught.value) == (
        "b.rules:1:8: error[E054]: there are two modules `m`\n"
        "  module m\n"
        "         ^\n"
        "a/m.rules:1:1: the other\n"
        "  vars x\n"
        "  ^"
    )


def test_warnings_do_not_stop_loading() -> None:
    text = "vars x, y\ngroup a { rule r: x + 0 => x }\n"
    analysis = analyse([RuleSource("t.rules", text)])
    assert analysis.book is not None
    assert [(finding.code, finding.severity) for finding in analysis.diagnostics] == [("W001", Severity.WARNING)]
    assert analysis.errors == ()


def test_a_mistake_in_one_value_of_a_parameter_is_reported_once() -> None:
    text = "vars x\ngroup a {\n  rule r[n in {1, 2, 3, 4}]: x + n => y\n}\n"
    analysis = analyse([RuleSource("t.rules", text)])
    assert [finding.message for finding in analysis.diagnostics] == ["unknown name `y`"]


def test_tabs_keep_the_carets_in_place() -> None:
    source = RuleSource("t.rules", "vars x\ngroup a {\n\trule r: x + y => x\n}\n")
    (finding,) = analyse([source]).diagnostics
    assert format_text(finding, source).splitlines()[2] == "  \t            ^"


def test_windows_line_ends() -> None:
    source = RuleSource("t.rules", "vars x\r\ngroup a {\r\n  rule r: x + y => x\r\n}\r\n")
    (finding,) = analyse([source]).diagnostics
    assert (finding.span.line, finding.span.column) == (3, 15)
    assert format_text(finding, source).splitlines()[1] == "    rule r: x + y => x"
