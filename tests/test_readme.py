"""What the README says is so: its commands exist, its programs run, its sessions print what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import rulewright
from rulewright.cli import main
from rulewright.engine.rewriting import RuleSet
from rulewright.runtimes import devices

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def call(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of a `rulewright …` line that must succeed."""
    name, *arguments = shlex.split(command)
    assert name == "rulewright"
    with pytest.raises(SystemExit) as left:
        main(arguments)
    output, errors = capsys.readouterr()
    assert left.value.code in (0, None), output + errors
    return output


def test_one_command_runs_the_demo_and_one_the_tests() -> None:
    """CI takes the second from here."""
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("rulewright demo")
    assert re.search(r"pytest( -n \w+)?$", commands[1])


def test_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, object] = {}
    for program in blocks("python"):
        exec(program, scope)  # noqa: S102 - our own text
    assert "accumulate.accumulate" in capsys.readouterr().out


def test_sessions_print_what_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (rules,) = blocks("rules")
    Path("mine.rules").write_text(rules, encoding="utf-8")
    compared = 0
    for session in blocks("console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
            if shown:
                assert call(command, capsys) == shown
                compared += 1
    assert compared == 2


@pytest.mark.parametrize("command", sorted(set(re.findall(r"(?:`|\$ |bin/)rulewright ([a-z]+)", README))))
def test_commands_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"rulewright {command}" in call(f"rulewright {command} --help", capsys)


def test_the_quoted_rule_is_ours() -> None:
    (quoted,) = blocks("text")
    vector = next(source.text for source in RuleSet.builtin().sources if source.module == "vector")
    lines = [line.strip() for line in vector.splitlines()]
    assert all(line.strip() in lines for line in quoted.splitlines())


def test_the_quoted_source_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    if not devices.probe("opencl").present:
        pytest.skip(f"device opencl is absent: {devices.probe('opencl').reason}")
    (quoted,) = blocks("c")
    assert quoted in call("rulewright show matmul --device opencl --schedule 'UPCAST(1, 4) LOCAL(1, 64)'", capsys)


def test_every_device_is_described() -> None:
    assert re.findall(r"^\| `(\w+)` \|", README[README.index("## Devices") :], re.MULTILINE) == list(devices.DEVICES)


def test_linked_files_exist() -> None:
    links = re.findall(r"\[[\w./-]+\]\(([\w./-]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_public_names_exist() -> None:
    assert all(getattr(rulewright, name) is not None for name in rulewright.__all__)
