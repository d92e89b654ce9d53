"""Thread numbers are each run once, failures come back, and nested or forked use works."""

from __future__ import annotations

import os
import threading
import time

import pytest
from rulewright.runtimes.threads import cores, run_threads


@pytest.mark.parametrize("threads", [0, 1, 2, 3, 7, 64])
def test_every_number_runs_exactly_once(threads: int) -> None:
    seen: list[int] = []
    run_threads(seen.append, threads)
    assert sorted(seen) == list(range(threads))


def test_one_thread_is_called_directly() -> None:
    names: list[str] = []
    run_threads(lambda number: names.append(threading.current_thread().name), 1)
    assert names == [threading.current_thread().name]


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_calls_overlap() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def call(number: int) -> None:
        meeting.wait()  # times out unless both run at once

    run_threads(call, 2)


@pytest.mark.parametrize("failing", [0, 1, 5])
def test_a_failure_is_raised_and_no_call_is_left_running(failing: int) -> None:
    running: list[int] = []

    def call(number: int) -> None:
        if number == failing:
            raise ValueError(f"thread {number}")
        running.append(1)
        time.sleep(0.002)
        running.pop()

    with pytest.raises(ValueError, match=f"thread {failing}"):
        run_threads(call, 8)
    assert not running


def test_after_a_failure_no_further_number_begins() -> None:
    begun: list[int] = []

    def call(number: int) -> None:
        begun.append(number)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run_threads(call, 1000)
    assert len(begun) <= cores()


def test_a_nested_call_does_not_deadlock() -> None:
    seen: list[tuple[int, int]] = []
    run_threads(lambda outer: run_threads(lambda inner: seen.append((outer, inner)), 8), 8)
    assert sorted(seen) == [(outer, inner) for outer in range(8) for inner in range(8)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    run_threads(lambda number: None, 4)
    child = os.fork()
    if child == 0:
        seen: list[int] = []
        run_threads(seen.append, 4)
        os._exit(0 if sorted(seen) == [0, 1, 2, 3] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
