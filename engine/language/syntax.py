"""The syntax tree of rule files: what the parser makes and the rule compiler reads.

A *term* stands on either side of a rule; the same classes serve as pattern and as template. A *formula* stands after
`when`, in `{…}` and in the bounds of a lane comprehension. Every node carries the place that an error points at.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..dtypes import DType
from ..ops import Op


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a file: 1-based lines and columns, the end exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class VarKind(str, Enum):
    """What a declared name stands for."""

    ANY = "vars"  # any node
    CONST = "consts"  # a constant node
    TYPE = "types"  # a type: cast[t](x)
    ARG = "args"  # what stands in an operator's brackets, taken as it is: range[a](n)


# --- terms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var:
    """A declared name. As a pattern it binds at its first place and must be the same node at the others."""

    name: str
    kind: VarKind
    span: Span


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`_` matches anything and binds nothing."""

    span: Span


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, `true`, `false`, `inf`, `nan`; takes the type of where it stands."""

    value: bool | int | float
    span: Span


@dataclass(frozen=True, slots=True)
class Bind:
    """`n@term`: the matched node gets a name. Patterns only."""

    name: str
    term: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator on operands, written infix or as a call. `attrs` stand in brackets: `cast[float32](x)`."""

    op: Op
    attrs: tuple[Attr, ...]
    args: tuple[Term, ...]  # a Pack may stand last in a pattern, anywhere in a template
    span: Span


@dataclass(frozen=True, slots=True)
class Pack:
    """`...xs`. As a pattern it takes the remaining operands; as a template `...f(xs)` gives one operand for each."""

    term: Term
    span: Span


@dataclass(frozen=True, slots=True)
class Lanes:
    """`vec[…]`: a vector by its lanes. Elements are terms, packs and comprehensions."""

    elements: tuple[Term, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Comprehension:
    """`term for k in low..high`, inside `vec[…]`; `k` counts lanes. In a pattern `high` may be a name to bind."""

    term: Term
    counter: str
    low: Formula
    high: Formula
    span: Span


@dataclass(frozen=True, slots=True)
class Share:
    """`...xs when guard` in a chain: those of the other terms that the guard holds for, combined; at least one."""

    name: Var  # in the guard it stands for each of the terms alone
    guard: Formula
    span: Span


@dataclass(frozen=True, slots=True)
class Chain:
    """`add{x*c, ...rest}`: terms anywhere in a flattened chain of one associative operator.

    As a template, `add{...sorted(xs)}`: the chain that `rest` names, its terms in the canonical order.
    """

    op: Op
    terms: tuple[Term, ...]
    rest: Var | None
    span: Span
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Compute:
    """`{formula}`: a constant computed when the rule fires. Templates only."""

    formula: Formula
    span: Span


Term = Var | Wildcard | Literal | Bind | Apply | Pack | Lanes | Comprehension | Chain | Compute


# --- formulas --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a formula: a variable of the rule (a constant's value), a lane counter, or a captured number."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class TypeName:
    """A concrete type in a formula or in brackets."""

    dtype: DType
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    value: bool | int | float
    span: Span


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted string: the argument of `target.has`."""

    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic or a comparison on values; in `{…}` any scalar operator."""

    op: Op
    args: tuple[Formula, ...]
    attrs: tuple[Attr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in or `extern` function: `min(x)`, `divides(c, x)`, `target.has("max")`."""

    name: str
    args: tuple[Formula, ...]
    span: Span
    means: Formula | None = None  # of an extern with `means`: that formula, with these arguments


@dataclass(frozen=True, slots=True)
class Logic:
    """`and`, `or`, `not`."""

    word: str
    args: tuple[Formula, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class InRange:
    """`x in low..high`: every value of x lies in the half-open range."""

    value: Formula
    low: Formula
    high: Formula
    span: Span


Formula = Name | TypeName | Number | Text | Operation | Function | Logic | InRange

Attr = Var | Op | TypeName | Name | Number | Operation | Function
"""What may stand in brackets: a bound name, a reducer, a type, a lane counter, or a number."""


# --- rules -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OnType:
    """One alternative of an `on` clause: a class or a type, and the float flags that the kernel must grant."""

    name: str  # index int uint sint bool float, or a type's name
    flags: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Given:
    """One assumption of a test: the type and bounds of a free name, or the target, or the granted flags.

    `form` is `value`, `buffer`, `local`, `image`, `range`, `reduce`, `upcast`, `unroll`, `partial`, `target` or `flags`.
    """

    form: str
    names: tuple[str, ...]  # one name; for target and flags the features
    dtype: DType | None
    low: int | None  # of a value; for a range and a buffer 0
    high: int | None  # exclusive; the extent of a range, the size of a buffer
    widths: tuple[int, ...]  # of a target
    span: Span


@dataclass(frozen=True, slots=True)
class Case:
    """A `test` (after is what it becomes) or a `keep` (after is None: the rule must not fire)."""

    before: Term
    after: Term | None
    given: tuple[Given, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Instance:
    """A rule with its parameters filled in: what is compiled."""

    bindings: tuple[tuple[str, Op | int], ...]
    left: Term
    right: Term
    lets: tuple[tuple[str, Term], ...]
    when: Formula | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `id` is `group.name`, the name that traces and reports use."""

    id: str
    doc: str
    instances: tuple[Instance, ...]
    on: tuple[OnType, ...]  # empty: every type
    ordered: bool
    cases: tuple[Case, ...]
    decreases: Formula | None
    because: str | None
    span: Span
    text: str  # the equation as written


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    doc: str
    rules: tuple[Rule, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a pipeline: groups brought to a fixed point, or applied once."""

    mode: str  # "fix" or "once"
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    name: str
    doc: str
    stages: tuple[Stage, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RuleBook:
    """Every module that was loaded together, names resolved."""

    groups: dict[str, Group]
    pipelines: dict[str, Pipeline]
