"""`rulewright tune`: measures schedules of a kernel, shows the best so far, and keeps it for `--schedule search`."""

from __future__ import annotations

from rich.text import Text

from ..kernels.schedule import schedule_text
from ..tuning import Progressed, tune
from .choices import check_choices
from .console import console, duration
from .kernel_files import find_kernel


def tune_command(name: str, device: str, math: str, seconds: float) -> int:
    """Prints each improvement, then what was gained over the default schedule."""
    check_choices(device, "default")
    kernel = find_kernel(name)
    out = console()
    best: list[float] = []

    def show(at: Progressed) -> None:
        if at.failure:
            out.print(
                Text.assemble((f"{at.tried:4} failed  ", "red"), f"{_named(at.candidate.schedule)}: {at.failure}")
            )
        elif at.candidate is at.best and at.best.seconds is not None:
            best.append(at.best.seconds)
            out.print(Text(f"{at.tried:4} {duration(at.best.seconds):>9}  {_named(at.best.schedule)}"), soft_wrap=True)

    found = tune(kernel, device, math, seconds, show)
    out.print(
        f"{kernel.name} on {device}: {found.tried} schedules tried, {found.failed} failed; default "
        f"{duration(found.default)}, best {duration(found.seconds)}: {found.gain:.2f} times as fast"
    )
    out.print(Text(f"kept for --schedule search: {_named(found.schedule)}"), soft_wrap=True)
    return 0


def _named(schedule: object) -> str:
    return (schedule_text(schedule) if isinstance(schedule, tuple) else "") or "none"
