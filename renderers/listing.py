"""The linear form as text: the "source" of the interpreter."""

from __future__ import annotations

from ..engine import ops
from ..engine.linear import LinearKernel
from ..engine.ops import BufferArg
from ..engine.target import Target
from ..engine.uop import UOp


class ListingRenderer:
    """Prints one node a line, numbered, loops and ifs indented."""

    target = Target(
        "interpreter",
        frozenset({
            "floordiv", "max", "int-max", "half", "half-storage", "bfloat16", "float64", "bool-vector", "math-vector", "cast-vector",
            "mulacc", "recip", "round", "exp2", "threads", "local-memory",
        }),
        widths=(16, 8, 4, 2),
    )  # fmt: skip

    def render(self, kernel: LinearKernel) -> str:
        return "\n".join(self._part(part) for part in kernel.parts)

    def _part(self, kernel: LinearKernel) -> str:
        numbers: dict[UOp, int] = {}
        lines = [f"kernel {kernel.name}"]
        depth = 1
        for node in kernel.uops:
            depth -= node.op in (ops.ENDRANGE, ops.ENDIF)
            numbers[node] = len(numbers)
            operands = ", ".join(f"%{numbers[s]}" if s in numbers else s.op.name for s in node.src)
            lines.append(f"{'  ' * depth}%{numbers[node]} = {node.op.name}({operands}){_argument(node)}: {node.dtype}")
            depth += node.op in (ops.RANGE, ops.IF)
        return "\n".join(lines) + "\n"


def _argument(node: UOp) -> str:
    if node.arg is None or node.op is ops.DEFINE_ACC:
        return ""
    parts = node.arg if isinstance(node.arg, tuple) else (node.arg,)
    if isinstance(node.arg, BufferArg):
        parts = (
            node.arg.slot,
            node.arg.size,
            *([node.arg.image] * bool(node.arg.image)),
            *["scratch"] * node.arg.scratch,
        )
    return f" [{', '.join(str(getattr(part, 'value', part)) for part in parts)}]"
