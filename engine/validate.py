"""Is a linear kernel well formed: scopes, loops, accumulators, ifs, barriers, and the signature.

Renderers and the interpreter trust the linear form blindly. The validator walks over it once, as they do, keeps the
loops and ifs that are open, and returns all problems.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import ops
from .linear import BufferParam, LinearKernel
from .ops import AxisKind, BufferArg, RangeArg, SpecialArg, ThreadKind, VarArg
from .uop import UOp, memory_of
from .verifier import Problem, node_problems, report

Scope = tuple[UOp, ...]
"""The RANGE and IF nodes that are open, outermost first."""


def validate(kernel: LinearKernel) -> list[Problem]:
    """Every problem of a linear kernel, in its order; an empty list if it is well formed."""
    return [problem for part in kernel.parts for problem in _validate(part)]


def _validate(kernel: LinearKernel) -> list[Problem]:
    validator = _Validator()
    for node in kernel.uops:
        validator.visit(node)
    validator.finish()
    return [*validator.problems, *_signature(kernel)]


def check_linear(kernel: LinearKernel) -> None:
    """Raises GraphError with all problems of the linear kernel."""
    report(validate(kernel), f"the linear form of {kernel.name}")


class _Validator:
    """What is known at one place of the linear form."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.scope: Scope = ()
        self.scopes: dict[UOp, Scope] = {}  # of each node that has stood: where its value is known
        self.stored: set[tuple[UOp, ...]] = set()
        self.opened: set[UOp] = set()
        self.accumulators: dict[UOp, UOp | None] = {}  # with the phi that assigns it
        self.divergent: set[UOp] = set()  # values that may differ between the threads of a group

    def visit(self, node: UOp) -> None:
        messages = [*self._forbidden(node), *node_problems(node)]
        if node in self.scopes:
            messages.append("stands twice")
        messages += self._uses(node)
        messages += self._order(node)
        self.problems += (Problem(node, message) for message in messages)
        self.scopes[node] = self._known_in(node)
        if _varies(node) or any(s in self.divergent for s in node.src):
            self.divergent.add(node)

    def finish(self) -> None:
        for node in self.scope:
            self.problems.append(Problem(node, "is never closed"))
        for accumulator, phi in self.accumulators.items():
            if phi is None:
                self.problems.append(Problem(accumulator, "no phi assigns it"))

    # --- nodes and operands ------------------------------------------------------------------------------------------

    def _forbidden(self, node: UOp) -> Iterator[str]:
        if node.op in _GRAPH_ONLY:
            yield "does not exist in the linear form; the rules should have replaced it"
        elif node.op in (ops.LOAD, ops.STORE) and len(node.src) > 1 and node.src[1].dtype.lanes > 1:
            yield "has a vector of indices; the rules should have split it"
        elif node.op is ops.STORE and len(node.src) > 3:
            yield "has a gate; in the linear form a gated store stands in an if"
        if node.dtype.kind == "index":
            yield "has type index; the rules should have chosen an integer type"

    def _uses(self, node: UOp) -> Iterator[str]:
        """Operands that are not known where the node stands."""
        operands = node.src[:1] if node.op is ops.DEFINE_ACC else node.src
        if node.op is ops.BARRIER:
            operands = tuple(operand for operand in node.src if operand.op is not ops.STORE)
            if any(store.op is ops.STORE and store.src[:3] not in self.stored for store in node.src):
                yield "a store that it waits for has not happened"
        for operand in dict.fromkeys(operands):
            scope = self.scopes.get(operand)
            if scope is None:
                yield f"uses {operand.op.name} {operand!r} before it stands"
            elif self.scope[: len(scope)] != scope:
                yield f"uses {operand.op.name} {operand!r} outside of its loop or if"
            elif operand.op is ops.DEFINE_ACC and any(loop not in self.scope for loop in operand.src[1:]):
                yield f"reads the accumulator {operand!r} outside of its loops"
            elif operand.op is ops.PHI and any(loop in self.scope for loop in _loops(operand)):
                yield f"uses the final value {operand!r} inside of its loops"

    def _known_in(self, node: UOp) -> Scope:
        """The scope in which the node's value may be used: a phi's is that around its loops."""
        if node.op is not ops.PHI:
            return self.scope
        loops = _loops(node)
        around = [place for place, opener in enumerate(self.scope) if opener in loops]
        return self.scope[: around[0]] if around else self.scope

    # --- scopes and effects ------------------------------------------------------------------------------------------

    def _order(self, node: UOp) -> Iterator[str]:
        match node.op:
            case ops.RANGE:
                yield from self._open_loop(node)
            case ops.IF:
                self.scope = (*self.scope, node)
            case ops.ENDRANGE | ops.ENDIF:
                yield from self._close(node)
            case ops.STORE:
                self.stored.add(node.src[:3])
            case ops.BARRIER:
                yield from self._barrier()
            case ops.DEFINE_ACC:
                yield from self._accumulator(node)
            case ops.PHI:
                yield from self._assign(node)

    def _open_loop(self, node: UOp) -> Iterator[str]:
        if isinstance(node.arg, RangeArg) and node.arg.kind not in (AxisKind.LOOP, AxisKind.REDUCE):
            yield f"a range of kind {node.arg.kind.value} is no loop; the rules should have made lanes of it"
        if node in self.opened:
            yield "is opened twice"
        self.opened.add(node)
        self.scope = (*self.scope, node)

    def _close(self, node: UOp) -> Iterator[str]:
        opener = node.src[0]
        if self.scope and self.scope[-1] is opener:
            self.scope = self.scope[:-1]
        elif opener in self.scope:
            yield f"closes {opener!r} while {self.scope[-1]!r} inside of it is open"
            self.scope = self.scope[: self.scope.index(opener)]
        else:
            yield f"closes {opener!r}, which is not open"

    def _barrier(self) -> Iterator[str]:
        for opener in self.scope:
            if opener.op is ops.IF:
                yield "stands in an if; every thread of the group must reach it"
            elif opener.src[0] in self.divergent:
                yield f"stands in the loop {opener!r}, whose end may differ between the threads of a group"

    def _accumulator(self, node: UOp) -> Iterator[str]:
        self.accumulators.setdefault(node, None)
        if len(node.src) < 2:
            yield "has no ranges"
        for loop in node.src[1:]:
            if loop in self.opened:
                yield f"stands after its loop {loop!r} has begun"

    def _assign(self, node: UOp) -> Iterator[str]:
        """A phi stands in the loops of its accumulator and in no other inside of where that begins."""
        accumulator = node.src[0]
        if accumulator not in self.accumulators:
            return  # reported as a use
        if self.accumulators[accumulator] is not None:
            yield "assigns an accumulator that another phi assigns"
        self.accumulators[accumulator] = node
        inside = self.scope[len(self.scopes[accumulator]) :]
        loops = _loops(node)
        for loop in loops:
            if loop not in inside:
                yield f"is assigned outside of its loop {loop!r}"
        for opener in inside:
            if opener not in loops:
                yield f"is assigned inside of {opener!r}, which is none of its loops"


_GRAPH_ONLY = frozenset({ops.REDUCE, ops.GROUP_REDUCE, ops.WIDEN, ops.FOLD_LANES, ops.SINK})


def _loops(phi: UOp) -> tuple[UOp, ...]:
    return phi.src[0].src[1:]


def _varies(node: UOp) -> bool:
    """Whether the node's value may differ between the threads of a group though its operands do not."""
    if node.op is ops.LOAD:
        return memory_of(node.src[0]).op is ops.LOCAL
    return node.op is ops.SPECIAL and isinstance(node.arg, SpecialArg) and node.arg.kind is ThreadKind.LOCAL


# --- the signature ----------------------------------------------------------------------------------------------------


def _signature(kernel: LinearKernel) -> Iterator[Problem]:
    """Buffers, variables and hardware indices that the kernel's signature does not tell."""
    params = {param.slot: param for param in kernel.buffers}
    for node in kernel.uops:
        match node.arg:
            case BufferArg(slot=slot) if node.op is ops.BUFFER:
                yield from _parameter(node, params.get(slot))
            case VarArg() if node.arg not in kernel.variables:
                yield Problem(node, "is not among the kernel's variables")
            case SpecialArg() if not _declared(kernel, node, node.arg):
                yield Problem(node, "the kernel declares another size for this hardware index, or none")
        if node.op is ops.STORE:
            stored = _slot(node.src[0])
            if stored is not None and stored in params and not params[stored].written:
                yield Problem(node, f"stores into buffer {stored}, which the kernel does not declare as written")


def _parameter(node: UOp, param: BufferParam | None) -> Iterator[Problem]:
    if param is None:
        yield Problem(node, "is not among the kernel's buffers")
    elif param.dtype is not node.dtype.element:
        yield Problem(node, f"the kernel declares elements of type {param.dtype}")


def _declared(kernel: LinearKernel, node: UOp, arg: SpecialArg) -> bool:
    size = node.src[0]
    if arg.kind is ThreadKind.THREAD:
        return size.arg == kernel.threads
    if arg.kind is ThreadKind.GROUP:
        return arg.dim < len(kernel.groups) and kernel.groups[arg.dim] is size
    return arg.dim < len(kernel.locals) and kernel.locals[arg.dim] == size.arg


def _slot(pointer: UOp) -> int | None:
    memory = memory_of(pointer)
    return memory.arg.slot if memory.op is ops.BUFFER and isinstance(memory.arg, BufferArg) else None
