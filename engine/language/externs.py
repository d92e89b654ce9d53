"""Python functions that rules may call: pure, total on what they accept, each with a stated meaning.

A rule file declares them with `extern fn name(c)` or `extern pred name(x) means …`; the declaration is checked against
this table. Constants arrive as numbers, other names as nodes (a `...xs` as a tuple of them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

EXTERNS: dict[str, Callable[..., object]] = {}
"""The implementations by the name that rules use."""

_Function = TypeVar("_Function", bound=Callable[..., object])


def extern(function: _Function) -> _Function:
    """Registers a function under its own name. A decorator."""
    if function.__name__ in EXTERNS and EXTERNS[function.__name__] is not function:
        raise ValueError(f"the extern function {function.__name__} is already registered")
    EXTERNS[function.__name__] = function
    return function
