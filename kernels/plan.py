"""Plans: what each axis of a kernel becomes when the options of a schedule are applied to it, in order.

A plan says for each axis into which parts it is split; lowering writes the axis's index from them. An axis that is
stored and reduced too, such as that of a softmax, has two sets of parts, one for each role. An option that would not
give the same results on the device is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..engine import dtypes, ops
from ..engine.dtypes import DType
from ..engine.errors import KernelError
from ..engine.ops import Op
from ..engine.target import Target
from .kernel import Kernel, Reduce
from .schedule import Option, OptionKind, reduced_and_mixed
from .sizes import Dim

MAX_UPCAST, MAX_UNROLL, MAX_PARTIAL = 16, 32, 128
"""The most lanes, steps of a reduction, and results of its parts, that one option may ask for."""

MAX_LANES = 1024
"""The most lanes of one value, over all axes: beyond it the source is too large to compile."""

WIDER = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}
"""What a sum accumulates in, where that is not the type itself; it is rounded once, at the end."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis and its parts; parts that there are not have the size 1.

    The index of a store is (((thread*stored + loop)*group + t)*local + l)*upcast + lane, where the group's threads `t`
    take part only if the axis is `shared`. That of a reduction is ((loop*group + t)*unroll + step)*partial + lane, or with
    `group_outer` ((t*reduced + loop)*unroll + step)*partial + lane. With `share` the outermost part of both is the number
    of the share.
    """

    size: Dim
    stored: Dim  # what is left for the groups or the loop of stores; 1 where the axis is only reduced
    reduced: Dim  # what is left for the loop of reductions; 1 where the axis is only stored
    is_stored: bool
    is_reduced: bool
    thread: int = 1
    share: int = 1
    local: int = 1
    group: int = 1
    group_outer: bool = False
    unroll: int = 1
    partial: int = 1
    upcast: int = 1
    padded: bool = False  # the index can be beyond the axis's size

    @property
    def mixed(self) -> bool:
        """Whether the axis is reduced in one place and stored in another."""
        return self.is_stored and self.is_reduced

    @property
    def shared(self) -> bool:
        """Whether the threads that share out its reductions share out its stores too."""
        return self.group > 1 and isinstance(self.stored, int) and self.stored % self.group == 0 and self.is_stored

    @property
    def places(self) -> Dim:
        """How many places the index of a store can name, padding included."""
        outer = self.thread * (self.share if self.mixed else 1)
        return self.stored * (outer * self.local * self.upcast)

    @property
    def stored_loop(self) -> Dim:
        """The steps of the groups or the loop of stores."""
        return self.stored // self.group if self.shared else self.stored


@dataclass(frozen=True, slots=True)
class Plan:
    """The axes after all options."""

    axes: tuple[Axis, ...]
    order: tuple[int, ...]  # in which the loops or groups of stores stand, the outermost first
    upcast_order: tuple[int, ...] = ()  # earlier ones vary fastest: those along which all stores are contiguous
    no_locals: bool = False

    @property
    def group_size(self) -> int:
        """How many threads a group has."""
        return math.prod(axis.local * axis.group for axis in self.axes)


def plan(kernel: Kernel, schedule: Iterable[Option], target: Target) -> Plan:
    """Applies the options in order. Raises KernelError for the first that is not legal, with the reason."""
    reduced, mixed = reduced_and_mixed(kernel)
    axes = tuple(
        Axis(
            size,
            1 if n in reduced else size,
            size if n in reduced | mixed else 1,
            n not in reduced,
            n in reduced | mixed,
        )
        for n, size in enumerate(kernel.axis_sizes)
    )
    order = sorted((n for n, axis in enumerate(axes) if axis.is_stored), key=lambda n: (axes[n].is_reduced, n))
    result = Plan(axes, tuple(order))
    for option in schedule:
        result = _applied(result, option, target)
        _check_shared(kernel, result, option)
        _check_local_memory(kernel, result, option, target)
    return replace(result, upcast_order=_contiguous_first(kernel, result.upcast_order))


def is_legal(kernel: Kernel, schedule: Iterable[Option], target: Target) -> bool:
    """Whether a plan can be made."""
    try:
        plan(kernel, schedule, target)
    except KernelError:
        return False
    return True


def _contiguous_first(kernel: Kernel, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Lanes that are neighbours in memory beside each other, whichever axis was asked for first; else as asked for."""
    strides = {axis: {store.views[-1].strides[axis] for store in kernel.stores} for axis in axes}
    return tuple(sorted(axes, key=lambda axis: strides[axis] != {1}))


def _applied(before: Plan, option: Option, target: Target) -> Plan:
    if option.kind is OptionKind.NOLOCALS:
        if before.group_size > 1:
            raise KernelError(f"{option}: the group has {before.group_size} threads already; leave LOCAL and GROUP out")
        return replace(before, no_locals=True)
    axis = _axis(before, option, option.axis)
    if option.kind is OptionKind.SWAP:
        return _swapped(before, option)
    if not isinstance(axis.size, int):
        raise KernelError(f"{option}: axis {option.axis} has the symbolic size {axis.size}; it can only be a loop")
    changed = _PARTS[option.kind](before, option, axis, target)
    lanes = math.prod(_lanes(other) for other in before.axes) // _lanes(axis)
    _refuse(option, lanes * _lanes(changed) > MAX_LANES, f"would make more than {MAX_LANES} lanes")
    order = before.upcast_order
    if option.kind is OptionKind.UPCAST and option.axis not in order:
        order = (*order, option.axis)
    axes = tuple(changed if number == option.axis else other for number, other in enumerate(before.axes))
    return replace(before, axes=axes, upcast_order=order)


def _lanes(axis: Axis) -> int:
    return axis.upcast * axis.unroll * axis.partial


def _axis(before: Plan, option: Option, number: int) -> Axis:
    if not 0 <= number < len(before.axes):
        raise KernelError(f"{option}: there is no axis {number}; the kernel has {len(before.axes)}")
    return before.axes[number]


def _refuse(option: Option, wrong: bool, reason: str) -> None:
    if wrong:
        raise KernelError(f"{option}: axis {option.axis} {reason}")


def _divided(option: Option, left: Dim) -> tuple[int, int]:
    """The amount, and how many steps it leaves of those that are left."""
    assert isinstance(left, int)
    amount = option.amount or left
    if amount < 1 or left % amount:
        raise KernelError(f"{option}: {amount} does not divide the {left} steps of axis {option.axis}; PADTO it before")
    return amount, left // amount


# --- options that split an axis ---------------------------------------------------------------------------------------


def _upcast(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    _refuse(option, not axis.is_stored, "is reduced; UNROLL it")
    amount, rest = _divided(option, axis.stored)
    _refuse(option, amount > MAX_UPCAST, f"would get {amount} lanes at once; the most is {MAX_UPCAST}")
    return replace(axis, stored=rest, upcast=axis.upcast * amount)


def _unroll(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    _refuse(option, not axis.is_reduced, "is not reduced; UPCAST it")
    amount, rest = _divided(option, axis.reduced)
    _refuse(option, amount * axis.unroll > MAX_UNROLL, f"would have more than {MAX_UNROLL} steps unrolled")
    return replace(axis, reduced=rest, unroll=axis.unroll * amount)


def _partial(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    _refuse(option, not axis.is_reduced, "is not reduced; UPCAST it")
    amount, rest = _divided(option, axis.reduced)
    most = MAX_PARTIAL
    _refuse(option, amount * axis.partial > most, f"would have more than {most} results that accumulate apart")
    return replace(axis, reduced=rest, partial=axis.partial * amount)


def _local(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    _refuse(option, not target.has("threads"), f"cannot have group threads on {target.name}")
    _refuse(option, axis.is_reduced, "is reduced; GROUP it")
    _refuse(option, before.no_locals, "cannot have group threads after NOLOCALS")
    amount, rest = _divided(option, axis.stored)
    _check_group(before, option, amount, target)
    return replace(axis, stored=rest, local=axis.local * amount)


def _group(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    _refuse(option, not axis.is_reduced, "is not reduced; LOCAL gives it group threads")
    enough = target.has("threads") and target.has("local-memory")
    _refuse(option, not enough, f"cannot be shared out over group threads on {target.name}, which has no local memory")
    _refuse(option, before.no_locals, "cannot have group threads after NOLOCALS")
    _refuse(option, axis.group > 1, "is shared out over group threads already")
    shared = any(other.share > 1 for other in before.axes)
    _refuse(option, shared, "cannot be shared out over group threads after SHARE")
    amount, rest = _divided(option, axis.reduced)
    _check_group(before, option, amount, target)
    return replace(axis, reduced=rest, group=amount, group_outer=option.kind is OptionKind.GROUPTOP)


def _check_group(before: Plan, option: Option, amount: int, target: Target) -> None:
    threads, most = before.group_size * amount, target.group_threads
    _refuse(option, threads > most, f"would make a group of {threads} threads; the most on {target.name} is {most}")


def _share(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    _refuse(option, not axis.is_reduced, "is not reduced; THREAD or LOCAL shares out its stores")
    _check_first(before, option)
    grouped = any(other.group > 1 for other in before.axes)
    _refuse(option, grouped, "cannot be shared out beside a reduction that a group's threads share out")
    amount, rest = _divided(option, axis.reduced)
    if not axis.mixed:
        return replace(axis, reduced=rest, share=amount)
    _, stored = _divided(replace(option, amount=amount), axis.stored)
    return replace(axis, reduced=rest, stored=stored, share=amount)


def _check_first(before: Plan, option: Option) -> None:
    already = any(other.thread > 1 or other.share > 1 for other in before.axes)
    _refuse(option, already, "is not the first; one axis is shared out already")


def _thread(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    _refuse(option, target.has("threads"), f"cannot be shared out over CPU threads on {target.name}")
    _refuse(option, not axis.is_stored, "is reduced")
    _check_first(before, option)
    amount, rest = _divided(option, axis.stored)
    return replace(axis, stored=rest, thread=amount)


def _padto(before: Plan, option: Option, axis: Axis, target: Target) -> Axis:
    """What is left in each role grows; where the index can be too large then, lowering gates what is read and stored."""
    assert isinstance(axis.stored, int) and isinstance(axis.reduced, int)
    amount = option.amount or 1
    stored = -(-axis.stored // amount) * amount if axis.is_stored else 1
    reduced = -(-axis.reduced // amount) * amount if axis.is_reduced else 1
    nothing = axis.size == 0 or (stored, reduced) == (axis.stored, axis.reduced)
    _refuse(option, nothing, f"has a multiple of {amount} steps already: there is nothing to pad")
    return replace(axis, stored=stored, reduced=reduced, padded=True)


_PARTS: dict[OptionKind, Callable[[Plan, Option, Axis, Target], Axis]] = {
    OptionKind.UPCAST: _upcast, OptionKind.UNROLL: _unroll, OptionKind.PARTIAL: _partial, OptionKind.LOCAL: _local, OptionKind.GROUP: _group,
    OptionKind.GROUPTOP: _group, OptionKind.SHARE: _share, OptionKind.THREAD: _thread, OptionKind.PADTO: _padto,
}  # fmt: skip


# --- options on the whole ---------------------------------------------------------------------------------------------


def _swapped(before: Plan, option: Option) -> Plan:
    first, second = option.axis, option.amount
    for number in (first, second):
        reduced = _axis(before, option, number).is_reduced
        if reduced:
            raise KernelError(f"{option}: axis {number} is reduced; only the axes of groups can be exchanged")
    if first == second:
        raise KernelError(f"{option}: name two different axes")
    places = {first: second, second: first}
    return replace(before, order=tuple(places.get(number, number) for number in before.order))


def shared_reduces(kernel: Kernel, planned: Plan) -> Iterator[int]:
    """The reductions whose shares are combined when all threads are done."""
    for number, node in enumerate(kernel.nodes):
        if isinstance(node, Reduce) and any(
            planned.axes[axis].share > 1 and kernel.shapes[node.src][axis] != 1 for axis in node.axes
        ):
            yield number


def _check_shared(kernel: Kernel, planned: Plan, option: Option) -> None:
    """Raises KernelError where what the threads find would not be numbers in places that are known before."""
    for number in shared_reduces(kernel, planned):
        varies = {axis for axis, size in enumerate(kernel.shapes[number]) if size != 1}
        for axis in sorted(varies):
            if not isinstance(planned.axes[axis].size, int):
                raise KernelError(
                    f"{option}: the reduction has a result for each step of axis {axis}, whose size is symbolic"
                )
        for other in kernel.nodes:
            if isinstance(other, Reduce) and varies.intersection(other.axes):
                axis = min(varies.intersection(other.axes))
                raise KernelError(
                    f"{option}: the reduction has a result for each step of axis {axis}, which is reduced too"
                )


def _check_local_memory(kernel: Kernel, planned: Plan, option: Option, target: Target) -> None:
    """Raises KernelError where the shares of grouped reductions do not fit into a group's memory."""
    if any(axis.group > 1 for axis in planned.axes):
        needed = sum(
            planned.group_size
            * lanes(planned, kernel.shapes[number])
            * accumulated(node.op, kernel.types[node.src]).bits
            // 8
            for number, node in enumerate(kernel.nodes)
            if isinstance(node, Reduce) and any(planned.axes[axis].group > 1 for axis in node.axes)
        )
        if needed > target.local_memory:
            raise KernelError(
                f"{option}: the reductions would need {needed} bytes of local memory; "
                f"{target.name} has {target.local_memory}: choose smaller groups, or fewer lanes"
            )


def lanes(planned: Plan, shape: tuple[Dim, ...]) -> int:
    """The most lanes that a value of this shape can have."""
    return math.prod(axis.upcast for axis, size in zip(planned.axes, shape, strict=True) if size != 1)


def accumulated(op: Op, dtype: DType) -> DType:
    """The type in which a reduction of values of this type accumulates."""
    return WIDER.get(dtype, dtype) if op in (ops.ADD, ops.MUL) else dtype
