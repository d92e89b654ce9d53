"""The examples run, on every device that is present, and find what NumPy finds.

Their data is scikit-learn's; without it they are skipped, unless RULEWRIGHT_REQUIRE_DEVICES says that this is CI.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from rulewright.runtimes import devices

EXAMPLES = Path(__file__).parents[2] / "examples"
REQUIRED = bool(os.environ.get("RULEWRIGHT_REQUIRE_DEVICES"))


def run(script: str, *arguments: str) -> str:
    """The output of an example."""
    for package in ("sklearn", "PIL"):
        if importlib.util.find_spec(package) is None:
            missing = f"{package} is not installed: pip install 'rulewright[examples]'"
            if REQUIRED:
                pytest.fail(missing)
            pytest.skip(missing)
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_digits() -> None:
    output = run("digits/digits.py")
    for device in devices.present():
        line = re.search(rf"^{device} +(\d+\.\d)%  the same predictions", output, re.MULTILINE)
        assert line is not None, output
        assert float(line[1]) > 95


def test_blur(tmp_path: Path) -> None:
    file = tmp_path / "blurred.png"
    output = run("blur/blur.py", "--output", str(file))
    for device in devices.present():
        assert re.search(rf"^{device} .* at most 0\.\d+ levels", output, re.MULTILINE), output
    from PIL import Image

    with Image.open(file) as picture:
        assert (picture.format, picture.size) == ("PNG", (640, 427))
        greys = picture.convert("L").tobytes()
        sharpness = sum(abs(a - b) for a, b in pairwise(greys)) / len(greys)
    assert 0.1 < sharpness < 3  # a blurred picture changes slowly, but is not empty
