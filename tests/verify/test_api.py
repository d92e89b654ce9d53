"""What users test their own rules with: the functions, the strategies, the pytest plugin, the options of `check`."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import given, settings
from rulewright.cli import main
from rulewright.engine.dtypes import int32
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.uop import UOp
from rulewright.verify import Application, RuleRefuted, RuleStrategy, check_pipeline, check_rules, graphs

RULES = """module mine
vars x
consts c
group mine {
  rule twice: x + x => x * 2
    on int, float
  rule scaled: (x * c) // c => x
    when c > 0
    on index
    test (i * 3) // 3 => i
    keep (i * -3) // -3
}
pipeline tidy = fix(mine)
"""
WRONG = RULES.replace("on index", "on int32")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "mine.rules"
    path.write_text(RULES, encoding="utf-8")
    return path


def test_rules_that_are_right_are_counted(rules: Path) -> None:
    results = check_rules(rules)
    assert [result.rule for result in results] == ["mine.twice", "mine.scaled"]
    assert all(result.acceptance > 0.9 for result in results)


def test_a_wrong_rule_raises_with_a_line_to_paste() -> None:
    with pytest.raises(RuleRefuted, match=r"mine\.scaled is wrong(.|\n)*keep x \* 2 // 2 given x: int32"):
        check_rules(RuleSet.from_text(WRONG), ["mine.scaled"])


@settings(max_examples=30)
@given(RuleStrategy(RuleSet.from_text(RULES), "mine.scaled"))
def test_a_strategy_draws_applications_of_a_rule(application: Application) -> None:
    application.check()
    assert application.before is not application.after


@settings(max_examples=30)
@given(graphs(int32))
def test_graphs_have_the_type_that_is_asked_for(graph: UOp) -> None:
    assert graph.dtype is int32


def test_our_pipelines_keep_values() -> None:
    for pipeline in RuleSet.builtin().compiled.pipelines:
        result = check_pipeline(RuleSet.builtin(), pipeline, examples=40)
        assert result.counterexample is None, f"{pipeline}:\n{result.counterexample}"


def test_a_pipeline_that_loops_is_reported() -> None:
    text = "vars x, y\ngroup g { rule turn: x + y => y + x ordered }\npipeline p = fix(g)"
    found = check_pipeline(RuleSet.from_text(text), "p").counterexample
    assert found is not None and "g.turn" in found.problem


def test_pytest_makes_each_rule_a_test(rules: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.rules"
    wrong.write_text(WRONG.replace("module mine", "module wrong"), encoding="utf-8")
    installed = entry_points(group="pytest11", name="rulewright")
    plugin = [] if installed else ["-p", "rulewright.verify.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *plugin, "-q", "-rA", "--rulewright", str(rules), str(tmp_path)]
    good = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert good.returncode == 0 and "2 passed" in good.stdout, good.stdout + good.stderr
    bad = subprocess.run(
        [*command, "--rulewright", str(wrong)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert bad.returncode != 0 and "two groups `mine`" not in bad.stdout
    assert "wrong.rules:7" in bad.stdout and "keep x * 2 // 2 given x: int32" in bad.stdout, bad.stdout
    assert "Traceback" not in bad.stdout


def test_check_prints_what_is_wrong_and_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, report = tmp_path / "mine.rules", tmp_path / "report.json"
    path.write_text(WRONG, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["check", str(path), "--table", "--json", str(report)])
    printed = capsys.readouterr().out
    assert ended.value.code == 1
    assert "mine.scaled is wrong" in printed and "keep x * 2 // 2 given x: int32" in printed
    assert "acceptance" in printed
    rows = json.loads(report.read_text(encoding="utf-8"))
    assert [row["verdict"] for row in rows] == ["passed", "refuted"]


def test_an_unknown_rule_gets_a_suggestion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(RULES, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["check", str(path), "--rule", "mine.scale"])
    assert ended.value.code == 2
    assert "did you mean `mine.scaled`?" in capsys.readouterr().err
