"""A kernel in linear form: what renderers print and the interpreter executes."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import DType
from .ops import VarArg
from .uop import UOp


@dataclass(frozen=True, slots=True)
class BufferParam:
    """One buffer argument, in the order of `slot`; `size` in elements (None: symbolic); an image's height and width."""

    slot: int
    dtype: DType
    size: int | None
    written: bool
    image: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class LinearKernel:
    """The nodes in execution order, with `endrange`, `if` and `endif` marking scopes, and the signature.

    The arguments of the rendered function are the buffers by slot, then the variables (int32) by name, then, where
    `threads` is above 1, the thread's number (int32). `groups` are the sizes of the group dimensions (constants or
    expressions over variables), `locals` those of the local ones; both have at most three entries.
    """

    name: str
    uops: tuple[UOp, ...]
    buffers: tuple[BufferParam, ...]
    variables: tuple[VarArg, ...]
    groups: tuple[UOp, ...]
    locals: tuple[int, ...]
    threads: int
