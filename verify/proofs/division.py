"""Floor division of mathematical integers, in the encodings among which a proof chooses.

*Quotients*: for each dividend a and divisor b a fresh quotient q, of which a - q*b lies between 0 and b; products that
the solver's nonlinear arithmetic understands. *Native*: the solver's own division, which is Euclid's,
with the sign mended. A divisor that is a number is always native: that is linear.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import z3  # type: ignore[import-untyped] # has no types

from .meanings import Expr


@dataclass(frozen=True, slots=True)
class Quotient:
    """One floor division."""

    dividend: Expr
    divisor: Expr
    quotient: Expr
    remainder: Expr


@dataclass(slots=True)
class Division:
    """Quotients and remainders that were asked for, and the axioms about the fresh ones."""

    native: bool = False
    axioms: list[Expr] = field(default_factory=list)
    known: dict[tuple[int, int], Quotient] = field(default_factory=dict)  # by the expressions' numbers

    def floor(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """The quotient rounded to minus infinity, and the remainder, which has the divisor's sign."""
        key = (a.get_id(), b.get_id())
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Quotient(a, b, *self._floor(a, b))
        return found.quotient, found.remainder

    def exact(self, quotient: Expr, divisor: Expr) -> Expr:
        """quotient * divisor, whose division by the divisor gives the quotient back."""
        dividend = quotient * divisor
        key = (dividend.get_id(), divisor.get_id())
        self.known.setdefault(key, Quotient(dividend, divisor, quotient, z3.IntVal(0)))
        return dividend

    def trunc(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """The quotient rounded to zero, and the remainder, which has the dividend's sign."""
        size, _ = self.floor(_absolute(a), _absolute(b))
        quotient = z3.If((a < 0) == (b < 0), size, -size)
        return quotient, a - quotient * b

    def _floor(self, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        b = z3.simplify(b) if not z3.is_int_value(b) else b
        if z3.is_int_value(b):
            return _by_number(a, b.as_long())
        if self.native:
            return z3.If(b > 0, a / b, (-a) / (-b)), z3.If(b > 0, a % b, -((-a) % (-b)))
        number = len(self.known)
        q = z3.Int(f"q!{number}")
        r = a - q * b
        self.axioms.append(z3.Implies(b > 0, z3.And(0 <= r, r < b)))
        self.axioms.append(z3.Implies(b < 0, z3.And(b < r, r <= 0)))
        return q, r


def _by_number(a: Expr, b: int) -> tuple[Expr, Expr]:
    if b > 0:
        return a / b, a % b
    return (-a) / (-b if b else 1), -((-a) % (-b if b else 1))


def _absolute(a: Expr) -> Expr:
    return z3.If(a < 0, -a, a)
