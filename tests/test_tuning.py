"""Searching by measuring: in real child processes, with what is remembered on disk."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import rulewright as rw
from rulewright import tuning
from rulewright.kernels.schedule import parse_schedule
from rulewright.tuning import Progressed, Tuned, remembered, tune

KERNEL = rw.kernel(rw.tensor("x", (32, 64)).sum(1))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RULEWRIGHT_CACHE", str(tmp_path))
    return tmp_path / "tuned"


def test_a_search_is_shown_and_remembered(cache: Path) -> None:
    shown: list[Progressed] = []
    found = tune(KERNEL, "llvm", seconds=3, progress=shown.append)
    assert found.tried == len(shown) >= 1
    assert found.seconds <= found.default and found.gain >= 1
    assert remembered(KERNEL, "llvm", "strict") == found
    assert remembered(KERNEL, "llvm", "fast") is None
    assert remembered(KERNEL, "interpreter", "strict") is None
    program = rw.compile(KERNEL, "llvm", "search")
    assert program.schedule == found.schedule
    x = np.ones((32, 64), np.float32)
    assert np.array_equal(program(x), x.sum(1))
    (file,) = cache.iterdir()
    file.write_text("{")
    assert remembered(KERNEL, "llvm", "strict") is None


def test_what_fails_is_counted_and_the_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child dies of one schedule, refuses another, hangs in a third; the fourth is timed."""
    worker = Path(__file__).with_name("tuning_worker_that_fails.py")
    monkeypatch.setattr(tuning, "COMMAND", (sys.executable, str(worker)))
    monkeypatch.setattr(tuning, "LIMIT", 2.0)
    texts = ["UPCAST(0, 2)", "UPCAST(0, 4)", "UPCAST(0, 8)", "UPCAST(0, 16)"]
    with tuning._Measuring(KERNEL, "llvm", "strict", lambda: False) as measuring:
        found = {candidate.schedule: candidate.seconds for candidate in measuring(list(map(parse_schedule, texts)))}
        assert found == dict(zip(map(parse_schedule, texts), [None, None, None, 0.25], strict=True))
        reasons = [measuring.failures[parse_schedule(text)] for text in texts[:3]]
    assert "status 3" in reasons[0]
    assert reasons[1] == "KernelError: refused"
    assert reasons[2] == "no answer within 2 s"


def test_the_gain_is_a_ratio() -> None:
    assert Tuned((), 0.5, 2.0, 3, 1).gain == 4
