"""The memory of the interpreter: every access checked, for its bounds, for races and for missing barriers.

Threads run in lock step, so an order that a device does not promise would go unnoticed. Therefore local memory keeps
who stored and who read each element since the last barrier: a thread that reads what another stored, or stores what
another read or stored, is an error, and so are two that store different values to one element at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..engine.arrays import Array, from_storage, held_dtype, numpy_dtype, to_storage
from ..engine.dtypes import DType
from ..engine.errors import DeviceError
from ..engine.ops import BufferArg
from ..engine.printing import expression
from ..engine.uop import UOp, memory_of

Values = npt.NDArray[Any]
"""One row a thread, or one for all; one column a lane."""

NEVER, VISIBLE, SEVERAL = -2, -1, -3
"""Instead of a thread's number: nobody; a barrier has passed since the store; more than one thread."""


@dataclass(slots=True)
class _Local:
    """One local array: for each group its elements, and who stored and who read each since the last barrier."""

    data: Array
    writer: npt.NDArray[np.int64]
    reader: npt.NDArray[np.int64]

    def note_readers(self, at: tuple[Values, ...], threads: Values) -> None:
        before = self.reader[at]
        self.reader[at] = threads
        several = (self.reader[at] != threads) | ((before != NEVER) & (before != threads))
        self.reader[tuple(part[several] for part in at)] = SEVERAL


@dataclass
class Memory:
    """The buffers of a launch and the local memory of the groups that run together.

    `group` and `inside` tell, for each thread, the row of its group in local memory and its number in the group.
    """

    kernel: str
    buffers: Sequence[Array]
    group: npt.NDArray[np.int64]
    inside: npt.NDArray[np.int64]
    local: dict[UOp, _Local] = field(default_factory=dict)

    def allocate(self, node: UOp, groups: int) -> None:
        """Local memory starts without values in every group."""
        assert isinstance(node.arg, BufferArg) and node.dtype.element is not None and node.arg.size is not None
        shape = (groups, node.arg.size)
        nobody = np.full(shape, NEVER, np.int64)
        self.local[node] = _Local(np.zeros(shape, numpy_dtype(node.dtype.element)), nobody, nobody.copy())

    def barrier(self) -> None:
        """From here on every thread sees what its group has stored."""
        for local in self.local.values():
            local.writer[local.writer != NEVER] = VISIBLE
            local.reader[...] = NEVER

    def load(self, node: UOp, places: Values, gate: Values | None, other: Values | None) -> Values:
        """The elements at `places` where the gate holds, elsewhere `other`, or 0."""
        data, local, element = self._find(node.src[0])
        self._check_bounds(node, places, gate, data.shape[-1])
        if gate is None and local is None:
            return from_storage(data[places], element)
        shape = self._shape(local, places, gate)
        chosen = np.broadcast_to(True if gate is None else gate, shape)
        at = self._elements(local, places, shape, chosen)
        if local is not None:
            threads = self._spread(self.inside, shape)[chosen]
            self._check_visible(node, local.writer[at], threads, at[-1])
            local.note_readers(at, threads)
        result = np.zeros(shape, held_dtype(element))
        if other is not None:
            result[...] = other
        result[chosen] = from_storage(data[at], element)
        return result

    def store(self, node: UOp, places: Values, value: Values, gate: Values | None) -> None:
        """Writes the values to `places` where the gate holds."""
        data, local, element = self._find(node.src[0])
        self._check_bounds(node, places, gate, data.shape[-1])
        shape = self._shape(local, places, value, gate)
        chosen = np.broadcast_to(True if gate is None else gate, shape)
        at = self._elements(local, places, shape, chosen)
        if local is not None:
            threads = self._spread(self.inside, shape)[chosen]
            self._check_free(node, local.writer[at], local.reader[at], threads, at[-1])
            local.writer[at] = threads
        stored = to_storage(np.broadcast_to(value, shape)[chosen], element)
        data[at] = stored
        self._check_race(node, data[at], stored, at[-1])

    # --- which elements ----------------------------------------------------------------------------------------------

    def _find(self, pointer: UOp) -> tuple[Array, _Local | None, DType]:
        """The array behind a pointer, of local memory also who wrote it, and the type of the elements."""
        pointer = memory_of(pointer)
        assert isinstance(pointer.arg, BufferArg) and pointer.dtype.element is not None
        local = self.local.get(pointer)
        return self.buffers[pointer.arg.slot] if local is None else local.data, local, pointer.dtype.element

    def _shape(self, local: _Local | None, *parts: Values | None) -> tuple[int, ...]:
        """One row for each thread, or one for all if nothing differs; each thread has its own row of local memory."""
        shape = np.broadcast_shapes(*(part.shape for part in parts if part is not None))
        return shape if local is None else (len(self.group), shape[1])

    def _elements(
        self, local: _Local | None, places: Values, shape: tuple[int, ...], chosen: Values
    ) -> tuple[Values, ...]:
        """The index into the array of each chosen access."""
        at = np.broadcast_to(places, shape)[chosen]
        return (at,) if local is None else (self._spread(self.group, shape)[chosen], at)

    def _spread(self, numbers: Values, shape: tuple[int, ...]) -> Values:
        return np.broadcast_to(numbers.reshape(-1, 1), shape)

    # --- what may not happen -----------------------------------------------------------------------------------------

    def _check_bounds(self, node: UOp, places: Values, gate: Values | None, size: int) -> None:
        wrong = (places < 0) | (places >= size)
        if not wrong.any():
            return
        if gate is not None:
            wrong, places = np.broadcast_arrays(wrong & gate, places)
        if wrong.any():
            at, number = int(places[wrong][0]), int(wrong.sum())
            self._fail(
                node,
                at,
                f"is outside of the {size} elements (accesses like this: {number}). The index or its gate is wrong",
            )

    def _check_visible(self, node: UOp, writers: Values, readers: Values, at: Values) -> None:
        for wrong, problem in (
            (writers == NEVER, "has not been stored by any thread"),
            ((writers >= 0) & (writers != readers), "was stored by another thread, and no barrier has passed since"),
        ):
            if wrong.any():
                self._fail(node, int(at[wrong][0]), problem)

    def _check_free(self, node: UOp, writers: Values, readers: Values, threads: Values, at: Values) -> None:
        """Whether nobody else has touched since the last barrier what is stored to now."""
        for wrong, done in (
            ((readers != NEVER) & (readers != threads), "read"),
            ((writers >= 0) & (writers != threads), "stored"),
        ):
            if wrong.any():
                self._fail(node, int(at[wrong][0]), f"was {done} by another thread, and no barrier has passed since")

    def _check_race(self, node: UOp, found: Array, stored: Array, at: Values) -> None:
        bits = np.dtype(f"u{stored.dtype.itemsize}")
        wrong = found.view(bits) != stored.view(bits)
        if wrong.any():
            self._fail(node, int(at[wrong][0]), "gets different values from several threads or lanes at once")

    def _fail(self, node: UOp, at: int, problem: str) -> NoReturn:
        buffer, index = (expression(part, 60) for part in node.src[:2])
        raise DeviceError(
            f"{self.kernel}: {node.op.name} at {buffer}[{index}]: element {at} {problem}. "
            "Look at the linear form: `rulewright show KERNEL --stage linear`."
        )
