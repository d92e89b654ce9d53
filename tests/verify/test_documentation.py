"""The Python on the page about verification runs, and its tests pass."""

from __future__ import annotations

import re
from pathlib import Path
from types import FunctionType

PAGE = Path(__file__).parents[2] / "docs" / "properties.md"


def test_the_examples_on_the_page_run() -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(text, names)  # noqa: S102 - our own page
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        assert isinstance(test, FunctionType)
        test()
