"""Schedules: what can be asked for a kernel's axes, as text and as data.

An option is a substitution of a range, `UPCAST(axis, 4)`: r -> outer*4 + lane. The options are recorded in order, so a
schedule replays to the same kernel; what they make of the axes is told by `kernels.plan`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from ..engine.errors import KernelError
from .kernel import Kernel, Reduce


class OptionKind(str, Enum):
    """What an option does to an axis; in all that split it, `amount` is the number of steps, 0 the whole axis."""

    UPCAST = "UPCAST"  # the inner part of a stored axis: lanes of vectors
    UNROLL = "UNROLL"  # the inner part of a reduced axis: lanes that are combined in the loop
    PARTIAL = "PARTIAL"  # the same with lanes that accumulate apart and are combined after the loop
    LOCAL = "LOCAL"  # the inner part of a stored axis: threads of a group
    GROUP = "GROUP"  # the inner part of a reduced axis: threads of a group, each with a share of the reduction
    GROUPTOP = "GROUPTOP"  # the same with the outer part
    SHARE = (
        "SHARE"  # the outer part of a reduced axis: shared out over a CPU's threads or over groups, combined at the end
    )
    THREAD = "THREAD"  # the outer part of a stored axis: shared out over a CPU's threads
    PADTO = "PADTO"  # the axis grows to a multiple of the amount
    SWAP = "SWAP"  # the axis changes places with axis `amount`
    NOLOCALS = "NOLOCALS"  # no threads of a group: the device's runtime chooses the groups


@dataclass(frozen=True, slots=True)
class Option:
    """`UPCAST(1, 4)`: the axis's number in the kernel, and how many steps. NOLOCALS has neither."""

    kind: OptionKind
    axis: int = 0
    amount: int = 0

    def __str__(self) -> str:
        return self.kind.value if self.kind is OptionKind.NOLOCALS else f"{self.kind.value}({self.axis}, {self.amount})"


Schedule = tuple[Option, ...]


def parse_schedule(text: str) -> Schedule:
    """`"UPCAST(1, 4) LOCAL(0, 16)"` as options; the inverse of `schedule_text`. Raises KernelError for anything else."""
    options = []
    rest = text.strip()
    while rest:
        match = _OPTION.match(rest)
        kind = OptionKind.__members__.get(match[1].upper()) if match is not None else None
        if match is None or kind is None or (match[2] is None) is not (kind is OptionKind.NOLOCALS):
            names = ", ".join(name for name in OptionKind.__members__ if name != OptionKind.NOLOCALS.value)
            raise KernelError(
                f"not a schedule option: {rest[:40]!r}; write NAME(axis, amount) with NAME one of {names}, or NOLOCALS"
            )
        options.append(Option(kind) if match[2] is None else Option(kind, int(match[2]), int(match[3])))
        rest = rest[match.end() :]
    return tuple(options)


_OPTION = re.compile(r"([A-Za-z]+)(?:\s*\(\s*(\d+)\s*,\s*(\d+)\s*\))?(?:[\s,;]+|$)")


def schedule_text(schedule: Schedule) -> str:
    """The text that `parse_schedule` reads back."""
    return " ".join(map(str, schedule))


def reduced_and_mixed(kernel: Kernel) -> tuple[frozenset[int], frozenset[int]]:
    """The axes that only reductions run over, and those that stores run over too."""
    reduced = frozenset(axis for node in kernel.nodes if isinstance(node, Reduce) for axis in node.axes)
    stored = {axis for store in kernel.stores for axis, size in enumerate(store.views[-1].shape) if size != 1}
    return reduced - stored, reduced & stored
