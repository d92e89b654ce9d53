"""The child process of `rulewright corpus`: reads a kernel a line and answers with how it went, a line each."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from ..engine.errors import RulewrightError
from ..engine.rewriting import RuleSet
from ..kernels.json_form import read_kernel
from ..kernels.reference import default_variables, differences, iteration_points, make_buffers
from ..program import compile_kernel

LIMIT = 300_000
"""Kernels with more index tuples than this are compiled but not run: NumPy would take too long."""


def answer(
    text: str, device: str, schedule: str, math: str, *, check: bool, rules: RuleSet | None = None
) -> dict[str, Any]:
    """How the kernel in `text` fared: its id, the outcome, the seconds that compiling took, and what went wrong."""
    result: dict[str, Any] = {"id": "", "outcome": "failed", "seconds": 0.0, "error": ""}
    try:
        data = json.loads(text)
        result["id"] = str(data.get("id", "")) if isinstance(data, dict) else ""
        kernel = read_kernel(data)
        begin = time.perf_counter()
        program = compile_kernel(kernel, device, schedule, math, rules=rules)
        result["seconds"] = time.perf_counter() - begin
        variables = default_variables(kernel)
        if iteration_points(kernel, variables) > LIMIT:
            return result | {"outcome": "compiled"}
        before = make_buffers(kernel, variables)
        after = [buffer.copy() for buffer in before]
        program.run_in_place(after, variables)
        problem = next(differences(kernel, before, after, variables), "") if check else ""
        good = "matched" if check else "ran"
        return result | ({"outcome": "differs", "error": problem} if problem else {"outcome": good})
    except json.JSONDecodeError as problem:
        return result | {"error": f"KernelError: not JSON: {problem.msg} (column {problem.colno})"}
    except RulewrightError as problem:
        return result | {"error": f"{type(problem).__name__}: {problem}"}
    except Exception as problem:  # noqa: BLE001 - reported as the defect that it is
        return result | {"outcome": "crashed", "error": f"{type(problem).__name__}: {problem}"}


def main() -> None:
    """Answers until the input ends. What drivers print goes to standard error, where it disturbs no answer."""
    device, schedule, math, check, *files = sys.argv[1:]
    rules = RuleSet.load(*files) if files else None
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            result = answer(line, device, schedule, math, check=check == "check", rules=rules)
            print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
