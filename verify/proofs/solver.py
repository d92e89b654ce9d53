"""Asks the solver: a text in, an answer out, with a limit of resources rather than of time, so that it is repeatable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import z3  # type: ignore[import-untyped] # has no types

from ...engine.dtypes import DType, Scalar, int64
from .meanings import Expr

LIMIT = 600_000


class Outcome(Enum):
    NONE = "there is no such case"
    FOUND = "there is one"
    UNKNOWN = "the limit was reached"


@dataclass(frozen=True, slots=True)
class Case:
    """Values of leaves, elements and sizes of buffers, as a model gives them."""

    values: Mapping[str, Scalar] = field(default_factory=dict)
    memory: Mapping[str, Mapping[int, Scalar]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def ask(
    text: str, leaves: Mapping[str, DType], *, as_integers: bool = False, limit: int = LIMIT
) -> tuple[Outcome, Case]:
    """Whether the formulas of the text can hold together, and a case in which they do.

    `as_integers` lets the solver treat bit-vectors as integers modulo a power of two.
    """
    context = z3.Context()
    solver = z3.SimpleSolver(ctx=context) if as_integers else z3.Solver(ctx=context)
    solver.set("rlimit", limit)
    solver.set("random_seed", 0)
    if as_integers:
        solver.set("smt.bv.solver", 2)
    solver.from_string(text)
    try:
        result = solver.check()
    except z3.Z3Exception:
        return Outcome.UNKNOWN, Case()
    if result == z3.unsat:
        return Outcome.NONE, Case()
    if result != z3.sat:
        return Outcome.UNKNOWN, Case()
    return Outcome.FOUND, _case(solver.model(), leaves)


def _case(model: z3.ModelRef, leaves: Mapping[str, DType]) -> Case:
    values: dict[str, Scalar] = {}
    memory: dict[str, dict[int, Scalar]] = {}
    sizes: dict[str, int] = {}
    for declared in model.decls():
        name, value = declared.name(), model[declared]
        if name in leaves:
            scalar = scalar_of(value, leaves[name])
            if scalar is not None:
                values[name] = scalar
        elif name.startswith("size!"):
            sizes[name[5:]] = value.as_long()
        elif name.startswith("memory!"):
            memory[name[7:]] = _elements(value)
    return Case(values, memory, sizes)


def scalar_of(value: Expr, dtype: DType) -> Scalar | None:
    """A model's value of a scalar type as a Python value; None where it is none (an algebraic number)."""
    if z3.is_true(value) or z3.is_false(value):
        return bool(z3.is_true(value))
    if z3.is_bv_value(value):
        number = value.as_signed_long() if dtype.kind != "uint" else value.as_long()
        return dtype.canonical(number)
    if z3.is_int_value(value):
        return int(value.as_long())
    if z3.is_rational_value(value):
        return float(value.as_fraction())
    return _float(value) if z3.is_fp_value(value) else None


def _float(value: z3.FPNumRef) -> float:
    if value.isNaN():
        return float("nan")
    if value.isInf():
        return float("-inf") if value.isNegative() else float("inf")
    exponent_bits, significant = value.ebits(), value.sbits()
    exponent = value.exponent_as_long(True)
    fraction = value.significand_as_long()
    bias = (1 << (exponent_bits - 1)) - 1
    magnitude = fraction if exponent == 0 else fraction + (1 << (significant - 1))
    scale = max(exponent, 1) - bias - (significant - 1)
    size = math.ldexp(magnitude, scale)
    return -size if value.isNegative() else size


def _elements(value: Expr) -> dict[int, Scalar]:
    """The elements of an array that is written as stores over a constant; -1: all others."""
    found: dict[int, Scalar] = {}
    while z3.is_store(value):
        at, element = value.arg(1).as_long(), _any_scalar(value.arg(2))
        if element is not None:
            found.setdefault(at, element)
        value = value.arg(0)
    if z3.is_K(value):
        element = _any_scalar(value.arg(0))
        if element is not None:
            found[-1] = element
    return found


def _any_scalar(value: Expr) -> Scalar | None:
    return scalar_of(value, int64)


MOST_VALUES = 130


def all_values(premise: str, name: str, dtype: DType) -> list[int] | None:
    """Every value of a leaf with which the premise can hold, if these are few; else None."""
    solver = z3.Solver(ctx=z3.Context())
    solver.set("rlimit", LIMIT)
    solver.from_string(premise)
    found: list[int] = []
    while len(found) <= MOST_VALUES:
        result = solver.check()
        if result == z3.unsat:
            return found
        model = solver.model() if result == z3.sat else None
        declared = next((one for one in model.decls() if one.name() == name), None) if model is not None else None
        value = scalar_of(model[declared], dtype) if model is not None and declared is not None else None
        if declared is None or not isinstance(value, int):
            return None
        found.append(value)
        solver.add(declared() != value)
    return None
