"""LLVM IR, as text: one function for a kernel.

    define void @name(ptr noalias %data0, ptr noalias readonly %data1, i32 %n, i32 %thread)

The text names no machine: the runtime that compiles it chooses the CPU. Loops are basic blocks with a phi for the
counter; an accumulator is a stack slot, which LLVM's first passes turn into a register. A gated access is a branch,
so that a false gate touches no memory. Vectors are LLVM's, of any width; memory is assumed to be aligned to one
element only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..engine import facts, ops
from ..engine.dtypes import DType
from ..engine.errors import RenderError
from ..engine.intervals import Interval
from ..engine.linear import LinearKernel
from ..engine.ops import BufferArg, Op, RangeArg, SpecialArg, ThreadKind, VarArg
from ..engine.target import Target
from ..engine.uop import UOp
from .llvm_arithmetic import cannot, elementwise, fold_lanes, where
from .llvm_casts import bitcast, cast
from .llvm_text import Builder, literal, memory_type, register_type, scalar_type, symbol

_FEATURES = frozenset({
    "max", "int-max", "half", "half-storage", "float64", "bool-vector", "cast-vector", "math-vector", "mulacc",
    "recip", "round", "unaligned", "exp2",
})  # fmt: skip


class LlvmRenderer:
    """Prints kernels as LLVM IR with opaque pointers (LLVM 17 and later)."""

    def __init__(self, registers: tuple[int, int] = (4, 16)) -> None:
        """`registers`: the float32 lanes of the processor's vector registers, and how many it has."""
        lanes, count = registers
        self.target = Target("llvm", _FEATURES, (16, 8, 4, 2), lanes=lanes, registers=count)

    def render(self, kernel: LinearKernel) -> str:
        """The module's text. Raises RenderError naming the operator that must be lowered first."""
        functions = [_Function(part) for part in kernel.parts]
        texts = [function.text() for function in functions]
        definitions = {name: text for function in functions for name, text in function.b.definitions.items()}
        declarations = sorted({line for function in functions for line in function.b.declarations})
        texts += [definitions[name] for name in sorted(definitions)]
        return "\n\n".join(part for part in [*texts, "\n".join(declarations)] if part) + "\n"


class _Function:
    """One kernel while it is printed: what each node is called, and which loops and branches are open."""

    def __init__(self, kernel: LinearKernel) -> None:
        self.kernel = kernel
        self.b = Builder()
        self.names: dict[UOp, str] = {}
        self.accumulators: list[tuple[UOp, str]] = []  # (define_acc, its stack slot)
        self.phis: dict[UOp, UOp] = {}  # define_acc -> its phi, once assigned
        self.gates: dict[UOp, str] = {}  # if -> the label after it

    def text(self) -> str:
        for node in self.kernel.uops:
            self.node(node)
        self.b.run("ret void")
        return f"define void @{symbol(self.kernel.name)}({self.parameters()}) {{\n{self.b.body()}\n}}"

    def parameters(self) -> str:
        """Buffers by slot, variables by name, and the thread's number where there are threads."""
        buffers = [f"ptr noalias{'' if p.written else ' readonly'} %data{p.slot}" for p in self.kernel.buffers]
        variables = [f"i32 {_variable(v.name)}" for v in self.kernel.variables]
        return ", ".join(buffers + variables + ["i32 %thread"] * (self.kernel.threads > 1))

    def node(self, node: UOp) -> None:
        """Prints one node; what has a value gets a name."""
        special = _STATEMENTS.get(node.op)
        if special is not None:
            special(self, node)
            return
        value = _VALUES.get(node.op)
        if value is None and not node.op.elementwise:
            raise cannot(node.op, node.dtype)
        self.names[node] = value(self, node) if value is not None else self.elementwise(node)

    def name(self, node: UOp) -> str:
        """The operand text of a node: constants, buffers and variables need no instruction."""
        if node.op is ops.CONST:
            assert isinstance(node.arg, bool | int | float)
            return literal(node.dtype, node.arg)
        if node.op is ops.BUFFER:
            assert isinstance(node.arg, BufferArg)
            return f"%data{node.arg.slot}"
        if node.op is ops.VAR:
            assert isinstance(node.arg, VarArg)
            return _variable(node.arg.name)
        if node.op is ops.AFTER:
            return self.name(node.src[0])
        return self.names[node]

    def operands(self, node: UOp) -> list[str]:
        return [self.name(s) for s in node.src]

    def elementwise(self, node: UOp) -> str:
        def bounds(k: int) -> Interval:
            return facts.interval(node.src[k])

        return elementwise(self.b, node.op, node.dtype, node.src[0].dtype, self.operands(node), bounds)

    # --- values ------------------------------------------------------------------------------------------------------

    def where(self, node: UOp) -> str:
        return where(self.b, node.dtype, *self.operands(node))

    def cast(self, node: UOp) -> str:
        return cast(self.b, node.src[0].dtype, node.dtype, self.name(node.src[0]))

    def bitcast(self, node: UOp) -> str:
        return bitcast(self.b, node.src[0].dtype, node.dtype, self.name(node.src[0]))

    def thread(self, node: UOp) -> str:
        """The thread's number is the only hardware index of a CPU."""
        assert isinstance(node.arg, SpecialArg)
        if node.arg.kind is not ThreadKind.THREAD:
            raise RenderError(
                f"llvm cannot express a {node.arg.kind.value} index: the device has no work-groups; "
                f"make the axis a loop or share it out with THREAD"
            )
        if self.kernel.threads <= 1:
            return literal(node.dtype, 0)
        if node.dtype.bits == 32:
            return "%thread"
        return self.b.emit(f"sext i32 %thread to {register_type(node.dtype)}")

    def vectorize(self, node: UOp) -> str:
        kind, one = register_type(node.dtype), scalar_type(node.dtype)
        lanes = self.operands(node)
        if len(lanes) == 1:
            return lanes[0]
        if all(s is node.src[0] for s in node.src):
            first = self.b.emit(f"insertelement {kind} poison, {one} {lanes[0]}, i32 0")
            zeros = f"<{len(lanes)} x i32> zeroinitializer"
            return self.b.emit(f"shufflevector {kind} {first}, {kind} poison, {zeros}")
        result = "poison"
        for lane, value in enumerate(lanes):
            result = self.b.emit(f"insertelement {kind} {result}, {one} {value}, i32 {lane}")
        return result

    def gep(self, node: UOp) -> str:
        (vector,) = node.src
        if vector.dtype.lanes == 1:
            return self.name(vector)
        return self.b.emit(f"extractelement {register_type(vector.dtype)} {self.name(vector)}, i32 {node.arg}")

    def fold_lanes(self, node: UOp) -> str:
        assert isinstance(node.arg, Op)
        return fold_lanes(self.b, node.arg, node.src[0].dtype, node.dtype, self.name(node.src[0]))

    # --- memory ------------------------------------------------------------------------------------------------------

    def address(self, buffer: UOp, index: UOp) -> str:
        """The address of an element. LLVM extends a narrow index by its sign, so an unsigned one is widened first."""
        if index.dtype.lanes != 1:
            raise RenderError(f"llvm cannot express an access with a vector of indices ({index.dtype}): split it first")
        element = buffer.dtype.element
        assert element is not None
        kind, number = register_type(index.dtype), self.name(index)
        if index.dtype.kind == "uint" and index.dtype.bits < 64 and index.op is not ops.CONST:
            kind, number = "i64", self.b.emit(f"zext {kind} {number} to i64")
        return self.b.emit(f"getelementptr inbounds {memory_type(element)}, ptr {self.name(buffer)}, {kind} {number}")

    def load(self, node: UOp) -> str:
        if len(node.src) == 2:
            return self.read(node)
        taken, after = self.branch(self.name(node.src[2]), "load")
        before = self.b.block
        self.b.label(taken)
        value = self.read(node)
        self.b.run(f"br label %{after}")
        self.b.label(after)
        alternative = self.name(node.src[3])
        return self.b.emit(f"phi {register_type(node.dtype)} [ {value}, %{taken} ], [ {alternative}, %{before} ]")

    def read(self, node: UOp) -> str:
        """A load that happens; a bool is any byte but 0."""
        place, kind = self.address(node.src[0], node.src[1]), memory_type(node.dtype)
        value = self.b.emit(f"load {kind}, ptr {place}, align {_alignment(node.dtype)}")
        if node.dtype.kind != "bool":
            return value
        zero = "0" if node.dtype.lanes == 1 else "zeroinitializer"
        return self.b.emit(f"icmp ne {kind} {value}, {zero}")

    def store(self, node: UOp) -> None:
        if len(node.src) == 3:
            self.write(node)
            return
        taken, after = self.branch(self.name(node.src[3]), "store")
        self.b.label(taken)
        self.write(node)
        self.b.run(f"br label %{after}")
        self.b.label(after)

    def write(self, node: UOp) -> None:
        buffer, index, stored = node.src[:3]
        value, kind = self.name(stored), memory_type(stored.dtype)
        if stored.dtype.kind == "bool":
            value = self.b.emit(f"zext {register_type(stored.dtype)} {value} to {kind}")
        place = self.address(buffer, index)
        self.b.run(f"store {kind} {value}, ptr {place}, align {_alignment(stored.dtype)}")

    # --- control -----------------------------------------------------------------------------------------------------

    def branch(self, condition: str, stem: str) -> tuple[str, str]:
        """Ends the block: on to the first label if the condition holds, else to the second."""
        taken = self.b.unique(stem)
        after = f"{taken}.end"
        self.b.run(f"br i1 {condition}, label %{taken}, label %{after}")
        return taken, after

    def open_if(self, node: UOp) -> None:
        taken, self.gates[node] = self.branch(self.name(node.src[0]), "if")
        self.b.label(taken)

    def close_if(self, node: UOp) -> None:
        after = self.gates[node.src[0]]
        self.b.run(f"br label %{after}")
        self.b.label(after)

    def open_range(self, node: UOp) -> None:
        assert isinstance(node.arg, RangeArg)
        counter, loop = f"%r{node.arg.axis}", f"loop{node.arg.axis}"
        kind, end = register_type(node.dtype), self.name(node.src[0])
        before = self.b.block
        self.b.run(f"br label %{loop}")
        self.b.label(loop)
        self.b.run(f"{counter} = phi {kind} [ 0, %{before} ], [ {counter}.next, %{loop}.latch ]")
        predicate = "slt" if node.dtype.kind == "sint" else "ult"
        more = self.b.emit(f"icmp {predicate} {kind} {counter}, {end}")
        self.b.run(f"br i1 {more}, label %{loop}.body, label %{loop}.end")
        self.b.label(f"{loop}.body")
        self.names[node] = counter
        for accumulator, slot in self.accumulators:
            if node in accumulator.src[1:]:
                self.names[accumulator] = self.fetch(accumulator.dtype, slot)

    def close_range(self, node: UOp) -> None:
        """The counter stays below its end, so that the step cannot overflow."""
        (opened,) = node.src
        assert isinstance(opened.arg, RangeArg)
        counter, loop = f"%r{opened.arg.axis}", f"loop{opened.arg.axis}"
        self.b.run(f"br label %{loop}.latch")
        self.b.label(f"{loop}.latch")
        flags = "nuw nsw" if opened.dtype.kind == "sint" else "nuw"
        self.b.run(f"{counter}.next = add {flags} {register_type(opened.dtype)} {counter}, 1")
        self.b.run(f"br label %{loop}")
        self.b.label(f"{loop}.end")
        for accumulator, slot in self.accumulators:
            if opened in accumulator.src[1:] and accumulator in self.phis:
                self.names[self.phis[accumulator]] = self.fetch(accumulator.dtype, slot)

    # --- accumulators ------------------------------------------------------------------------------------------------

    def fetch(self, dtype: DType, slot: str) -> str:
        return self.b.emit(f"load {register_type(dtype)}, ptr {slot}")

    def define_accumulator(self, node: UOp) -> None:
        """The value is read anew where a loop of the accumulator begins, which is before its assignment there."""
        slot, kind = f"%acc{len(self.accumulators)}", register_type(node.dtype)
        self.b.allocate(slot, kind)
        self.accumulators.append((node, slot))
        self.names[node] = self.name(node.src[0])
        self.b.run(f"store {kind} {self.names[node]}, ptr {slot}")

    def assign_accumulator(self, node: UOp) -> None:
        accumulator, new = node.src
        slot = next(slot for known, slot in self.accumulators if known is accumulator)
        self.names[node] = self.name(new)
        self.phis[accumulator] = node
        self.b.run(f"store {register_type(node.dtype)} {self.names[node]}, ptr {slot}")

    def nothing(self, node: UOp) -> None:
        """A node that `name` knows, or that only orders others."""


_STATEMENTS: dict[Op, Callable[[_Function, UOp], None]] = {
    ops.CONST: _Function.nothing,
    ops.BUFFER: _Function.nothing,
    ops.VAR: _Function.nothing,
    ops.AFTER: _Function.nothing,
    ops.SINK: _Function.nothing,
    ops.STORE: _Function.store,
    ops.IF: _Function.open_if,
    ops.ENDIF: _Function.close_if,
    ops.RANGE: _Function.open_range,
    ops.ENDRANGE: _Function.close_range,
    ops.DEFINE_ACC: _Function.define_accumulator,
    ops.PHI: _Function.assign_accumulator,
}

_VALUES: dict[Op, Callable[[_Function, UOp], str]] = {
    ops.WHERE: _Function.where,
    ops.CAST: _Function.cast,
    ops.BITCAST: _Function.bitcast,
    ops.SPECIAL: _Function.thread,
    ops.VECTORIZE: _Function.vectorize,
    ops.GEP: _Function.gep,
    ops.FOLD_LANES: _Function.fold_lanes,
    ops.LOAD: _Function.load,
}


def _variable(name: str) -> str:
    """A symbolic variable as a parameter; renamed where a name of ours could be the same."""
    ours = re.fullmatch(r"(v|r|acc|data)\d+|thread", name)
    return f"%{symbol(name + '.variable' if ours else name)}"


def _alignment(dtype: DType) -> int:
    """The bytes of one element."""
    return dtype.bits // 8
