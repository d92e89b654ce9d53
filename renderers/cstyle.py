"""Prints a linear kernel in a language of the C family: statements, scopes and names.

`CStyle` is the renderer that each language completes; how an operator looks is its `Dialect`'s part.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence

from ..engine import ops
from ..engine.dtypes import DType
from ..engine.errors import RenderError
from ..engine.linear import BufferParam, LinearKernel
from ..engine.ops import BufferArg, Op, RangeArg, VarArg
from ..engine.uop import UOp
from .dialect import Dialect, Operation, Source, may_fault, may_wrap
from .inlining import MOVABLE, movable, read_after_assignment
from .text import ATOM, SUM, Text, choose

LONGEST_INLINE = 72
"""Characters up to which an expression is printed inside its user's."""

LONGEST_HEAD = 120
"""Characters up to which a kernel's head stands on one line."""


class CStyle(Dialect):
    """A renderer of the C family. It keeps no state; what one printing needs is in its `Body`."""

    keywords: frozenset[str]
    """Words that cannot name a kernel or a variable."""

    def render(self, kernel: LinearKernel) -> str:
        """The source text. Raises RenderError naming the operator, the type and the device."""
        body: Body | None = None
        functions = []
        for part in kernel.parts:
            body = Body(self, part, body)
            functions.append(body.function())
        assert body is not None
        body.kernel = kernel
        parts = [self.preamble(body), *body.helpers.values(), *functions]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def function_name(self, kernel: LinearKernel) -> str:
        """What the kernel's function is called in the source."""
        return self.identifier(kernel.name)

    def identifier(self, name: str) -> str:
        """`name` made a legal identifier that collides with no keyword and no generated name."""
        made = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not made or made[0].isdigit():
            made = f"n{made}"
        return f"{made}_" if made in self.keywords or _GENERATED.fullmatch(made) else made

    def parameters(self, source: Source) -> list[str]:
        """The declarations of buffers and variables."""
        names = variable_names(self, source.kernel)
        buffers = [self.buffer(source, buffer, buffer_name(buffer.slot)) for buffer in source.kernel.buffers]
        return [*buffers, *(f"int {names[variable]}" for variable in source.kernel.variables)]

    # --- what a language must say ---

    @abstractmethod
    def signature(self, source: Source) -> tuple[str, list[str]]:
        """The kernel's head up to its name, and its parameters."""

    @abstractmethod
    def preamble(self, source: Source) -> list[str]:
        """The lines before the helpers: includes, pragmas, vector types. Called when all else is printed."""

    @abstractmethod
    def buffer(self, source: Source, parameter: BufferParam, name: str) -> str:
        """The declaration of a buffer argument."""

    @abstractmethod
    def load(self, source: Source, dtype: DType, buffer: str, at: Text) -> Text:
        """Element `at` of a buffer, or the vector that begins there; only the element's alignment is given."""

    @abstractmethod
    def store(self, source: Source, dtype: DType, buffer: str, at: Text, value: Text) -> str:
        """The statement that writes one element or vector."""

    @abstractmethod
    def special(self, source: Source, node: UOp) -> tuple[str, Text]:
        """The name of a hardware index, and what it is. Raises RenderError."""

    def texel(self, source: Source, operands: Sequence[Text]) -> Text:
        """The place of a texel, from its column, its row and the image's width."""
        raise RenderError(f"device {self.target.name} has no images")

    def read_texel(self, buffer: str, at: Text) -> Text:
        """The four elements of an image's texel; 0 outside of the image."""
        raise RenderError(f"device {self.target.name} has no images")

    def barrier(self, node: UOp) -> str:
        """The statement at which all threads of a group wait."""
        raise RenderError(f"device {self.target.name} has no groups of threads, so no barrier")

    def local(self, source: Source, element: DType, name: str, size: int) -> str:
        """The declaration of a group's memory."""
        raise self.lacks("local memory", element, "it has none")


_GENERATED = re.compile(r"(data|acc|old|r|val|idx|gate|local|gidx|lidx)\d+(_\d+)?")
"""The names that the printer itself gives."""


def buffer_name(slot: int) -> str:
    return f"data{slot}"


def variable_names(style: CStyle, kernel: LinearKernel) -> dict[VarArg, str]:
    """An identifier for each variable, different for each."""
    names: dict[VarArg, str] = {}
    for variable in kernel.variables:
        name = style.identifier(variable.name)
        while name in names.values():
            name += "_"
        names[variable] = name
    return names


class Body(Source):
    """One printing of one kernel: its lines so far, and the text of each node."""

    def __init__(self, style: CStyle, kernel: LinearKernel, before: Source | None = None) -> None:
        super().__init__(kernel, style.qualifier, before)
        self._style = style
        self._memory: list[str] = []  # of the group, declared before everything else
        self._lines: list[str] = []
        self._depth = 1
        self._texts: dict[UOp, Text] = {}
        self._counts: dict[str, int] = {}
        self._variables = variable_names(style, kernel)
        self._movable = movable(kernel.uops)
        self._kept = read_after_assignment(kernel.uops)

    def function(self) -> list[str]:
        """The lines of the kernel's function."""
        head = _head(*self._style.signature(self))
        for node in self.kernel.uops:
            if node.op in MOVABLE:
                self._value(node)
            else:
                _STATEMENTS.get(node.op, Body._unknown)(self, node)
        return [*head, *self._memory, *self._lines, "}"]

    # --- expressions ---

    def _value(self, node: UOp) -> None:
        """Remembers the text of an expression for its user, or puts it into a variable."""
        text = self._expression(node)
        lane_of_name = node.op is ops.GEP and text.level == ATOM and node.src[0].op is not ops.DEFINE_ACC
        if lane_of_name or (node in self._movable and len(text.text) <= LONGEST_INLINE):
            self._texts[node] = text
        else:
            self._declare(node, self._new_name(_prefix(node)), text)

    def _expression(self, node: UOp) -> Text:
        operands = tuple(self._texts[s] for s in node.src)
        match node.op:
            case ops.LOAD:
                return self._load(node, operands)
            case ops.TEXEL:
                return self._style.texel(self, operands)
            case ops.VECTORIZE:
                alike = all(s is node.src[0] for s in node.src)
                return self._style.vector(self, node.dtype, operands[:1] if alike else operands)
            case ops.GEP:
                assert isinstance(node.arg, int)
                return self._style.lane(node.src[0].dtype, operands[0], node.arg)
        types = tuple(s.dtype for s in node.src)
        what = Operation(node.op, node.dtype, types, operands, may_wrap(node), may_fault(node))
        return self._style.operation(self, what)

    def _load(self, node: UOp, operands: tuple[Text, ...]) -> Text:
        if node.src[1].dtype.lanes > 1:
            raise self._style.lacks("a gather", node.dtype, "split it into loads of one element")
        if node.src[1].op is ops.TEXEL:
            return self._style.read_texel(operands[0].text, operands[1])
        loaded = self._style.load(self, node.dtype, operands[0].text, operands[1])
        if len(operands) > 2:
            return self._style.narrow(self, node.dtype, choose(operands[2], loaded, operands[3]))
        return loaded

    def _declare(self, node: UOp, name: str, text: Text) -> None:
        dtype = node.dtype.vec(2) if node.op is ops.TEXEL else node.dtype
        self._emit(f"{self._style.type_name(self, dtype)} {name} = {text.text};")
        self._texts[node] = Text(name)

    def _new_name(self, prefix: str) -> str:
        number = self._counts.get(prefix, 0)
        self._counts[prefix] = number + 1
        return f"{prefix}{number}"

    def _emit(self, line: str) -> None:
        self._lines.append("  " * self._depth + line)

    # --- statements ---

    def _store(self, node: UOp) -> None:
        buffer, at, value, *gate = (self._texts[s] for s in node.src)
        if node.src[1].dtype.lanes > 1:
            raise self._style.lacks("a scatter", node.src[2].dtype, "split it into stores of one element")
        statement = self._style.store(self, node.src[2].dtype, buffer.text, at, value)
        self._emit(f"if ({gate[0].text}) {statement}" if gate else statement)

    def _range(self, node: UOp) -> None:
        assert isinstance(node.arg, RangeArg)
        name, end = f"r{node.arg.axis}", self._texts[node.src[0]].at(SUM)
        self._emit(f"for ({self._style.type_name(self, node.dtype)} {name} = 0; {name} < {end}; {name}++) {{")
        self._texts[node] = Text(name)
        self._depth += 1

    def _if(self, node: UOp) -> None:
        self._emit(f"if ({self._texts[node.src[0]].text}) {{")
        self._depth += 1

    def _close(self, node: UOp) -> None:
        self._depth -= 1
        self._emit("}")

    def _accumulator(self, node: UOp) -> None:
        self._declare(node, self._new_name("acc"), self._texts[node.src[0]])

    def _assign(self, node: UOp) -> None:
        """The new value; what still reads the old one reads a copy from here on."""
        accumulator, new = node.src
        name = self._texts[accumulator]
        if accumulator in self._kept:
            self._declare(accumulator, self._new_name("old"), name)
        text, grown = self._texts[new].text, f"{name.text} + "
        if new.op is ops.ADD and new.src[0] is accumulator and text.startswith(grown):
            self._emit(f"{name.text} += {text.removeprefix(grown)};")
        else:
            self._emit(f"{name.text} = {text};")
        self._texts[node] = name

    def _barrier(self, node: UOp) -> None:
        self._emit(self._style.barrier(node))

    def _local(self, node: UOp) -> None:
        assert isinstance(node.arg, BufferArg)
        assert node.dtype.element is not None
        if node.arg.size is None:
            raise self._style.lacks("local memory", node.dtype.element, "its size must be a constant")
        name = f"local{node.arg.slot}"
        self._memory.append("  " + self._style.local(self, node.dtype.element, name, node.arg.size))
        self._texts[node] = Text(name)

    def _special(self, node: UOp) -> None:
        name, value = self._style.special(self, node)
        if value.text == name:
            self._texts[node] = value
        else:  # the same index may be there in two types
            again = self._counts.get(name, 0)
            self._counts[name] = again + 1
            self._declare(node, f"{name}_{again}" if again else name, value)

    # --- names ---

    def _constant(self, node: UOp) -> None:
        assert isinstance(node.arg, bool | int | float)
        self._texts[node] = self._style.constant(self, node.dtype, node.arg)

    def _variable(self, node: UOp) -> None:
        assert isinstance(node.arg, VarArg)
        self._texts[node] = Text(self._variables[node.arg])

    def _buffer(self, node: UOp) -> None:
        assert isinstance(node.arg, BufferArg)
        self._texts[node] = Text(buffer_name(node.arg.slot))

    def _after(self, node: UOp) -> None:
        self._texts[node] = self._texts[node.src[0]]

    def _end(self, node: UOp) -> None:
        """A sink says nothing that the stores before it have not said."""

    def _unknown(self, node: UOp) -> None:
        raise self._style.lacks(node.op.name, node.dtype, "rules must remove it before the linear form")


def _head(function: str, parameters: list[str]) -> list[str]:
    """The kernel's head up to the opening brace; of a long one each parameter on its own line."""
    line = f"{function}({', '.join(parameters)}) {{"
    if len(line) <= LONGEST_HEAD:
        return [line]
    return [f"{function}(", *(f"    {p}," for p in parameters[:-1]), f"    {parameters[-1]}) {{"]


def _prefix(node: UOp) -> str:
    """What a variable's name begins with: it tells indices and gates from other values."""
    if node.dtype.lanes > 1 or node.op is ops.LOAD:
        return "val"
    return "gate" if node.dtype.kind == "bool" else "idx" if node.dtype.is_int else "val"


_STATEMENTS: dict[Op, Callable[[Body, UOp], None]] = {
    ops.CONST: Body._constant, ops.VAR: Body._variable, ops.BUFFER: Body._buffer, ops.AFTER: Body._after,
    ops.LOCAL: Body._local, ops.SPECIAL: Body._special, ops.SINK: Body._end,
    ops.RANGE: Body._range, ops.ENDRANGE: Body._close, ops.IF: Body._if, ops.ENDIF: Body._close,
    ops.STORE: Body._store, ops.BARRIER: Body._barrier, ops.DEFINE_ACC: Body._accumulator, ops.PHI: Body._assign,
}  # fmt: skip
