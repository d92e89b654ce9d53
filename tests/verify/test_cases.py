"""The `test` and `keep` lines beside our own rules hold, and wrong ones are found."""

from __future__ import annotations

from rulewright.engine.rewriting import RuleSet
from rulewright.verify.cases import CaseResult, run_cases


def run(rules: RuleSet) -> list[CaseResult]:
    return list(run_cases(rules, rules.book(), {source.name for source in rules.sources}))


def test_every_line_beside_our_rules_holds() -> None:
    results = run(RuleSet.builtin())
    wrong = [f"{result.place}: {result.rule}: {result.problem}" for result in results if result.problem]
    assert not wrong, "mend the rule or its line:\n" + "\n".join(wrong)
    assert len(results) > 200


def test_a_wrong_line_is_found_with_its_place() -> None:
    text = """vars x
    group g {
      rule r: x + 0 => x
        test i + 0 => j
        keep i + 0
        test i + 1 => i
    }"""
    results = run(RuleSet.from_text(text, "my.rules"))
    assert [result.place for result in results] == ["my.rules:4:9", "my.rules:5:9", "my.rules:6:9"]
    assert all(result.problem for result in results)
    assert "expected j, got i" in str(results[0].problem)
    assert "fires" in str(results[1].problem)
    assert "does not fire" in str(results[2].problem)
