"""exp2, log2 and sin of float32 as straight-line LLVM code, for any number of lanes.

Being arithmetic without calls or branches, they vectorise with the loop that they stand in, and need no library on
the machine that runs them. Each is a reduction of the argument to a short interval, a polynomial there, and a
reconstruction. The coefficients are minimax fits of our own, the errors (before rounding) below 2^-27. Measured over
float32: at most 2 units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from ..engine import ops
from ..engine.dtypes import float32, round_float
from ..engine.ops import Op
from .llvm_text import Builder, float_literal, overload, splat, widened

# 2^f - 1 on [-1/2, 1/2], by powers of f from the first
_EXP2 = (
    0.6931471824645996, 0.24022647738456726, 0.05550359562039375,
    0.00961849931627512, 0.0013390970416367054, 0.00015329310554079711,
)  # fmt: skip

# (ln(1 + t) - t + t^2 / 2) / t^3 on [sqrt(1/2) - 1, sqrt(2) - 1], by powers of t from the 0th
_LOG = (
    0.3333331048488617, -0.24999986588954926, 0.20002223551273346, -0.16669249534606934, 0.14218716323375702,
    -0.12384402006864548, 0.11872619390487671, -0.11789370328187943, 0.06915612518787384,
)  # fmt: skip

# (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 on [-pi/4, pi/4], by powers of r^2
_SIN = (-0.16666655242443085, 0.008332191966474056, -0.00019518790941219777)
_COS = (0.04166664555668831, -0.00138873013202101, 2.4430661142105237e-05)

_LOG2E_EXCESS = 0.44269504088896340736  # log2(e) - 1

_SQRT_HALF_BITS = 0x3F3504F3
_MANTISSA = 23
_BIAS = 127


def call(b: Builder, op: Op, lanes: int, x: str) -> str:
    """exp2, log2 or sin of a float32 value of so many lanes; defines the function where it is new."""
    kind = widened("float", lanes)
    name = f"{op.name}.{overload('float', lanes)}"
    if name not in b.definitions:
        inner = Lanes(lanes)
        result = _BODIES[op](inner)
        b.definitions[name] = (
            f"define internal {kind} @{name}({kind} %x) alwaysinline {{\n{inner.b.body()}\n  ret {kind} {result}\n}}"
        )
        b.declarations |= inner.b.declarations
        if op is ops.SIN:
            b.definitions["quarter_turns"] = _table_text()
    return b.call_defined(name, kind, (kind, x))


class Lanes:
    """Arithmetic on values of one number of lanes, float32 where nothing else is said."""

    def __init__(self, lanes: int) -> None:
        self.b, self.lanes = Builder(), lanes
        self.float, self.double = widened("float", lanes), widened("double", lanes)
        self.int, self.long, self.flag = (widened("i32", lanes), widened("i64", lanes), widened("i1", lanes))

    def number(self, value: float, scalar: str = "float") -> str:
        """A constant of type float or double."""
        return splat(scalar, float_literal(round_float(value, float32) if scalar == "float" else value), self.lanes)

    def integer(self, value: int, scalar: str = "i32") -> str:
        return splat(scalar, str(value), self.lanes)

    def binary(self, instruction: str, a: str, c: str, kind: str | None = None) -> str:
        return self.b.emit(f"{instruction} {kind or self.float} {a}, {c}")

    def convert(self, instruction: str, x: str, old: str, new: str) -> str:
        return self.b.emit(f"{instruction} {old} {x} to {new}")

    def select(self, condition: str, a: str, c: str, kind: str | None = None) -> str:
        kind = kind or self.float
        return self.b.emit(f"select {self.flag} {condition}, {kind} {a}, {kind} {c}")

    def intrinsic(self, name: str, *operands: str, scalar: str = "float") -> str:
        kind = widened(scalar, self.lanes)
        return self.b.call(f"llvm.{name}.{overload(scalar, self.lanes)}", kind, *((kind, x) for x in operands))

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Horner's scheme; a multiplication and an addition may be fused, which only gains accuracy."""
        result = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.intrinsic("fmuladd", result, x, self.number(coefficient))
        return result

    def to_integer(self, rounded: str, old: str) -> str:
        """An integral float or double as i32; any number for NaN and infinities."""
        return self.b.emit(f"freeze {self.int} {self.convert('fptosi', rounded, old, self.int)}")


def _exp2(m: Lanes) -> str:
    """2^x = 2^n * 2^f, n the integer nearest to x. The factor 2^n is applied in two halves, so that each is a normal
    number and the product rounds once, also where it is subnormal.
    """
    above = m.binary("fcmp ogt", "%x", m.number(129.0))
    x = m.select(above, m.number(129.0), "%x")
    below = m.binary("fcmp olt", x, m.number(-151.0))
    x = m.select(below, m.number(-151.0), x)
    whole = m.intrinsic("rint", x)
    f = m.binary("fsub", x, whole)
    power = m.intrinsic("fmuladd", m.polynomial(f, _EXP2), f, m.number(1.0))
    n = m.to_integer(whole, m.float)
    half = m.binary("ashr", n, m.integer(1), m.int)
    rest = m.binary("sub", n, half, m.int)
    return m.binary("fmul", m.binary("fmul", power, _power_of_two(m, half)), _power_of_two(m, rest))


def _power_of_two(m: Lanes, n: str) -> str:
    """2^n for n in the range of normal exponents."""
    biased = m.binary("add", n, m.integer(_BIAS), m.int)
    return m.convert("bitcast", m.binary("shl", biased, m.integer(_MANTISSA), m.int), m.int, m.float)


def _log2(m: Lanes) -> str:
    """log2(x) = e + log2(1 + t) with 1 + t between sqrt(1/2) and sqrt(2), so that nothing cancels near x = 1.

    A subnormal x is scaled by 2^23 first. t * log2(e) is added up as t + t * (log2(e) - 1), the small parts first.
    """
    small = m.binary("fcmp olt", "%x", m.number(2.0**-126))
    x = m.select(small, m.binary("fmul", "%x", m.number(2.0**_MANTISSA)), "%x")
    bits = m.convert("bitcast", x, m.float, m.int)
    above = m.binary("sub", bits, m.integer(_SQRT_HALF_BITS), m.int)
    exponent = m.binary("ashr", above, m.integer(_MANTISSA), m.int)
    mantissa = m.binary("sub", bits, m.binary("shl", exponent, m.integer(_MANTISSA), m.int), m.int)
    t = m.binary("fadd", m.convert("bitcast", mantissa, m.int, m.float), m.number(-1.0))
    scaled = m.select(small, m.integer(_MANTISSA), m.integer(0), m.int)
    e = m.convert("sitofp", m.binary("sub", exponent, scaled, m.int), m.int, m.float)
    square = m.binary("fmul", t, t)
    cubic = m.binary("fmul", m.binary("fmul", square, t), m.polynomial(t, _LOG))
    y = m.intrinsic("fmuladd", square, m.number(-0.5), cubic)  # ln(1 + t) - t
    low = m.binary("fmul", t, m.number(_LOG2E_EXCESS))
    low = m.intrinsic("fmuladd", y, m.number(_LOG2E_EXCESS), low)
    result = m.binary("fadd", m.binary("fadd", m.binary("fadd", low, y), t), e)
    return _log2_edges(m, result)


def _log2_edges(m: Lanes, result: str) -> str:
    infinite = m.binary("fcmp oeq", "%x", m.number(math.inf))
    result = m.select(infinite, m.number(math.inf), result)
    zero = m.binary("fcmp oeq", "%x", m.number(0.0))
    result = m.select(zero, m.number(-math.inf), result)
    negative = m.binary("fcmp ult", "%x", m.number(0.0))  # or NaN
    return m.select(negative, m.number(math.nan), result)


def _sin(m: Lanes) -> str:
    """|x| is reduced to r in about [-pi/4, pi/4] and the number n of quarter turns; odd n take the cosine."""
    size = m.intrinsic("fabs", "%x")
    r, n = _quarter_turns(m, size)
    z = m.binary("fmul", r, r)
    cubic = m.binary("fmul", z, r)
    sine = m.intrinsic("fmuladd", m.polynomial(z, _SIN), cubic, r)
    flat = m.intrinsic("fmuladd", z, m.number(-0.5), m.number(1.0))
    cosine = m.intrinsic("fmuladd", m.polynomial(z, _COS), m.binary("fmul", z, z), flat)
    odd = m.binary("icmp ne", m.binary("and", n, m.integer(1), m.int), m.integer(0), m.int)
    bits = m.convert("bitcast", m.select(odd, cosine, sine), m.float, m.int)
    half_turn = m.binary("shl", m.binary("and", n, m.integer(2), m.int), m.integer(30), m.int)
    sign = m.binary("and", m.convert("bitcast", "%x", m.float, m.int), m.integer(-(1 << 31)), m.int)
    bits = m.binary("xor", bits, m.binary("xor", half_turn, sign, m.int), m.int)
    return m.convert("bitcast", bits, m.int, m.float)


_FIRST_EXPONENT = _BIAS  # smaller numbers share the row of [1, 2)


def _quarter_turns(m: Lanes, size: str) -> tuple[str, str]:
    """(r as float32, n as i32) with size = (n + 4k) * pi/2 + r.

    With `size` = M * 2^s, M of 24 bits: the table holds 2/pi * 2^s without its multiples of 4, as the sum of a double
    of 29 bits, whose product with M is exact, and another double. So the fraction is right to 2^-52 of itself or
    2^-56, whichever is more, however large the number is.
    """
    exponent = m.binary("lshr", m.convert("bitcast", size, m.float, m.int), m.integer(_MANTISSA), m.int)
    row = m.intrinsic("smax", m.binary("sub", exponent, m.integer(_FIRST_EXPONENT), m.int), m.integer(0), scalar="i32")
    wide_row = m.convert("zext", row, m.int, m.long)
    scale_exponent = m.binary("sub", m.integer(1023 + _MANTISSA, "i64"), wide_row, m.long)
    scale = m.binary("shl", scale_exponent, m.integer(52, "i64"), m.long)
    scale = m.convert("bitcast", scale, m.long, m.double)
    mantissa = m.binary("fmul", m.convert("fpext", size, m.float, m.double), scale, m.double)
    high = m.binary("fmul", mantissa, _gather(m, row, 0), m.double)
    low = m.binary("fmul", mantissa, _gather(m, row, 1), m.double)
    n = m.intrinsic("rint", m.binary("fadd", high, low, m.double), scalar="double")
    fraction = m.binary("fadd", m.binary("fsub", high, n, m.double), low, m.double)
    r = m.binary("fmul", fraction, m.number(math.pi / 2, "double"), m.double)
    return m.convert("fptrunc", r, m.double, m.float), m.to_integer(n, m.double)


def _gather(m: Lanes, row: str, column: int) -> str:
    """The table's entry for each lane's row."""
    result = "poison"
    for lane in range(m.lanes):
        number = row if m.lanes == 1 else m.b.emit(f"extractelement {m.int} {row}, i32 {lane}")
        place = m.b.emit(f"getelementptr inbounds [2 x double], ptr @quarter_turns, i32 {number}, i32 {column}")
        value = m.b.emit(f"load double, ptr {place}, align 8")
        if m.lanes == 1:
            return value
        result = m.b.emit(f"insertelement {m.double} {result}, double {value}, i32 {lane}")
    return result


def _table_text() -> str:
    rows = quarter_turns()
    lines = ",\n".join(
        f"  [2 x double] [double {float_literal(high)}, double {float_literal(low)}]" for high, low in rows
    )
    return f"@quarter_turns = internal unnamed_addr constant [{len(rows)} x [2 x double]] [\n{lines}\n]"


def quarter_turns() -> list[tuple[float, float]]:
    """The table of `_quarter_turns`: for each exponent from 127 to 255 (infinity and NaN: unused)."""
    two_over_pi = 2 / _pi()
    rows = []
    for exponent in range(_FIRST_EXPONENT, 256):
        value = two_over_pi * Fraction(2) ** (exponent - _BIAS - _MANTISSA) % 4
        step = Fraction(2) ** (math.frexp(float(value))[1] - 29)
        high = value // step * step
        rows.append((float(high), float(value - high)))
    return rows


def _pi() -> Fraction:
    """pi to 320 bits, by Machin's formula: 16 atan(1/5) - 4 atan(1/239)."""
    one = 1 << 340

    def arctangent(inverse: int) -> int:
        term, total, k = one // inverse, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= inverse * inverse
            k += 2
        return total

    return Fraction(16 * arctangent(5) - 4 * arctangent(239), one)


_BODIES: dict[Op, Callable[[Lanes], str]] = {ops.EXP2: _exp2, ops.LOG2: _log2, ops.SIN: _sin}
