"""Child processes that answer, die, hang and complain."""

from __future__ import annotations

import sys
import time

from rulewright.workers import Answer, answers

CHILD = """
import os, signal, sys, time
for line in sys.stdin:
    word = line.strip()
    if word == "exit":
        print("first line", file=sys.stderr)
        print("out of luck", file=sys.stderr)
        sys.exit(7)
    if word == "die":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "hang":
        time.sleep(600)
    print(word.upper(), flush=True)
"""


def ask(*questions: str, jobs: int = 2, limit: float = 60.0) -> list[Answer]:
    found = answers([sys.executable, "-c", CHILD], questions, jobs, limit)
    return sorted(found, key=lambda answer: answer.position)


def test_every_question_has_its_answer() -> None:
    words = [f"word{number}" for number in range(20)]
    assert ask(*words, jobs=3) == [Answer(position, word.upper()) for position, word in enumerate(words)]


def test_no_question() -> None:
    assert ask() == []


def test_a_death_costs_one_answer() -> None:
    found = ask("a", "die", "b", "exit", "c", jobs=1)
    assert [answer.said for answer in found] == ["A", "", "B", "", "C"]
    assert found[1].failure == "the process was ended by SIGSEGV"
    assert found[3].failure == "the process ended with status 7: out of luck"
    assert not any(answer.timed_out for answer in found)


def test_an_endless_run_is_ended() -> None:
    begin = time.monotonic()
    found = ask("a", "hang", "b", jobs=1, limit=2.0)
    assert time.monotonic() - begin < 30
    assert [answer.said for answer in found] == ["A", "", "B"]
    assert found[1].failure == "no answer within 2 s"
    assert found[1].timed_out


def test_stopping_early_ends_the_children() -> None:
    begin = time.monotonic()
    found = answers([sys.executable, "-c", CHILD], ["a", "hang", "hang"], 2, 600.0)
    assert next(found).said == "A"
    found.close()
    assert time.monotonic() - begin < 30
