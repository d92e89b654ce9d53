"""The child process of a schedule search: builds the schedule that a line asks for, then times it.

It reads a JSON object with `kernel`, `device`, `math` and `schedule`, and answers `built`; on `time`, it answers with
the seconds of the fastest run on made-up inputs and outputs of its own. `failed` and the reason stand for an answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from .engine.errors import RulewrightError
from .kernels.json_form import read_kernel
from .kernels.reference import default_variables, make_buffers
from .program import Launch, compile_kernel

ROUNDS, ENOUGH = 7, 1.0
"""How often a candidate runs, if that does not take more seconds than this."""


def prepared(line: str) -> Callable[[], None]:
    """The built kernel as a function that runs it once."""
    asked = json.loads(line)
    kernel = read_kernel(asked["kernel"])
    program = compile_kernel(kernel, asked["device"], asked["schedule"] or "none", asked["math"])
    variables = default_variables(kernel)
    return Launch(program, program.executable.bind(make_buffers(kernel, variables), variables), variables)


def fastest(run: Callable[[], None]) -> float:
    """The seconds of the fastest of several runs."""
    run()
    times: list[float] = []
    while not times or (len(times) < ROUNDS and sum(times) < ENOUGH):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    """Answers until the input ends. What drivers print goes to standard error, where it disturbs no answer."""
    run: Callable[[], None] | None = None
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            try:
                if line.strip() == "time" and run is not None:
                    said = repr(fastest(run))
                else:
                    run = prepared(line)
                    said = "built"
            except RulewrightError as problem:
                said = f"failed {type(problem).__name__}: {problem}".replace("\n", " ")
            print(said, file=answers, flush=True)


if __name__ == "__main__":
    main()
