"""A user's rules on top of ours: added, replaced, disabled, put into pipelines, from files and from text."""

from __future__ import annotations

from pathlib import Path

import pytest
from rulewright.engine.language.diagnostics import RuleError, RuleSyntaxError
from rulewright.engine.language.expressions import parse_expression
from rulewright.engine.printing import expression
from rulewright.engine.rewriting import RuleSet


def simplified(rules: RuleSet, text: str, given: str = "") -> tuple[str, set[str]]:
    result, trace = rules.rewrite(parse_expression(text, given), "simplify")
    return expression(result), set(trace.fires)


def test_a_rule_joins_our_group() -> None:
    rules = RuleSet.loads("vars x\nextend remainder { rule mine: x % (x + 1) => x on index }\n")
    assert simplified(rules, "i % (i + 1)") == ("i", {"remainder.mine"})
    assert simplified(RuleSet.builtin(), "i % (i + 1)")[0] == "i % (i + 1)"


def test_a_rule_takes_the_place_of_ours() -> None:
    rules = RuleSet.loads("vars x\nreplace remainder.mod-one: x % 1 => 5 on index\n")
    assert [rule.id for rule in rules.book().groups["remainder"].rules] == [
        rule.id for rule in RuleSet.builtin().book().groups["remainder"].rules
    ]
    assert simplified(rules, "i % 1") == ("5", {"remainder.mod-one"})


def test_a_rule_is_disabled() -> None:
    rules = RuleSet.loads("disable remainder.mod-one, algebra.add-zero\n")
    ours = {rule.id for group in RuleSet.builtin().book().groups.values() for rule in group.rules}
    left = {rule.id for group in rules.book().groups.values() for rule in group.rules}
    assert ours - left == {"remainder.mod-one", "algebra.add-zero"}


@pytest.mark.parametrize(("where", "expected"), [("before", "7"), ("after", "0")])
def test_groups_enter_the_pipelines(where: str, expected: str) -> None:
    text = f"vars x\ngroup mine {{ rule m: x * 0 => 7 on index }}\ninsert mine {where} algebra\n"
    rules = RuleSet.loads(text)
    assert simplified(rules, "i * 0")[0] == expected
    for _, groups in rules.stages("kernel"):
        assert ("mine" in groups) == ("algebra" in groups)


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.rules").write_bytes(
        b"\xef\xbb\xbfvars x\r\nextend remainder {\r\n\trule mine: x % (x + 1) => x on index\r\n}\r\n"
    )
    (tmp_path / "b.rules").write_text("disable remainder.mod-one\n", encoding="utf-8")
    (tmp_path / "empty.rules").write_text("", encoding="utf-8")
    rules = RuleSet.load(tmp_path)
    assert simplified(rules, "i % i")[0] == "0"
    assert "remainder.mod-one" not in {rule.id for rule in rules.book().groups["remainder"].rules}
    assert RuleSet.load(tmp_path / "a.rules", str(tmp_path / "a.rules")).sources[-1].name == str(tmp_path / "a.rules")


def test_a_file_takes_the_place_of_one_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "gate.rules"
    path.write_text("vars x\ngroup gate { rule nothing: x * 0 => 0 on index }\n", encoding="utf-8")
    assert [rule.id for rule in RuleSet.load(path).book().groups["gate"].rules] == ["gate.nothing"]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"there is no \.rules file in the folder"):
        RuleSet.load(tmp_path)
    with pytest.raises(RuleError, match=r"cannot read the rule file .*absent.rules: No such file"):
        RuleSet.load(tmp_path / "absent.rules")
    (tmp_path / "binary.rules").write_bytes(b"\xff\xfe")
    with pytest.raises(RuleError, match="is not UTF-8 text"):
        RuleSet.load(tmp_path)


def test_a_broken_file_never_half_loads(tmp_path: Path) -> None:
    (tmp_path / "good.rules").write_text("disable remainder.mod-one\n", encoding="utf-8")
    (tmp_path / "bad.rules").write_text("disable remainder.mod-one\ndisable remainder.mod-on\nrule", encoding="utf-8")
    with pytest.raises(RuleSyntaxError) as caught:
        RuleSet.load(tmp_path)
    assert [found.code for found in caught.value.diagnostics] == ["E026", "E001", "E055"]
