"""Decisions read off a string of bytes, so that hypothesis can search for an instance and shrink it.

A generator asks "which of these?" again and again; byte 0 always means the first, simplest answer. Hypothesis makes the
bytes, and makes a failing string smaller: what is left is the simplest instance that still fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

LENGTH = 72
"""Bytes of one example; when they are used up every further answer is the first."""

T = TypeVar("T")


def decisions() -> st.SearchStrategy[bytes]:
    """The strategy that the generators of this package read their decisions from."""
    return st.binary(min_size=LENGTH, max_size=LENGTH)


class Choices:
    """Answers questions from a string of bytes, in order."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def below(self, count: int) -> int:
        """A number from 0 up to, not including, `count`."""
        if count <= 1:
            return 0
        answer = self._byte()
        if count > 256:
            answer = answer << 8 | self._byte()
        return answer % count

    def _byte(self) -> int:
        if self.place >= len(self.data):
            return 0
        self.place += 1
        return self.data[self.place - 1]

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first should be the simplest."""
        return options[self.below(len(options))]

    def rarely(self, odds: int) -> bool:
        """True once in `odds` times."""
        return self.below(odds) == odds - 1

    def rotated(self, options: Sequence[T]) -> list[T]:
        """The options in order, but beginning anywhere."""
        start = self.below(len(options))
        return [*options[start:], *options[:start]]

    def random(self) -> Random:
        """A generator of numbers that depends on the next decisions only: for values that need no shrinking."""
        return Random(self._byte() << 8 | self._byte())
