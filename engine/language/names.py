"""Which names mean what at a place in a rule: the module's declarations, and what the rule itself brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lark import Token

from .. import dtypes, ops
from ..dtypes import DType
from ..ops import Op
from .syntax import Formula, Span, VarKind

if TYPE_CHECKING:
    from .views import View


@dataclass(frozen=True, slots=True)
class Declared:
    kind: VarKind
    span: Span


@dataclass(frozen=True, slots=True)
class Extern:
    """A declared function: its parameters' names; `truth` for a `pred`; `means`, a formula on the parameters."""

    parameters: tuple[str, ...]
    truth: bool
    span: Span
    means: Formula | None = None


@dataclass(slots=True)
class ModuleNames:
    """What a module declares, and the families and functions that it sees in others."""

    declared: dict[str, Declared] = field(default_factory=dict)
    families: dict[str, tuple[Op, ...]] = field(default_factory=dict)
    externs: dict[str, Extern] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Scope:
    """The names of one instance of a rule."""

    module: ModuleNames
    parameters: dict[str, Op | int] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)  # named without declaration: `n@…`, `let n = …`
    packs: set[str] = field(default_factory=set)  # bound by `...xs`: several nodes
    numbers: set[str] = field(default_factory=set)  # captured: the `n` of `for k in 0..n`
    counters: list[str] = field(default_factory=list)  # of the comprehensions around this place
    bound: set[str] | None = None  # what the left side binds; None while it is read
    free: bool = False  # in a test, whose names are its own
    views: list[Mapping[str, int]] = field(default_factory=list)  # for each view of the left side, what is absent
    formal: frozenset[str] = frozenset()  # parameters of an extern: numbers or expressions, as a call has it

    def kind(self, name: str) -> VarKind | None:
        """What a declared name stands for; notes that it is used."""
        declared = self.module.declared.get(name)
        if declared is None:
            return None
        self.module.used.add(name)
        return declared.kind

    def visible(self) -> list[str]:
        """Every name that could have been meant."""
        return [
            *self.module.declared,
            *self.parameters,
            *self.nodes,
            *self.numbers,
            *self.counters,
        ]


CALLABLE = {name: op for name, op in ops.OPS.items() if name not in ("const", "endrange", "if", "endif")}
"""The operators that a rule may name."""

INFIX: dict[str, Op] = {op.symbol: op for op in ops.OPS.values() if op.symbol is not None}


def type_named(name: str) -> DType | None:
    """The type that a word of a rule file names, or None."""
    try:
        found = dtypes.by_name(name)
    except KeyError:
        return None
    return found if found.kind not in ("void", "pointer") else None


TYPE_NAMES = ("index", *(dtype.name for dtype in dtypes.DATA_TYPES))


def number(token: Token) -> bool | int | float:
    """The value of a literal."""
    text = str(token)
    if token.type == "WORD_VALUE":
        return text == "true" if text in ("true", "false") else float(text)
    if token.type == "FLOAT":
        return float(text)
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


OPERANDS: dict[str, tuple[int, int | None]] = {
    "load": (2, 4), "store": (3, 4), "reduce": (1, None), "group_reduce": (5, None), "define_acc": (1, None), "vectorize": (1, None),
    "after": (1, None), "barrier": (0, None), "sink": (0, None),
}  # fmt: skip
"""How many operands the operators without a fixed number take; None: any number."""

BRACKETS: dict[str, tuple[tuple[str, ...], int]] = {
    "cast": (("type",), 1), "bitcast": (("type",), 1), "gep": (("number",), 1), "load": (("number",), 0),
    "vectorize": (("number",), 0), "reduce": (("operator",), 1), "group_reduce": (("operator",), 1), "fold_lanes": (("operator", "number"), 2),
    "range": (("arg",), 1), "special": (("arg",), 1), "define_acc": (("arg",), 1),
    "buffer": (("arg", "type"), 1), "local": (("arg", "type"), 1), "var": (("arg", "type"), 1),
}  # fmt: skip
"""What stands in the brackets of an operator, and how much of it is needed where the operator is made."""
