"""What a rule may know about where the code goes: the target's features and the kernel's float flags.

A `Target` is data. Renderers declare theirs; the rules ask with `target.has(name)`; nothing else differs by device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .uop import UOp

FLOAT_FLAGS = frozenset({"nnan", "ninf", "nsz", "reassoc", "contract", "arcp", "afn"})
"""What a kernel may grant: no NaNs, no infinities, signed zero irrelevant, reassociation, contraction, reciprocals, approximate functions."""

LARGEST_IMAGE = 8192
"""Texels in a row or a column of a 2-D image that every device with images has; larger ones are flat buffers."""

MATH_MODES: dict[str, frozenset[str]] = {"strict": frozenset(), "fast": FLOAT_FLAGS}


@dataclass(frozen=True)
class Target:
    """The features of a device's language that lowering rules ask for.

    `features` are names such as `max`, `threads`, `local-memory`, `half` (arithmetic), `bool-vector`, `mulacc`.
    `widths` are the vector widths that loads, stores and arithmetic may have, widest first; empty: scalars only.
    `cpu`: its threads, if it has any, are a processor's cores; `unaligned`: a vector may begin at any element;
    `exp2`: its own function is fast on vectors.
    Of a group, where there are any: the most threads, and the bytes of memory that they share. Of the processor: the
    float32 lanes of a vector register, and how many such registers there are; what schedules are made for.
    """

    name: str
    features: frozenset[str] = frozenset()
    widths: tuple[int, ...] = ()
    group_threads: int = 1024
    local_memory: int = 32768
    lanes: int = 4
    registers: int = 16

    def has(self, feature: str) -> bool:
        return feature in self.features

    def half(self, lanes: int) -> int:
        """About half of so many lanes: a multiple of the widest vector that is narrower than all of them."""
        half = (lanes + 1) // 2
        for width in self.widths:
            if width < lanes:
                return -(-half // width) * width
        return lanes // 2


ANY_TARGET = Target("any")
"""The target of rewriting that is not for a device: it has no special feature."""


@dataclass(frozen=True)
class Context:
    """What rules see beside the matched nodes.

    `simplify` brings an expression to its normal form: for rules that simplify something under a condition. None where
    such rules must not fire: inside of that.
    """

    target: Target = ANY_TARGET
    flags: frozenset[str] = field(default_factory=frozenset)
    simplify: Callable[[UOp], UOp] | None = field(default=None, compare=False, repr=False)
