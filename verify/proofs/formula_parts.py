"""What a formula is made of: its functions, its names, the conditions that all must hold."""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.language.syntax import Formula, Function, InRange, Logic, Operation


def parts(formula: Formula) -> Iterator[Formula]:
    """The formula and all formulas in it, from the outside in, left to right."""
    stack = [formula]
    while stack:
        here = stack.pop()
        yield here
        match here:
            case Operation() | Function() | Logic():
                stack.extend(reversed(here.args))
            case InRange():
                stack.extend((here.high, here.low, here.value))


def functions(formula: Formula) -> Iterator[Function]:
    """Every call of a function in a formula."""
    return (part for part in parts(formula) if isinstance(part, Function))


def conjuncts(formula: Formula) -> Iterator[Formula]:
    """The conditions that must all hold for the formula to hold."""
    stack = [formula]
    while stack:
        here = stack.pop()
        if isinstance(here, Logic) and here.word == "and":
            stack.extend(reversed(here.args))
        else:
            yield here
