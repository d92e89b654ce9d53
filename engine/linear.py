"""A kernel in linear form: what renderers print and the interpreter executes."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import DType
from .ops import VarArg
from .uop import UOp


@dataclass(frozen=True, slots=True)
class BufferParam:
    """One buffer argument, in the order of `slot`; `size` in elements (None: symbolic); an image's height and width.

    A `scratch` buffer is the runtime's: it begins with any contents, and nobody looks at it afterwards.
    """

    slot: int
    dtype: DType
    size: int | None
    written: bool
    image: tuple[int, int] | None = None
    scratch: bool = False


@dataclass(frozen=True, slots=True)
class LinearKernel:
    """The nodes in execution order, with `endrange`, `if` and `endif` marking scopes, and the signature.

    The arguments of the rendered function are the buffers by slot, then the variables (int32) by name, then, where
    `threads` is above 1, the thread's number (int32). `groups` are the sizes of the group dimensions (constants or
    expressions over variables), `locals` those of the local ones; both have at most three entries.

    `then` is what runs when all threads have done this, with the same arguments and threads of its own.
    """

    name: str
    uops: tuple[UOp, ...]
    buffers: tuple[BufferParam, ...]
    variables: tuple[VarArg, ...]
    groups: tuple[UOp, ...]
    locals: tuple[int, ...]
    threads: int
    then: LinearKernel | None = None

    @property
    def parts(self) -> tuple[LinearKernel, ...]:
        """This and all that follow, in the order in which they run."""
        found = [self]
        while found[-1].then is not None:
            found.append(found[-1].then)
        return tuple(found)
