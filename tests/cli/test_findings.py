"""`check --format` and `explain-code`, `fmt`: what programs and people get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rulewright.cli import main

WRONG = """vars x
group g {
  rule zero: x * 0 => y on index
  rule zero: x * 1 => x
}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    out, err = capsys.readouterr()
    return left.value.code, out, err


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("wrong.rules").write_text(WRONG, encoding="utf-8")
    return "wrong.rules"


def test_json(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    status, out, _ = run(capsys, "check", wrong, "--format", "json")
    first, second = json.loads(out)
    assert status == 1
    assert first == {
        "code": "E010", "severity": "error", "message": "unknown name `y`", "hint": "declare it with `vars` or `consts`",
        "file": "wrong.rules", "line": 3, "column": 23, "end_line": 3, "end_column": 24,
    }  # fmt: skip
    assert (second["code"], second["line"], second["related"]["line"]) == ("E050", 4, 3)


def test_sarif(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    _, out, _ = run(capsys, "check", wrong, "--format", "sarif")
    (log,) = json.loads(out)["runs"]
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == ["E010", "E050"]
    first, second = log["results"]
    assert first["locations"][0]["physicalLocation"]["region"]["startColumn"] == 23
    assert first["message"]["text"] == "unknown name `y` (declare it with `vars` or `consts`)"
    assert second["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 3


def test_github(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    _, out, _ = run(capsys, "check", wrong, "--format", "github")
    assert out.splitlines()[0] == (
        "::error file=wrong.rules,line=3,endLine=3,col=23,endColumn=24,title=E010"
        "::unknown name `y` (declare it with `vars` or `consts`)"
    )


def test_lines_that_fail_are_findings(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    Path(wrong).write_text(
        "vars x\ngroup g {\n  rule one: x * 1 => x\n    test i * 1 => j\n    keep i * 1\n}\n", encoding="utf-8"
    )
    status, out, _ = run(capsys, "check", wrong, "--format", "json")
    assert (status, [(one["code"], one["line"]) for one in json.loads(out)]) == (1, [("E062", 4), ("E063", 5)])


def test_nothing_wrong(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    Path(wrong).write_text("", encoding="utf-8")
    assert run(capsys, "check", wrong, "--format", "json") == (0, "[]\n", "")
    assert run(capsys, "check", wrong, "--format", "github") == (0, "", "")


def test_unknown_format(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    status, _, err = run(capsys, "check", wrong, "--format", "xml")
    assert (status, err) == (2, "error: there is no format 'xml': text, json, sarif, github\n")


def test_explain_code(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "explain-code", "e012")
    assert status == 0
    assert out.startswith("E012: unknown function\n")
    assert "Wrong:" in out
    assert "E071  no value is possible" in run(capsys, "explain-code")[1]
    assert run(capsys, "explain-code", "E999")[0] == 2


def test_fmt(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    Path(wrong).write_bytes(b"vars x\r\ngroup g{rule one: x*1=>x}\r\n")
    status, _, err = run(capsys, "fmt", wrong, "--check")
    assert (status, err) == (1, "wrong.rules is not in the standard layout: run `rulewright fmt wrong.rules`\n")
    status, out, _ = run(capsys, "fmt", wrong, "--diff")
    assert status == 1
    assert "+  rule one: x * 1 => x" in out
    assert run(capsys, "fmt", wrong) == (0, "wrong.rules: formatted\n", "")
    assert Path(wrong).read_bytes() == b"vars x\ngroup g {\n  rule one: x * 1 => x\n}\n"
    assert run(capsys, "fmt", wrong, "--check") == (0, "", "")


def test_fmt_of_a_broken_file(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    Path(wrong).write_text("group g {", encoding="utf-8")
    status, _, err = run(capsys, "fmt", wrong)
    assert status == 2
    assert "E003" in err
    assert Path(wrong).read_text(encoding="utf-8") == "group g {"


@pytest.mark.parametrize("command", [("run", "matmul"), ("show", "matmul"), ("simplify", "i*1")])
def test_a_broken_rule_file_stops_every_command(
    capsys: pytest.CaptureFixture[str], wrong: str, command: tuple[str, ...]
) -> None:
    status, out, err = run(capsys, *command, "--rules", wrong)
    assert (status, out) == (2, "")
    assert "wrong.rules:3:23: error[E010]" in err


def test_run_with_rules_of_ones_own(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    Path(wrong).write_text("vars x\nextend gate { rule one: x * 1 => x }\n", encoding="utf-8")
    status, out, _ = run(capsys, "run", "matmul", "--check", "--rules", wrong)
    assert (status, out.splitlines()[-1]) == (0, "ok: the same as NumPy")
