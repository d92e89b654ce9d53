"""`rulewright fuzz`: random kernels with random schedules, on devices, against NumPy; a failure shrinks to a small one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from rich.text import Text

from ..engine.validate import check_linear
from ..kernels.json_form import write_kernel
from ..kernels.kernel import Kernel
from ..kernels.reference import default_variables, differences, make_buffers
from ..kernels.schedule import Schedule, schedule_text
from ..program import compile_kernel
from ..runtimes import devices
from .console import InputError, console


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, compiled for a device with a schedule."""

    kernel: Kernel
    device: str
    schedule: Schedule

    def problems(self) -> list[str]:
        """What is wrong: a difference from NumPy, or an error, for whatever these kernels are must compile and run."""
        values = default_variables(self.kernel)
        before = make_buffers(self.kernel, values)
        for argument in self.kernel.outputs:
            before[argument.slot][...] = 0
        after = [buffer.copy() for buffer in before]
        try:
            program = compile_kernel(self.kernel, self.device, self.schedule)
            check_linear(program.linear)
            program.run_in_place(after, values)
        except Exception as problem:  # noqa: BLE001 # a traceback is as wrong as a wrong number
            return [f"{type(problem).__name__}: {problem}"]
        return list(differences(self.kernel, before, after, values))

    def command(self, path: str) -> str:
        """What reproduces the case, its kernel in a file."""
        schedule = schedule_text(self.schedule) or "none"
        return f"rulewright run {quote(path)} --device {self.device} --schedule {quote(schedule)} --check"


def search(names: Sequence[str], examples: int, seed: int | None, check: Callable[[Case], None]) -> None:
    """Calls `check` with random cases on the devices; one that fails it is made smaller, and fails it last."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    from ..verify.fuzz_kernels import kernels, schedules

    phases = (Phase.generate, Phase.shrink)

    @settings(
        max_examples=examples, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck)
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        kernel = data.draw(kernels())
        device = data.draw(st.sampled_from(names))
        schedule = data.draw(schedules(kernel, devices.get(device).renderer.target))
        check(Case(kernel, device, schedule))

    (seeded(seed)(run) if seed is not None else run)()


class _Failed(Exception):
    """A case has problems."""


def fuzz_command(names: Sequence[str], examples: int, seed: int | None, path: Path) -> int:
    """1 if a case fails: it is shown, and its kernel is in the file."""
    try:
        import hypothesis as _  # noqa: F401 # to say what is missing before anything is done
    except ImportError:
        raise InputError("fuzzing needs Hypothesis: pip install 'rulewright[verify]'") from None
    chosen = list(names) or [name for name in devices.DEVICES if devices.probe(name).present]
    for name in chosen:
        if name not in devices.DEVICES:
            raise InputError(devices.probe(name).reason)
        devices.get(name)
    last: list[Case] = []

    def check(case: Case) -> None:
        if case.problems():
            last[:] = [case]
            raise _Failed

    out = console()
    try:
        search(chosen, examples, seed, check)
    except _Failed:
        (case,) = last
        path.write_text(json.dumps(write_kernel(case.kernel)) + "\n", encoding="utf-8")
        for problem in case.problems():
            out.print(Text.assemble(("wrong: ", "bold red"), problem), soft_wrap=True)
        out.print(Text(f"reproduce it with: {case.command(str(path))}"), soft_wrap=True)
        return 1
    out.print(Text.assemble(("ok", "bold green"), f": {examples} random kernels on {', '.join(chosen)}"))
    return 0
