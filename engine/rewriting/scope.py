"""The names that a rule has bound so far while its code is generated."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ..errors import RulewrightError
from ..language.syntax import Span


class UnsupportedRule(RulewrightError):
    """A rule is well formed but has a construct that cannot stand where it does."""

    def __init__(self, span: Span, problem: str) -> None:
        super().__init__(f"{span}: {problem}")


class Sort(Enum):
    """What the Python value of a bound name is."""

    NODE = "node"
    CONST = "const"  # a constant node; in formulas its value
    PACK = "pack"  # a tuple of nodes
    NUMBER = "number"  # a Python int
    TYPE = "type"  # a DType
    ARG = "arg"  # the arg of a node as it is, or a reducer


@dataclass(frozen=True, slots=True)
class Binding:
    sort: Sort
    code: str  # a Python name or expression


@dataclass(slots=True)
class Scope:
    """Names of the rule to bindings; the statements that the right side needs first; a counter for fresh names."""

    names: dict[str, Binding] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)
    built: dict[str, str] = field(default_factory=dict)  # code of a statement -> the name that holds its value
    nested: int = 0  # above 0 inside a comprehension, where no statement can stand
    fresh: int = 0

    def python_name(self, stem: str) -> str:
        self.fresh += 1
        return f"{stem}_{self.fresh}"

    def look_up(self, name: str, span: Span) -> Binding:
        try:
            return self.names[name]
        except KeyError:
            raise UnsupportedRule(span, f"`{name}` is not bound here") from None
