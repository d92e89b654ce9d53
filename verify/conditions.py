"""The conditions of a guard, compiled as the engine compiles them, so that a generator can ask which of them hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..engine import dtypes, ops
from ..engine.language.externs import EXTERNS
from ..engine.language.syntax import Formula, Function, InRange, Logic, Number, Operation, Text, TypeName
from ..engine.ops import Op
from ..engine.rewriting import support
from ..engine.rewriting.formulas import op_name, type_name, value_code
from ..engine.rewriting.scope import Binding, Scope, Sort
from ..engine.target import Context
from .atoms import names_in

Values = Mapping[str, object]
"""A node, a tuple of nodes, a number, a type or an operator by each name."""

_FAILS = (support.NoValue, ZeroDivisionError, OverflowError, ValueError)


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of a guard: all of them must hold."""

    names: frozenset[str]
    numbers: tuple[int, ...]  # that it mentions
    types: tuple[dtypes.DType, ...]
    features: tuple[str, ...]  # of the target that it asks for
    widths: bool  # whether it asks for vector widths
    typed: bool  # whether types and numbers of lanes decide it
    run: Callable[[Values, Context], object]

    def holds(self, values: Values, context: Context) -> bool:
        """Whether it is proven; what has no value is not."""
        try:
            return bool(self.run(values, context))
        except _FAILS:
            return False


def condition(formula: Formula, sorts: Mapping[str, Sort]) -> Condition:
    """Compiles one condition. `sorts` tells what each of its names stands for."""
    scope = Scope()
    for name in names_in(formula):
        if name in sorts:
            scope.names[name] = Binding(sorts[name], f'e["{name}"]')
    code = value_code(formula, scope)
    parts = list(_parts(formula))
    functions = {part.name for part in parts if isinstance(part, Function)}
    number = tuple(int(p.value) for p in parts if isinstance(p, Number) and not isinstance(p.value, float))
    texts = tuple(part.value for part in parts if isinstance(part, Text) and "target.has" in functions)
    return Condition(
        names_in(formula),
        number,
        tuple(part.dtype.scalar for part in parts if isinstance(part, TypeName)),
        texts,
        "target.width" in functions,
        not functions - _TYPED and not any(isinstance(part, InRange) for part in parts)
        and bool(functions & {"dtype", "width", "bits"} or any(sorts.get(n) is Sort.TYPE for n in names_in(formula)))
        and not any(sorts.get(name) is Sort.CONST for name in names_in(formula)),
        eval(f"lambda e, ctx: {code}", _globals()),
    )  # fmt: skip


_TYPED = frozenset({"dtype", "width", "bits"})


def _parts(formula: Formula) -> list[object]:
    """The formula and all that it is made of."""
    found: list[object] = []
    stack: list[object] = [formula]
    while stack:
        here = stack.pop()
        found.append(here)
        match here:
            case Operation():
                stack += [*here.args, *here.attrs]
            case Function() | Logic():
                stack += here.args
            case InRange():
                stack += [here.value, here.low, here.high]
    return found


def _globals() -> dict[str, object]:
    """What the code of a formula may name."""
    names: dict[str, object] = {"inside": support.inside, "min": min, "max": max}
    names |= {f"g_{name}": function for name, function in support.GUARD_FUNCTIONS.items()}
    names |= {f"x_{name}": function for name, function in EXTERNS.items()}
    names |= {op_name(op): op for op in ops.OPS.values()}
    names |= {type_name(dtype): dtype for dtype in (*dtypes.DATA_TYPES, dtypes.index)}
    return names


def sort_of(value: object) -> Sort:
    """What a formula may do with a value that a name stands for."""
    if isinstance(value, tuple):
        return Sort.PACK
    if isinstance(value, int):
        return Sort.NUMBER
    return Sort.ARG if isinstance(value, Op) else Sort.NODE
