"""The benchmark of code generation runs, and every kernel of it is what its name says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "codegen.py"


def test_it_runs() -> None:
    command = [sys.executable, str(SCRIPT), "--runs", "1", "--no-peer", "--device", "interpreter"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["matmul", "conv", "softmax", "sum", "layernorm"]
