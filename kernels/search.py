"""Beam search over schedules: which change of a schedule is worth a measurement, and which of the measured to follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..engine.target import Target
from .kernel import Kernel
from .plan import is_legal
from .schedule import Option, OptionKind, Schedule

WIDTH = 4
"""How many schedules a round changes: the fastest so far."""

GAIN = 0.98
"""The share of the best time below which a round counts as progress."""

_AMOUNTS: dict[OptionKind, tuple[int, ...]] = {
    OptionKind.UPCAST: (2, 4, 8, 16),
    OptionKind.PARTIAL: (4, 8, 16, 32, 64),
    OptionKind.UNROLL: (2, 4, 8),
    OptionKind.LOCAL: (2, 4, 8, 16, 32, 64),
    OptionKind.GROUP: (8, 16, 64, 256),
    OptionKind.GROUPTOP: (8, 16, 64, 256),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schedule, and the seconds that the kernel took with it; None if it did not run."""

    schedule: Schedule
    seconds: float | None


Measure = Callable[[Sequence[Schedule]], Iterable[Candidate]]


def search(
    kernel: Kernel, starts: Sequence[Schedule], target: Target, threads: int, measure: Measure
) -> Iterator[Candidate]:
    """Every candidate as it is measured. It ends when no change of the fastest few makes them faster.

    The caller may stop earlier. `measure` says how long schedules take, in any order; it may leave some out.
    """
    seen = set(starts)
    round_ = list(starts)
    known: list[tuple[float, int, Schedule]] = []
    best = float("inf")
    while round_:
        for candidate in measure(round_):
            if candidate.seconds is not None:
                known.append((candidate.seconds, len(known), candidate.schedule))
            yield candidate
        known.sort()
        if not known or known[0][0] > best * GAIN:
            return
        best = known[0][0]
        round_ = []
        for _, _, schedule in known[:WIDTH]:
            for changed in changes(kernel, schedule, target, threads):
                if changed not in seen:
                    seen.add(changed)
                    round_.append(changed)


def changes(kernel: Kernel, schedule: Schedule, target: Target, threads: int) -> Iterator[Schedule]:
    """The legal schedules that differ in one option: doubled, halved, left out, or added."""
    for made in _changes(kernel, schedule, target, threads):
        if is_legal(kernel, made, target):
            yield made


def _changes(kernel: Kernel, schedule: Schedule, target: Target, threads: int) -> Iterator[Schedule]:
    for number, option in enumerate(schedule):
        before, after = schedule[:number], schedule[number + 1 :]
        if option.kind in _AMOUNTS:
            yield (*before, replace(option, amount=option.amount * 2), *after)
            if option.amount % 2 == 0 and option.amount > 2:
                yield (*before, replace(option, amount=option.amount // 2), *after)
        yield before + after
    last = [option for option in schedule if option.kind is OptionKind.NOLOCALS]
    rest = tuple(option for option in schedule if option.kind is not OptionKind.NOLOCALS)
    for option in _options(kernel, target, threads):
        if not any(other.kind is option.kind and other.axis == option.axis for other in rest):
            yield (*rest, option, *last)


def _options(kernel: Kernel, target: Target, threads: int) -> Iterator[Option]:
    axes = [axis for axis, size in enumerate(kernel.axis_sizes) if isinstance(size, int) and size > 1]
    for axis in axes:
        for kind, amounts in _AMOUNTS.items():
            if target.has("cpu") and kind in (OptionKind.LOCAL, OptionKind.GROUP, OptionKind.GROUPTOP):
                continue
            for amount in amounts:
                yield Option(kind, axis, amount)
        if threads > 1:
            yield Option(OptionKind.THREAD, axis, threads)
            yield Option(OptionKind.SHARE, axis, threads)
        for other in axes:
            if other > axis:
                yield Option(OptionKind.SWAP, axis, other)
