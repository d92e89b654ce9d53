"""The benchmarks of kernels still run: their smallest size, on every device that is present."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from rulewright.runtimes import devices

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.skipif(not BENCHMARKS.exists(), reason="the benchmarks are in the checkout only")
@pytest.mark.skipif(not devices.probe("c").present, reason="the machine's limits are measured by a C program")
def test_kernels_are_timed_and_right() -> None:
    command = [sys.executable, str(BENCHMARKS / "kernels.py"), "--quick", "--no-peers", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout[done.stdout.rindex("medians of") :]
    for name in ("NumPy", "machine limit", "rulewright llvm"):
        (row,) = re.findall(rf"^\| {name} \|(.*)\|$", table, re.MULTILINE)
        assert len(re.findall(r"[\d.]+ ms", row)) == 6
