"""Integer formulas as polynomials: what of a dividend the divisor divides."""

from __future__ import annotations

from collections import Counter

import z3  # type: ignore[import-untyped] # has no types

from .meanings import Expr


def quotient_part(dividend: Expr, divisor: Expr) -> Expr:
    """The polynomial t of the monomials m*divisor in the dividend; the rest of the dividend is left out.

    Of a divisor that is no single product: 0.
    """
    by = _monomials(divisor)
    if len(by) != 1:
        return z3.IntVal(0)
    (unit, factor), parts = by[0], []
    for coefficient, product in _monomials(dividend):
        left = Counter(product)
        left.subtract(factor)
        if coefficient % unit == 0 and all(count >= 0 for count in left.values()):
            parts.append(z3.Product([z3.IntVal(coefficient // unit), *left.elements()]))
    return z3.Sum([z3.IntVal(0), *parts])


def _monomials(formula: Expr) -> list[tuple[int, Counter[Expr]]]:
    """(coefficient, factors) of each monomial of the expanded formula."""
    formula = z3.simplify(formula, som=True)
    found = []
    for part in formula.children() if z3.is_add(formula) else [formula]:
        coefficient, factors = 1, Counter[Expr]()
        for one in _factors(part):
            if z3.is_int_value(one):
                coefficient *= one.as_long()
            else:
                factors[one] += 1
        if coefficient:
            found.append((coefficient, factors))
    return found


def _factors(product: Expr) -> list[Expr]:
    """The factors of a product of products."""
    found, stack = [], [product]
    while stack:
        here = stack.pop()
        if z3.is_mul(here):
            stack.extend(reversed(here.children()))
        else:
            found.append(here)
    return found
