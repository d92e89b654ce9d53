"""Schedules: which options are applied to a kernel's axes, and what each axis becomes.

An option is a substitution of a range, `UPCAST(axis, 4)`: r -> outer*4 + lane. It is applied before lowering, as data:
a `Plan` says for each axis into which parts it is split; lowering writes the axis's index from them. The options are
recorded in order, so a schedule replays to the same kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from ..engine.errors import KernelError
from ..engine.target import Target
from .kernel import Kernel, Reduce
from .sizes import Dim

MAX_UPCAST, MAX_UNROLL, MAX_GROUP = 64, 32, 1024


class OptionKind(str, Enum):
    """What an option does to the inner part of an axis."""

    UPCAST = "UPCAST"  # lanes of vectors
    UNROLL = "UNROLL"  # lanes of a reduction, combined in the loop
    LOCAL = "LOCAL"  # threads of a group
    THREAD = "THREAD"  # the outer part: shared out over a CPU's threads


@dataclass(frozen=True, slots=True)
class Option:
    """`UPCAST(1, 4)`: the axis's number in the kernel, and how many steps; 0 means the whole axis."""

    kind: OptionKind
    axis: int
    amount: int

    def __str__(self) -> str:
        return f"{self.kind.value}({self.axis}, {self.amount})"


Schedule = tuple[Option, ...]


def parse_schedule(text: str) -> Schedule:
    """`"UPCAST(1, 4) LOCAL(0, 16)"` as options. Raises KernelError for anything else."""
    options = []
    rest = text.strip()
    while rest:
        match = re.match(r"([A-Za-z]+)\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)[\s,;]*", rest)
        if match is None or match[1].upper() not in OptionKind.__members__:
            names = ", ".join(OptionKind.__members__)
            raise KernelError(
                f"not a schedule option: {rest[:40]!r}; write NAME(axis, amount) with NAME one of {names}"
            )
        options.append(Option(OptionKind[match[1].upper()], int(match[2]), int(match[3])))
        rest = rest[match.end() :]
    return tuple(options)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis and its parts: the value is ((thread*outer + group part)*local + …)*upcast + lane.

    `size` is what is left for the outermost loop or the groups; the other numbers are 1 where there is no such part.
    """

    size: Dim
    reduce: bool  # only reduced
    mixed: bool = False  # reduced in one place and stored in another: always a loop
    thread: int = 1
    local: int = 1
    unroll: int = 1
    upcast: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """The axes after all options, and the order in which upcasts were asked for (earlier ones vary fastest)."""

    axes: tuple[Axis, ...]
    upcast_order: tuple[int, ...] = ()


def reduced_and_mixed(kernel: Kernel) -> tuple[frozenset[int], frozenset[int]]:
    """The axes that only reductions run over, and those that stores run over too: their lanes would mean two things."""
    reduced = frozenset(axis for node in kernel.nodes if isinstance(node, Reduce) for axis in node.axes)
    stored = {axis for store in kernel.stores for axis, size in enumerate(store.views[-1].shape) if size != 1}
    return reduced - stored, reduced & stored


def plan(kernel: Kernel, schedule: Iterable[Option], target: Target) -> Plan:
    """Applies the options in order. Raises KernelError for the first that is not legal, with the reason."""
    reduced, mixed = reduced_and_mixed(kernel)
    result = Plan(tuple(Axis(size, n in reduced, n in mixed) for n, size in enumerate(kernel.axis_sizes)))
    for option in schedule:
        result = _apply(result, option, target)
    return result


def _apply(before: Plan, option: Option, target: Target) -> Plan:
    if not 0 <= option.axis < len(before.axes):
        raise KernelError(f"{option}: there is no axis {option.axis}; the kernel has {len(before.axes)}")
    axis = before.axes[option.axis]
    if not isinstance(axis.size, int):
        raise KernelError(f"{option}: axis {option.axis} has the symbolic size {axis.size}; it can only be a loop")
    amount = option.amount or axis.size
    if amount < 1 or axis.size % amount:
        raise KernelError(f"{option}: {amount} does not divide the {axis.size} steps of axis {option.axis}")
    rest = replace(axis, size=axis.size // amount)
    order = before.upcast_order
    match option.kind:
        case OptionKind.UPCAST:
            _refuse(option, axis.reduce, "is reduced; UNROLL it")
            _refuse(option, axis.mixed, "is reduced in one place and stored in another")
            _refuse(option, amount * axis.upcast > MAX_UPCAST, f"would have more than {MAX_UPCAST} lanes")
            changed = replace(rest, upcast=axis.upcast * amount)
            order = order if option.axis in order else (*order, option.axis)
        case OptionKind.UNROLL:
            _refuse(option, not axis.reduce, "is not reduced; UPCAST it")
            _refuse(option, amount * axis.unroll > MAX_UNROLL, f"would have more than {MAX_UNROLL} steps unrolled")
            changed = replace(rest, unroll=axis.unroll * amount)
        case OptionKind.LOCAL:
            _refuse(option, not target.has("threads"), f"cannot have group threads on {target.name}")
            _refuse(option, axis.reduce or axis.mixed, "is reduced")
            group = amount
            for other in before.axes:
                group *= other.local
            _refuse(option, group > MAX_GROUP, f"would make a group of {group} threads; the most is {MAX_GROUP}")
            changed = replace(rest, local=axis.local * amount)
        case OptionKind.THREAD:
            _refuse(option, target.has("threads"), f"cannot be shared out over CPU threads on {target.name}")
            _refuse(option, axis.reduce, "is reduced")
            _refuse(
                option,
                any(other.thread > 1 for other in before.axes),
                "is not the first; one axis is shared out already",
            )
            changed = replace(rest, thread=amount)
    axes = tuple(changed if number == option.axis else other for number, other in enumerate(before.axes))
    return Plan(axes, order)


def _refuse(option: Option, wrong: bool, reason: str) -> None:
    if wrong:
        raise KernelError(f"{option}: axis {option.axis} {reason}")
