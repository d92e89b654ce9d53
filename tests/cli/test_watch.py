"""`rulewright watch`: what counts as a change, and what a user sees when a file is saved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import IO

import pytest
from rulewright.cli.watch import changes

RULE = "vars x\ngroup mine { rule one: x * 1 => x test i * 1 => i }\n"


def test_all_files_first_then_those_that_were_written(tmp_path: Path) -> None:
    first, second = tmp_path / "a.rules", tmp_path / "b.rules"
    first.write_text("1")

    def look() -> list[Path]:
        return sorted(tmp_path.glob("*.rules"))

    def edits() -> Iterator[None]:
        yield  # nothing happens
        second.write_text("2")
        yield
        first.write_text("longer")
        yield
        first.unlink()
        yield
        raise KeyboardInterrupt

    todo = edits()
    found: list[list[Path]] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(changes(look, lambda: next(todo)))
    assert found == [[first], [second], [first]]


def pump(output: IO[str], lines: Queue[str]) -> None:
    for line in output:
        lines.put(line.rstrip())


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[tuple[Path, Queue[str]]]:
    """A watched file, and the lines that the command prints."""
    path = tmp_path / "mine.rules"
    path.write_text(RULE)
    command = [sys.executable, "-u", "-m", "rulewright.cli", "watch", str(path)]
    lines: Queue[str] = Queue()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        reader = Thread(target=pump, args=(process.stdout, lines), daemon=True)
        reader.start()
        yield path, lines
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, "an interrupt ends the command without an error"
        reader.join()


@pytest.mark.skipif(os.name == "nt", reason="an interrupt cannot be sent to a child process there")
def test_a_saved_file_is_checked_again(watching: tuple[Path, Queue[str]]) -> None:
    path, lines = watching
    assert lines.get(timeout=60) == "ok: 1 file, 1 rule, 1 test and keep lines hold"
    assert lines.get(timeout=60).endswith("waiting")
    path.write_text(RULE.replace("=> i", "=> 7"))
    assert lines.get(timeout=60) == f"{path}:2:35: error[E062]: mine.one: before i * 1, expected 7, got i"
    assert "test i * 1 => 7" in lines.get(timeout=60)
    assert set(lines.get(timeout=60).strip()) == {"^"}
    assert lines.get(timeout=60).startswith("failed: ")
    assert lines.get(timeout=60).endswith("waiting")
    path.write_text(RULE + "rule")
    assert "error[E" in lines.get(timeout=60)
