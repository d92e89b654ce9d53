"""The search over schedules, with times that a formula makes up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
import rulewright as rw
from rulewright.engine.target import Target
from rulewright.kernels.plan import plan
from rulewright.kernels.schedule import Option, OptionKind, Schedule, parse_schedule
from rulewright.kernels.search import Candidate, changes, search

CPU = Target("cpu", frozenset({"unaligned"}), (16, 8, 4, 2), lanes=8)
GPU = Target("gpu", frozenset({"threads", "local-memory"}), (4, 2))
MATMUL = rw.kernel((rw.tensor("a", (64, 64))[:, :, None] * rw.tensor("b", (64, 64))[None]).sum(1))


@pytest.mark.parametrize("target", [CPU, GPU])
@pytest.mark.parametrize("text", ["", "UPCAST(1, 16)", "PARTIAL(2, 8) UPCAST(0, 4)"])
def test_every_change_is_legal_and_a_change(target: Target, text: str) -> None:
    schedule = parse_schedule(text)
    made = list(changes(MATMUL, schedule, target, 2))
    assert len(made) > 10
    for changed in made:
        plan(MATMUL, changed, target)
        assert changed != schedule
        assert abs(len(changed) - len(schedule)) <= 1


def test_processors_are_not_offered_groups_of_threads() -> None:
    pocl = Target("cl", frozenset({"threads", "local-memory", "cpu"}), (16, 8, 4, 2))
    kinds = {option.kind for changed in changes(MATMUL, (), pocl, 2) for option in changed}
    assert OptionKind.UPCAST in kinds and not kinds & {OptionKind.LOCAL, OptionKind.GROUP}
    assert OptionKind.LOCAL in {option.kind for changed in changes(MATMUL, (), GPU, 1) for option in changed}


def _made_up(schedule: Schedule) -> float:
    """Fast with 16 lanes along axis 1 and four rows."""
    seconds = 10.0
    for option in schedule:
        match option:
            case Option(OptionKind.UPCAST, 1, 16):
                seconds /= 8
            case Option(OptionKind.UPCAST, 1, amount):
                seconds /= amount**0.5
            case Option(OptionKind.UPCAST, 0, 4):
                seconds /= 2
    return seconds


def test_the_search_follows_what_is_fast_and_ends() -> None:
    measured: list[Schedule] = []

    def measure(schedules: Sequence[Schedule]) -> Iterable[Candidate]:
        for schedule in schedules:
            measured.append(schedule)
            crashed = any(option.kind is OptionKind.UNROLL for option in schedule)
            yield Candidate(schedule, None if crashed else _made_up(schedule))

    found = [one for one in search(MATMUL, [()], CPU, 2, measure) if one.seconds is not None]
    best = min(found, key=lambda one: one.seconds or 0)
    assert best.seconds == 10 / 16
    assert len(measured) == len(set(measured))


def test_the_search_ends_where_nothing_runs() -> None:
    assert [one.seconds for one in search(MATMUL, [()], CPU, 2, lambda all_: [Candidate(s, None) for s in all_])] == [
        None
    ]
