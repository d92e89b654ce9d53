"""The property checks: every wrong rule of a long list is refuted, quickly, and none of its right look-alikes is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from hypothesis import settings
from rulewright.engine.language.syntax import Rule
from rulewright.engine.rewriting import RuleSet
from rulewright.verify.cases import CaseResult, run_cases
from rulewright.verify.properties import PropertyResult, check_rule

HERE = Path(__file__).parent
NIGHTLY = settings.default is not None and settings.default.max_examples > 200


def rules_of(ruleset: RuleSet) -> list[Rule]:
    return [rule for group in ruleset.book().groups.values() for rule in group.rules]


def apart(name: str) -> Iterator[RuleSet]:
    """Each rule of a file as a set of its own: together, those that another makes superfluous would be errors."""
    header, *groups = re.split(r"^group ", (HERE / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    for group in groups:
        title, *rules = re.split(r"^  rule ", group, flags=re.MULTILINE)
        for rule in rules:
            text = re.sub(r"^ *#.*\n?", "", rule, flags=re.MULTILINE).rstrip().removesuffix("\n}")
            yield RuleSet.from_text(f"{header}group {title.split()[0]} {{\n  rule {text}\n}}", name)


def checked(name: str, examples: int) -> list[PropertyResult]:
    return [check_rule(one, rule, examples=examples) for one in apart(name) for rule in rules_of(one)]


def failing(ruleset: RuleSet) -> list[CaseResult]:
    files = {source.name for source in ruleset.sources}
    return [case for case in run_cases(ruleset, ruleset.book(), files) if case.problem is not None]


def test_every_wrong_rule_is_refuted_within_a_second() -> None:
    results = checked("wrong.rules", 150)
    assert len(results) >= 60
    missed = [result.rule for result in results if result.counterexample is None]
    assert not missed, f"not refuted: {', '.join(missed)}"
    assert median(result.seconds for result in results) < 1.0


def test_no_right_rule_is_refuted() -> None:
    results = checked("right.rules", 400 if NIGHTLY else 8)
    assert len(results) >= 60
    refuted = [f"{result.rule}\n{result.counterexample}" for result in results if result.counterexample is not None]
    assert not refuted, "refuted, though right:\n" + "\n".join(refuted)
    assert all(result.fired for result in results), "a rule never fired on what was drawn for it"


@pytest.mark.parametrize("name", ["wrong.rules", "right.rules"])
def test_the_lines_beside_the_rules_hold(name: str) -> None:
    assert [line for one in apart(name) for line in failing(one)] == []


def one(text: str, declarations: str = "vars x, y\nconsts c\n") -> PropertyResult:
    ruleset = RuleSet.from_text(f"{declarations}group g {{\n  rule r: {text}\n}}")
    (rule,) = rules_of(ruleset)
    return check_rule(ruleset, rule)


def test_a_counterexample_shows_values_results_and_a_line_to_paste() -> None:
    found = one("x + 0 => x on float32").counterexample
    assert found is not None
    assert str(found).splitlines() == [
        "x + 0.0",
        "  becomes x",
        "  at x = -0.0: 0.0 before, -0.0 after",
        "  keep x + 0.0 given x: float32",
    ]


def test_the_line_to_paste_fails_until_the_rule_is_mended() -> None:
    found = one("x // c => truncdiv(x, c) on index").counterexample
    assert found is not None
    text = f"vars x\nconsts c\ngroup g {{\n  rule r: x // c => truncdiv(x, c)\n    on index\n    {found.keep}\n}}"
    (case,) = failing(RuleSet.from_text(text))
    assert "the rule fires on" in str(case.problem)


def test_the_same_seed_gives_the_same_counterexample() -> None:
    first, second = (one("(x + y) // 2 => x // 2 + y // 2 on int").counterexample for _ in range(2))
    assert first == second is not None


def test_a_right_side_that_has_no_types_is_wrong() -> None:
    found = one("max(x, x) => x | x").counterexample
    assert found is not None
    assert "well formed" in found.problem
    assert "takes" in found.problem or "must be" in found.problem


def test_draws_are_directed_by_the_guard() -> None:
    text = """(x * c1 + y) // c2 => x // {c2 // c1}
    when c1 > 1 and c2 > c1 and c2 % c1 == 0 and y in 0..c1
    on index
    test (i * 4 + j) // 8 => i // 2 given j in 0..4
    keep (i * 4 + j) // 8 given j in 0..5"""
    result = one(text, "vars x, y\nconsts c1, c2\n")
    assert result.counterexample is None
    assert result.acceptance > 0.75
