"""What docs/verification.md shows is so: its program runs, its commands exist, its verdicts are all that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rulewright.verify.proofs.verdicts import Verdict
from typer.testing import CliRunner

PAGE = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_programs_run(program: str) -> None:
    exec(compile(program, "verification.md", "exec"), {})  # noqa: S102 - our own page


def test_every_verdict_is_explained() -> None:
    explained = re.findall(r"^\| ([a-z ]+) \|", PAGE, re.MULTILINE)
    assert explained == ["verdict", *(verdict.value for verdict in Verdict)]


def test_the_options_exist() -> None:
    from rulewright.cli.app import app

    shown = CliRunner().invoke(app, ["check", "--help"], env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}).output
    assert all(option in shown for option in ("--prove", "--renew", "--report"))


def test_check_prove_reports_a_wrong_rule(tmp_path: Path) -> None:
    import json

    from rulewright.cli.app import app

    rules, report = tmp_path / "mine.rules", tmp_path / "proofs.json"
    rules.write_text("module mine\nvars x\ngroup mine {\n  rule zero: x * 0 => 0\n    on float\n}\n")
    result = CliRunner().invoke(app, ["check", str(rules), "--prove", "--jobs", "1", "--report", str(report)])
    assert result.exit_code == 1
    assert "mine.zero" in result.output
    assert json.loads(report.read_text())[0]["verdict"] == "refuted"
