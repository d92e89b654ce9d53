"""One suite for every device: small kernels in linear form, compared with the exact meaning of each operator.

What a device's target does not claim is not asked of it: the rules lower that before rendering. A device that is not
here is skipped with its reason; one named in RULEWRIGHT_REQUIRE_DEVICES must be here.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import evaluate as ev
from rulewright.engine import ops
from rulewright.engine.dtypes import DType, Scalar
from rulewright.engine.errors import GraphError, RenderError
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.ops import AxisKind, Op, RangeArg, SpecialArg, ThreadKind, VarArg
from rulewright.engine.target import Target
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.runtimes import devices
from rulewright.runtimes.base import Array, Runtime

REQUIRED = [name for name in os.environ.get("RULEWRIGHT_REQUIRE_DEVICES", "").split(",") if name]


@pytest.fixture(scope="module", params=list(devices.DEVICES))
def device(request: pytest.FixtureRequest) -> Runtime:
    status = devices.probe(request.param)
    if not status.present:
        if request.param in REQUIRED:
            pytest.fail(f"device {request.param} is required, but: {status.reason}")
        pytest.skip(f"device {request.param} is absent: {status.reason}")
    return devices.get(request.param)


def test_required_devices_exist() -> None:
    assert [name for name in REQUIRED if name not in devices.DEVICES] == []


# --- writing kernels -------------------------------------------------------------------------------------------------


class Writer:
    """Writes the nodes of a kernel in the order in which they run."""

    def __init__(self) -> None:
        self.nodes: list[UOp] = []
        self.params: list[BufferParam] = []
        self.variables: list[VarArg] = []
        self.axes = itertools.count()

    def put(self, op: Op, *src: UOp, dtype: DType | None = None, arg: object = None) -> UOp:
        return self.append(make(op, *src, dtype=dtype, arg=arg))

    def append(self, node: UOp) -> UOp:
        if node not in self.nodes:
            self.nodes.append(node)
        return node

    def const(self, dtype: DType, value: Scalar) -> UOp:
        return self.append(const(dtype, value))

    def buffer(self, dtype: DType, size: int | None, written: bool = False) -> UOp:
        self.params.append(BufferParam(len(self.params), dtype, size, written))
        return self.append(buffer(len(self.params) - 1, dtype, size))

    def variable(self, name: str, low: int, high: int) -> UOp:
        self.variables.append(VarArg(name, low, high))
        return self.put(ops.VAR, dtype=d.int32, arg=VarArg(name, low, high))

    def range(self, end: int | UOp, kind: AxisKind = AxisKind.LOOP) -> UOp:
        """A loop variable that is not opened yet: an accumulator in front of its loop names it."""
        bound = self.const(d.int32, end) if isinstance(end, int) else end
        return make(ops.RANGE, bound, arg=RangeArg(next(self.axes), kind))

    @contextmanager
    def loop(self, end: int | UOp) -> Iterator[UOp]:
        counter = end if isinstance(end, UOp) and end.op is ops.RANGE else self.range(end)
        yield self.append(counter)
        self.put(ops.ENDRANGE, counter)

    def at(self, counter: UOp, stride: int = 1, offset: int | UOp = 0) -> UOp:
        """counter * stride + offset."""
        index = counter if stride == 1 else self.put(ops.MUL, counter, self.const(d.int32, stride))
        if isinstance(offset, int):
            return index if offset == 0 else self.put(ops.ADD, index, self.const(d.int32, offset))
        return self.put(ops.ADD, index, offset)

    def accumulator(self, op: Op, start: UOp, *ranges: UOp) -> UOp:
        return self.put(ops.DEFINE_ACC, start, *ranges, arg=make(ops.REDUCE, start, *ranges, arg=op))

    def kernel(self, name: str = "test", threads: int = 1, group: int = 0, local: int = 0) -> LinearKernel:
        variables = tuple(sorted(self.variables))
        groups = (const(d.int32, group),) if group else ()
        locals_ = (local,) if local else ()
        return LinearKernel(name, tuple(self.nodes), tuple(self.params), variables, groups, locals_, threads)


def run(device: Runtime, kernel: LinearKernel, /, *buffers: Array, **variables: int) -> None:
    device.build(kernel, device.renderer.render(kernel))(buffers, variables)


# --- values ----------------------------------------------------------------------------------------------------------

_NUMPY = {"bool": np.bool_, "bfloat16": np.uint16}


def array(dtype: DType, values: Sequence[Scalar]) -> Array:
    """The values as a buffer holds them; bfloat16 by its bits."""
    if dtype is d.bfloat16:
        bits = [int.from_bytes(np.float32(v).tobytes()[2:], "little") for v in values]
        return np.array(bits, dtype=np.uint16)
    return np.array(values, dtype=_NUMPY.get(dtype.name, dtype.name))


def scalars(dtype: DType, values: Array) -> list[Scalar]:
    if dtype is d.bfloat16:
        return [float(v) for v in (values.astype(np.uint32) << 16).view(np.float32)]
    return [v.item() for v in values]


def empty(dtype: DType, size: int) -> Array:
    """A buffer full of something that no test expects."""
    return np.frombuffer(b"\x01" * (array(dtype, [0]).itemsize * size), dtype=array(dtype, [0]).dtype).copy()


def edges(dtype: DType) -> list[Scalar]:
    """The values where operators have their corners."""
    if dtype.kind == "bool":
        return [False, True]
    if dtype.is_int:
        low, high = int(dtype.lowest), int(dtype.highest)
        whole = [0, 1, 2, 3, 5, 7, 13, high, high - 1, high // 2 + 1, low, low + 1, *([-1, -2, -3, -7] * (low < 0))]
        return sorted({dtype.canonical(v) for v in whole})
    big = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
    picks = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 0.1, 100.0, 1e-5, 1e-7, math.pi, 1000.5, -1e4, 6e4,
             2.0**-24, 2.0**-149, 2.0**-126, big.get(dtype.name, 1.7e308), math.inf, -math.inf, math.nan]  # fmt: skip
    return [dtype.canonical(v) for v in picks]


def supports(target: Target, op: Op, dtype: DType, lanes: int = 1) -> bool:
    """Whether the target claims an elementwise operator on operands of this type."""
    if not holds(target, dtype):
        return False
    needs = set()
    if dtype is d.float16 or dtype is d.bfloat16:
        needs.add({"float16": "half"}.get(dtype.name, dtype.name))
    if op in (ops.MAX, ops.MIN):
        needs.add("max" if dtype.is_float else "int-max")
    if op in (ops.FLOORDIV, ops.FLOORMOD):
        needs.add("floordiv")
    if op in (ops.FLOOR, ops.CEIL, ops.TRUNC, ops.ROUND):
        needs.add("round")
    if op in (ops.RECIP, ops.MULACC):
        needs.add(op.name)
    if lanes > 1 and op in (ops.EXP2, ops.LOG2, ops.SIN, ops.SQRT, ops.FLOOR, ops.CEIL, ops.TRUNC, ops.ROUND):
        needs.add("math-vector")
    if lanes > 1 and (dtype.kind == "bool" or op in COMPARISONS or op is ops.WHERE):
        needs.add("bool-vector")
    return all(target.has(name) for name in needs)


def holds(target: Target, dtype: DType) -> bool:
    """Whether the target claims to store the type and to convert it."""
    if dtype is d.float16:
        return target.has("half") or target.has("half-storage")
    return dtype not in (d.float64, d.bfloat16) or target.has(dtype.name)


COMPARISONS = (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)

ARITHMETIC = [op for op in ops.ELEMENTWISE if op.evaluate is not None]


def accepts(op: Op, dtype: DType) -> bool:
    """Whether the operator is defined on the type at all."""
    try:
        ops_types = (d.bool_, dtype, dtype) if op is ops.WHERE else (dtype,) * (op.arity or 0)
        op.typing(None, ops_types, None)
    except GraphError:
        return False
    return True


def samples(op: Op, dtype: DType) -> list[tuple[Scalar, ...]]:
    """Operands on which the operator has a defined value: every pair of edges, for three operands a walk over them."""
    values = edges(dtype)
    if op is ops.WHERE:
        rows: list[tuple[Scalar, ...]] = [(c, a, values[-1 - i]) for c in (False, True) for i, a in enumerate(values)]
    elif op.arity == 3:
        rows = [
            (a, b, values[(i * 7 + j * 3) % len(values)]) for i, a in enumerate(values) for j, b in enumerate(values)
        ]
    else:
        rows = list(itertools.product(values, repeat=op.arity or 0))
    if op in (ops.EXP2, ops.LOG2, ops.SIN):
        rows += [(dtype.canonical(v),) for v in function_samples(dtype)]
    assert op.evaluate is not None
    return [row for row in rows if op.evaluate(dtype, *row) is not None]


def function_samples(dtype: DType) -> list[float]:
    """Arguments over the whole range of a type: near 0 and 1, at multiples of pi/2, at each binary exponent."""
    step = [1.0, 1.3, -1.7, 1.9999999]
    powers = [m * 2.0**e for e in range(-140, 128, 3) for m in step]
    return [*powers, *(k * math.pi / 2 for k in range(-9, 40)), *np.linspace(-150, 130, 97).tolist(),
            *(1 + k * 2.0**-23 for k in range(-9, 9)), 1e6, 1e15, 1e22, 8.0e30]  # fmt: skip


def meaning(op: Op, dtype: DType, result: DType, *row: Scalar) -> Scalar:
    """The one value of the operator that semantics.md gives."""
    assert op.evaluate is not None
    value = op.evaluate(dtype, *row)
    assert value is not None
    return result.canonical(value)


def same(op: Op, dtype: DType, result: DType, row: tuple[Scalar, ...], got: Scalar) -> bool:
    """Whether a device's value is one that semantics.md allows."""
    want = meaning(op, dtype, result, *row)
    if op in (ops.EXP2, ops.LOG2, ops.SIN):
        return close(want, got, result)
    if op in (ops.MAX, ops.MIN) and want == got == 0:
        return True
    if op is ops.MULACC and dtype.is_float and ev.same_value(fused(dtype, row), got):
        return True
    return ev.same_value(want, got)


def fused(dtype: DType, row: tuple[Scalar, ...]) -> Scalar:
    """a * b + c rounded once."""
    a, b, c = (float(v) for v in row)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return c if math.isfinite(a) and math.isfinite(b) else dtype.canonical(ev.mulacc(dtype, a, b, c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return dtype.canonical(a * b + c)
    try:
        return dtype.canonical(float(exact))
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def close(want: Scalar, got: Scalar, dtype: DType) -> bool:
    """Within 4 units in the last place."""
    if not math.isfinite(want):
        return ev.same_value(float(want), float(got))
    smallest, bits = {"float16": (-24, 11), "bfloat16": (-133, 8), "float32": (-149, 24), "float64": (-1074, 53)}[
        dtype.scalar.name
    ]
    ulp = math.ldexp(1.0, max(math.frexp(want)[1] - bits, smallest))
    overflow = math.isinf(got) and abs(want) + 4 * ulp >= 2.0 ** {24: 128, 11: 16, 53: 1023}[bits]
    return overflow or (abs(got - want) <= 4 * ulp and math.copysign(1, got) == math.copysign(1, want or got))


def id_of(dtype: DType) -> str:
    return dtype.name


# --- elementwise operators -------------------------------------------------------------------------------------------


def columns(op: Op, dtype: DType, lanes: int) -> tuple[list[tuple[Scalar, ...]], list[DType]]:
    """The samples, padded to whole vectors, and the types of the operands."""
    rows = samples(op, dtype)
    rows += rows[:1] * (-len(rows) % lanes)
    return rows, [d.bool_ if op is ops.WHERE and k == 0 else dtype for k in range(op.arity or 0)]


def check_elementwise(device: Runtime, dtype: DType, lanes: int) -> list[Op]:
    """Runs every operator that the device claims on the type, all in one kernel; returns these."""
    w = Writer()
    tested, arrays, expected = [], [], []
    for op in ARITHMETIC:
        if not accepts(op, dtype) or not supports(device.renderer.target, op, dtype, lanes):
            continue
        rows, types = columns(op, dtype, lanes)
        result = d.bool_ if op in COMPARISONS else dtype
        if not rows or (result is d.bool_ and lanes > 1 and not device.renderer.target.has("bool-vector")):
            continue
        out = w.buffer(result, len(rows), written=True)
        arrays.append(empty(result, len(rows)))
        inputs = [w.buffer(t, len(rows)) for t in types]
        arrays += [array(t, [row[k] for row in rows]) for k, t in enumerate(types)]
        with w.loop(len(rows) // lanes) as i:
            place = w.at(i, lanes)
            operands = [w.put(ops.LOAD, x, place, dtype=t.vec(lanes)) for x, t in zip(inputs, types, strict=True)]
            w.put(ops.STORE, out, place, w.put(op, *operands))
        tested.append(op)
        expected.append((op, rows, result, arrays[-1 - len(types)]))
    if tested:
        run(device, w.kernel(), *arrays)
    wrong = [
        f"{op.name}{row} is {got}, not {op.evaluate and op.evaluate(dtype, *row)}"
        for op, rows, result, out in expected
        for row, got in zip(rows, scalars(result, out), strict=True)
        if not same(op, dtype, result, row, got)
    ]
    assert wrong == []
    return tested


@pytest.mark.parametrize("dtype", d.DATA_TYPES, ids=id_of)
def test_elementwise(device: Runtime, dtype: DType) -> None:
    tested = check_elementwise(device, dtype, 1)
    if holds(device.renderer.target, dtype) and dtype not in (d.float16, d.bfloat16):
        assert {ops.ADD, ops.MUL, ops.NEG, ops.EQ, ops.LT, ops.WHERE} <= set(tested)


@pytest.mark.parametrize("dtype", d.DATA_TYPES, ids=id_of)
def test_elementwise_vectors(device: Runtime, dtype: DType) -> None:
    widths = device.renderer.target.widths
    for lanes in widths if dtype is d.float32 else sorted(extremes(widths)):
        check_elementwise(device, dtype, lanes)


def extremes(widths: tuple[int, ...]) -> set[int]:
    """The widest and the narrowest: compiling for all would take most of the suite's time."""
    return {max(widths), min(widths)} if widths else set()


@pytest.mark.parametrize("source", d.DATA_TYPES, ids=id_of)
def test_casts(device: Runtime, source: DType) -> None:
    target = device.renderer.target
    if not holds(target, source):
        return
    vectors = target.has("cast-vector") and target.has("bool-vector")
    for lanes in (1, *(sorted(extremes(target.widths)) if vectors else ())):
        check_casts(device, source, [t for t in d.DATA_TYPES if holds(target, t)], lanes)


def cast_samples(source: DType, to: DType) -> list[Scalar]:
    """Edges, and for a rounding the neighbourhood of ties in the narrower type."""
    values = list(edges(source))
    if to.is_float and source.kind in ("sint", "uint"):
        values += [v for k in (8, 11, 24, 53, 63) for v in (2**k + 1, 2**k + 3, 2 ** (k + 1) + 2**k + 1, -(2**k) - 1)]
        values += [(2**24 + 1) * 2**k + j for k in (20, 38) for j in (-1, 0, 1)]
        values += [(2**8 + 1) * 2**k + j for k in (20, 40, 53) for j in (-1, 0, 1)]
    if to.is_float and source.is_float:
        ties = [(1 + 2.0**-p) * 2.0**e for p in (8, 9, 11, 12, 24, 25) for e in (0, -14, -20, -126)]
        values += [v * (1 + s * 2.0**-k) for v in ties for k in (23, 40, 52) for s in (-1, 0, 1)]
        values += [65519.99, 65520.0, 2.0**-25, 2.0**-25 * (1 + 2.0**-40), 3.4028235677973366e38, 2.0**-150]
    values = [source.canonical(v) for v in values]
    return [v for v in values if ev.cast(source, v, to) is not None]


def converted(source: DType, value: Scalar, to: DType) -> Scalar:
    result = ev.cast(source, value, to)
    assert result is not None
    return to.canonical(result)


def check_casts(device: Runtime, source: DType, targets: list[DType], lanes: int) -> None:
    w = Writer()
    arrays, expected = [], []
    for to in targets:
        values = cast_samples(source, to)
        values += values[:1] * (-len(values) % lanes)
        out, x = w.buffer(to, len(values), written=True), w.buffer(source, len(values))
        arrays += [empty(to, len(values)), array(source, values)]
        expected.append((to, values, arrays[-2]))
        with w.loop(len(values) // lanes) as i:
            place = w.at(i, lanes)
            loaded = w.put(ops.LOAD, x, place, dtype=source.vec(lanes))
            w.put(ops.STORE, out, place, w.put(ops.CAST, loaded, dtype=to.vec(lanes)))
    run(device, w.kernel(), *arrays)
    wrong = [
        f"cast of {source} {value} to {to} is {got}, not {ev.cast(source, value, to)}"
        for to, values, out in expected
        for value, got in zip(values, scalars(to, out), strict=True)
        if not ev.same_value(converted(source, value, to), got)
    ]
    assert wrong == []


@pytest.mark.parametrize("source", d.DATA_TYPES, ids=id_of)
def test_bitcasts(device: Runtime, source: DType) -> None:
    if not holds(device.renderer.target, source) or source is d.bool_:
        return
    for to in d.DATA_TYPES:
        if to.bits != source.bits or to is d.bool_ or not holds(device.renderer.target, to):
            continue
        values = [v for v in edges(source) if ev.bitcast(source, v, to) is not None]
        w = Writer()
        out, x = w.buffer(to, len(values), written=True), w.buffer(source, len(values))
        with w.loop(len(values)) as i:
            w.put(ops.STORE, out, i, w.put(ops.BITCAST, w.put(ops.LOAD, x, i), dtype=to))
        result = empty(to, len(values))
        run(device, w.kernel(), result, array(source, values))
        for value, got in zip(values, scalars(to, result), strict=True):
            want = ev.bitcast(source, value, to)
            assert want is not None and ev.same_value(want, got), f"{source} {value} as {to}: {got}, not {want}"


def test_constants_of_every_type(device: Runtime) -> None:
    w = Writer()
    types = [t for t in d.DATA_TYPES if holds(device.renderer.target, t)]
    results = [empty(t, len(edges(t))) for t in types]
    for t in types:
        out = w.buffer(t, len(edges(t)), written=True)
        for k, value in enumerate(edges(t)):
            w.put(ops.STORE, out, w.const(d.int32, k), w.const(t, value))
    run(device, w.kernel(), *results)
    for t, result in zip(types, results, strict=True):
        wrong = [(t, a, b) for a, b in zip(edges(t), scalars(t, result), strict=True) if not ev.same_value(a, b)]
        assert wrong == []


@pytest.mark.parametrize("dtype", [d.int8, d.int32, d.int64, d.uint8, d.uint64], ids=id_of)
@pytest.mark.parametrize("op", [ops.TRUNCDIV, ops.TRUNCMOD], ids=repr)
def test_the_untaken_side_of_a_where_does_not_trap(device: Runtime, op: Op, dtype: DType) -> None:
    rows = list(itertools.product(edges(dtype), repeat=2))
    w = Writer()
    out, a, b = w.buffer(dtype, len(rows), written=True), w.buffer(dtype, len(rows)), w.buffer(dtype, len(rows))
    with w.loop(len(rows)) as i:
        divisor = w.put(ops.LOAD, b, i)
        quotient = w.put(op, w.put(ops.LOAD, a, i), divisor)
        defined = w.put(ops.NE, divisor, w.const(dtype, 0))
        w.put(ops.STORE, out, i, w.put(ops.WHERE, defined, quotient, w.const(dtype, 77)))
    result = empty(dtype, len(rows))
    run(device, w.kernel(), result, array(dtype, [r[0] for r in rows]), array(dtype, [r[1] for r in rows]))
    assert op.evaluate is not None
    values = [op.evaluate(dtype, *row) for row in rows]
    assert scalars(dtype, result) == [77 if v is None else dtype.canonical(v) for v in values]


# --- whole expressions -----------------------------------------------------------------------------------------------

STEPS = 24


class Expressions:
    """Random expressions over a loop counter, a variable, loads and constants, all of whose values are defined.

    Bounded operands meet unbounded ones here, so a renderer that infers too much from intervals is found out.
    """

    def __init__(self, w: Writer, seed: int, target: Target) -> None:
        self.w, self.random, self.target = w, random.Random(seed), target
        self.pool: dict[DType, list[UOp]] = {}

    def pick(self, dtype: DType) -> UOp:
        if self.random.random() < 0.25:
            return self.w.const(dtype, self.random.choice(edges(dtype)))
        return self.random.choice(self.pool[dtype])

    def grow(self) -> None:
        """Adds one node to the pool."""
        dtype = self.random.choice(list(self.pool))
        kind = self.random.choice(["binary", "binary", "binary", "divide", "shift", "compare", "where", "cast"])
        node = getattr(self, kind)(dtype)
        self.pool[node.dtype].append(node)

    def binary(self, dtype: DType) -> UOp:
        choices = [ops.ADD, ops.MUL, ops.SUB, *(() if dtype.is_float else (ops.AND, ops.OR, ops.XOR))]
        if not dtype.is_float and self.target.has("int-max"):
            choices += [ops.MAX, ops.MIN]
        op = self.random.choice([op for op in choices if dtype.kind != "bool" or op is not ops.SUB])
        return self.w.put(op, self.pick(dtype), self.pick(dtype))

    def divide(self, dtype: DType) -> UOp:
        if not dtype.is_int:
            return self.w.put(ops.DIV if dtype.is_float else ops.NOT, *[self.pick(dtype)] * (1 + dtype.is_float))
        divisor = self.pick(dtype)
        zero = self.w.put(ops.EQ, divisor, self.w.const(dtype, 0))
        safe = self.w.put(ops.WHERE, zero, self.w.const(dtype, 3), divisor)
        return self.w.put(self.random.choice([ops.TRUNCDIV, ops.TRUNCMOD]), self.pick(dtype), safe)

    def shift(self, dtype: DType) -> UOp:
        if not dtype.is_int:
            return self.w.put(ops.NEG, self.pick(dtype))
        amount = self.w.put(ops.AND, self.pick(dtype), self.w.const(dtype, self.random.choice([1, 7, dtype.bits - 1])))
        return self.w.put(self.random.choice([ops.SHL, ops.SHR]), self.pick(dtype), amount)

    def compare(self, dtype: DType) -> UOp:
        return self.w.put(self.random.choice(COMPARISONS), self.pick(dtype), self.pick(dtype))

    def where(self, dtype: DType) -> UOp:
        return self.w.put(ops.WHERE, self.pick(d.bool_), self.pick(dtype), self.pick(dtype))

    def cast(self, dtype: DType) -> UOp:
        """From anything but a float to an integer, which may be undefined."""
        sources = [t for t in self.pool if not t.is_float or not dtype.is_int]
        return self.w.put(ops.CAST, self.pick(self.random.choice(sources)), dtype=dtype)


def value_of(nodes: Sequence[UOp], known: dict[UOp, Scalar]) -> dict[UOp, Scalar]:
    """Every node's value, by the exact meaning of its operator."""
    values = dict(known)
    for node in nodes:
        if node in values or not (node.op.elementwise or node.op is ops.CONST):
            continue
        if node.op is ops.CONST:
            assert isinstance(node.arg, bool | int | float)
            values[node] = node.arg
            continue
        operands = [values[s] for s in node.src]
        if node.op is ops.CAST:
            values[node] = converted(node.src[0].dtype, operands[0], node.dtype)
        else:
            values[node] = meaning(node.op, node.src[-1].dtype, node.dtype, *operands)
    return values


@pytest.mark.parametrize("seed", range(8))
def test_random_expressions(device: Runtime, seed: int) -> None:
    w = Writer()
    types = [t for t in d.DATA_TYPES if t.bits != 16 or t.is_int]
    types = [t for t in types if holds(device.renderer.target, t)]
    outs = {t: w.buffer(t, STEPS, written=True) for t in types}
    ins = {t: w.buffer(t, STEPS) for t in types}
    n = w.variable("n", 1, 50)
    made = Expressions(w, seed, device.renderer.target)
    with w.loop(STEPS) as i:
        loads = {t: w.put(ops.LOAD, ins[t], i) for t in types}
        made.pool = {t: [loads[t]] for t in types}
        made.pool[d.int32] += [i, n, i, n]
        for _ in range(150):
            made.grow()
        for t in types:
            w.put(ops.STORE, outs[t], i, made.pool[t][-1])
    columns = {t: [made.random.choice(edges(t)) for _ in range(STEPS)] for t in types}
    results = {t: empty(t, STEPS) for t in types}
    run(device, w.kernel(), *results.values(), *(array(t, columns[t]) for t in types), n=17)
    for k in range(STEPS):
        values = value_of(w.nodes, {i: k, n: 17, **{loads[t]: columns[t][k] for t in types}})
        for t in types:
            last, got = made.pool[t][-1], scalars(t, results[t])[k]
            assert ev.same_value(values[last], got), f"step {k}: {last.op} of {t} is {got}, not {values[last]}"


# --- loops and accumulators ------------------------------------------------------------------------------------------


def test_nested_loops_transpose(device: Runtime) -> None:
    w = Writer()
    out, x = w.buffer(d.float32, 15, written=True), w.buffer(d.float32, 15)
    with w.loop(3) as i, w.loop(5) as j:
        w.put(ops.STORE, out, w.at(j, 3, i), w.put(ops.LOAD, x, w.at(i, 5, j)))
    source, result = np.arange(15, dtype=np.float32), empty(d.float32, 15)
    run(device, w.kernel(), result, source)
    assert result.tolist() == source.reshape(3, 5).T.ravel().tolist()


@pytest.mark.parametrize("op", ops.REDUCERS, ids=repr)
@pytest.mark.parametrize("dtype", [d.float32, d.int32, d.uint8, d.bool_, d.int64], ids=id_of)
def test_reduction(device: Runtime, op: Op, dtype: DType) -> None:
    """Rows of 7, each with an accumulator of its own that starts anew, used after its loop."""
    if not supports(device.renderer.target, op, dtype):
        return
    w = Writer()
    out, x = w.buffer(dtype, 3, written=True), w.buffer(dtype, 21)
    start = w.const(dtype, ops.identity_of(op, dtype))
    with w.loop(3) as i:
        r = w.range(7, AxisKind.REDUCE)
        accumulator = w.accumulator(op, start, r)
        with w.loop(r):
            value = w.put(ops.LOAD, x, w.at(i, 7, r))
            final = w.put(ops.PHI, accumulator, w.put(op, accumulator, value))
        w.put(ops.STORE, out, i, final)
    rows: list[list[Scalar]] = [
        [dtype.canonical((i * 5 + j * 3) % 4 - (dtype.lowest < 0)) for j in range(7)] for i in range(3)
    ]
    if dtype.kind == "bool":
        rows = [[False] * 7, [*[False] * 6, True], [True] * 7]
    result = empty(dtype, 3)
    run(device, w.kernel(), result, array(dtype, [v for row in rows for v in row]))
    for row, got in zip(rows, scalars(dtype, result), strict=True):
        want = ops.identity_of(op, dtype)
        for element in row:
            want = meaning(op, dtype, dtype, want, element)
        assert got == want


def test_accumulator_over_two_loops_and_an_empty_one(device: Runtime) -> None:
    w = Writer()
    out, x = w.buffer(d.int32, 2, written=True), w.buffer(d.int32, 12)
    zero = w.const(d.int32, 0)
    r, s = w.range(4, AxisKind.REDUCE), w.range(3, AxisKind.REDUCE)
    accumulator = w.accumulator(ops.ADD, zero, r, s)
    with w.loop(r), w.loop(s):
        value = w.put(ops.LOAD, x, w.at(r, 3, s))
        total = w.put(ops.PHI, accumulator, w.put(ops.ADD, accumulator, value))
    w.put(ops.STORE, out, zero, total)
    n = w.variable("n", 0, 12)
    e = w.range(n, AxisKind.REDUCE)
    start = w.const(d.int32, 5)
    accumulator = w.accumulator(ops.MUL, start, e)
    with w.loop(e):
        product = w.put(ops.PHI, accumulator, w.put(ops.MUL, accumulator, w.put(ops.LOAD, x, e)))
    w.put(ops.STORE, out, w.const(d.int32, 1), product)
    result, source = empty(d.int32, 2), np.arange(1, 13, dtype=np.int32)
    run(device, w.kernel(), result, source, n=0)
    assert result.tolist() == [78, 5]
    run(device, w.kernel(), result, source, n=4)
    assert result.tolist() == [78, 120]


def test_two_accumulators_in_one_loop_see_each_others_old_values(device: Runtime) -> None:
    """a, b = a + 1, b + a: the second reads the first as it was before this step's assignment."""
    w = Writer()
    out, one, zero = w.buffer(d.int32, 2, written=True), w.const(d.int32, 1), w.const(d.int32, 0)
    r = w.range(5, AxisKind.REDUCE)
    a, b = w.accumulator(ops.ADD, zero, r), w.accumulator(ops.ADD, one, r)
    with w.loop(r):
        counted = w.put(ops.PHI, a, w.put(ops.ADD, a, one))
        summed = w.put(ops.PHI, b, w.put(ops.ADD, b, a))
    w.put(ops.STORE, out, zero, counted)
    w.put(ops.STORE, out, one, summed)
    result = empty(d.int32, 2)
    run(device, w.kernel(), result)
    assert result.tolist() == [5, 11]


def test_one_reduction_feeds_another(device: Runtime) -> None:
    """The sum of squared distances from the mean of each row."""
    w = Writer()
    out, x = w.buffer(d.float32, 2, written=True), w.buffer(d.float32, 8)
    zero, scale = w.const(d.float32, 0.0), w.const(d.float32, 0.25)
    with w.loop(2) as i:
        r, s = w.range(4, AxisKind.REDUCE), w.range(4, AxisKind.REDUCE)
        row = w.at(i, 4)
        first = w.accumulator(ops.ADD, zero, r)
        with w.loop(r):
            total = w.put(ops.PHI, first, w.put(ops.ADD, first, w.put(ops.LOAD, x, w.at(r, 1, row))))
        mean = w.put(ops.MUL, total, scale)
        second = w.accumulator(ops.ADD, zero, s)
        with w.loop(s):
            distance = w.put(ops.SUB, w.put(ops.LOAD, x, w.at(s, 1, row)), mean)
            square = w.put(ops.MUL, distance, distance)
            result = w.put(ops.PHI, second, w.put(ops.ADD, second, square))
        w.put(ops.STORE, out, i, result)
    got = empty(d.float32, 2)
    run(device, w.kernel(), got, np.array([1, 2, 3, 6, 0, 0, 4, 4], dtype=np.float32))
    assert got.tolist() == [14.0, 16.0]


def test_vector_accumulator_and_lanes(device: Runtime) -> None:
    """Columns of a matrix summed four at a time, then the lanes of each vector turned round."""
    if 4 not in device.renderer.target.widths:
        return
    w = Writer()
    out, x = w.buffer(d.float32, 8, written=True), w.buffer(d.float32, 40)
    start = w.const(d.float32.vec(4), 0.0)
    with w.loop(2) as i:
        r = w.range(5, AxisKind.REDUCE)
        accumulator = w.accumulator(ops.ADD, start, r)
        column = w.at(i, 4)
        with w.loop(r):
            place = w.at(r, 8, column)
            value = w.put(ops.LOAD, x, place, dtype=d.float32.vec(4))
            total = w.put(ops.PHI, accumulator, w.put(ops.ADD, accumulator, value))
        lanes = [w.put(ops.GEP, total, arg=k) for k in (3, 2, 1, 0)]
        w.put(ops.STORE, out, column, w.put(ops.VECTORIZE, *lanes))
    source, result = np.arange(40, dtype=np.float32), empty(d.float32, 8)
    run(device, w.kernel(), result, source)
    assert result.tolist() == source.reshape(5, 2, 4).sum(0)[:, ::-1].ravel().tolist()


def test_broadcast_of_a_value(device: Runtime) -> None:
    for lanes in device.renderer.target.widths:
        w = Writer()
        out, x = w.buffer(d.int32, lanes, written=True), w.buffer(d.int32, 1)
        zero = w.const(d.int32, 0)
        value = w.put(ops.LOAD, x, zero)
        vector = w.put(ops.MUL, w.put(ops.VECTORIZE, *[value] * lanes), w.const(d.int32.vec(lanes), 3))
        w.put(ops.STORE, out, zero, vector)
        result = empty(d.int32, lanes)
        run(device, w.kernel(), result, np.array([14], dtype=np.int32))
        assert result.tolist() == [42] * lanes


# --- gates, variables, threads ---------------------------------------------------------------------------------------

FAR = 1 << 29  # as an index: gigabytes beyond any buffer of these tests


@pytest.mark.parametrize("dtype", [d.float32, d.bool_, d.int8], ids=id_of)
def test_gated_load_touches_no_memory_when_false(device: Runtime, dtype: DType) -> None:
    w = Writer()
    out, x = w.buffer(dtype, 10, written=True), w.buffer(dtype, 4)
    other = w.const(dtype, 1)
    with w.loop(10) as i:
        inside = w.put(ops.LT, i, w.const(d.int32, 4))
        far = w.put(ops.WHERE, inside, i, w.const(d.int32, FAR))
        w.put(ops.STORE, out, i, w.put(ops.LOAD, x, far, inside, other))
    result = empty(dtype, 10)
    run(device, w.kernel(), result, array(dtype, [0, 1, 0, 0]))
    assert scalars(dtype, result) == [0, 1, 0, 0, 1, 1, 1, 1, 1, 1]


def test_gated_vector_load(device: Runtime) -> None:
    for lanes in device.renderer.target.widths:
        w = Writer()
        out, x = w.buffer(d.float32, 3 * lanes, written=True), w.buffer(d.float32, lanes)
        other = w.const(d.float32.vec(lanes), 9.0)
        with w.loop(3) as i:
            inside = w.put(ops.EQ, i, w.const(d.int32, 1))
            far = w.put(ops.WHERE, inside, w.const(d.int32, 0), w.const(d.int32, FAR))
            value = w.put(ops.LOAD, x, far, inside, other, dtype=d.float32.vec(lanes))
            w.put(ops.STORE, out, w.at(i, lanes), value)
        source, result = np.arange(lanes, dtype=np.float32), empty(d.float32, 3 * lanes)
        run(device, w.kernel(), result, source)
        assert result.tolist() == [9.0] * lanes + source.tolist() + [9.0] * lanes


@pytest.mark.parametrize("wrapped", [True, False], ids=["if", "gate"])
def test_gated_store_writes_nothing_when_false(device: Runtime, wrapped: bool) -> None:
    w = Writer()
    out, x = w.buffer(d.int32, 4, written=True), w.buffer(d.int32, 10)
    with w.loop(10) as i:
        even = w.put(ops.EQ, w.put(ops.AND, i, w.const(d.int32, 1)), w.const(d.int32, 0))
        gate = w.put(ops.AND, even, w.put(ops.LT, i, w.const(d.int32, 8)))
        half = w.put(ops.SHR, i, w.const(d.int32, 1))
        far = w.put(ops.WHERE, gate, half, w.const(d.int32, FAR))
        value = w.put(ops.LOAD, x, i)
        if wrapped:
            opened = w.put(ops.IF, gate)
            w.put(ops.STORE, out, far, value)
            w.put(ops.ENDIF, opened)
        else:
            w.put(ops.STORE, out, far, value, gate)
    result = empty(d.int32, 4)
    run(device, w.kernel(), result, np.arange(10, dtype=np.int32) * 11)
    assert result.tolist() == [0, 22, 44, 66]


def test_symbolic_variables(device: Runtime) -> None:
    """Rows of length n at a stride m: variables in the bound of a loop and in the index, ordered by name."""
    w = Writer()
    out, x = w.buffer(d.int32, None, written=True), w.buffer(d.int32, None)
    n, m = w.variable("n", 1, 8), w.variable("m", 1, 8)
    with w.loop(n) as i:
        w.put(ops.STORE, out, i, w.put(ops.LOAD, x, w.put(ops.MUL, i, m)))
    source = np.arange(64, dtype=np.int32)
    for rows, stride in ((1, 8), (5, 3), (8, 8)):
        result = np.full(8, -1, dtype=np.int32)
        run(device, w.kernel(), result, source, n=rows, m=stride)
        assert result.tolist() == [i * stride if i < rows else -1 for i in range(8)]


def test_variable_names_that_a_language_reserves(device: Runtime) -> None:
    names = ["int", "data0", "thread", "float", "kernel", "v0", "r0", "for", "size", "global", "main", "printf"]
    w = Writer()
    out = w.buffer(d.int32, len(names), written=True)
    for k, name in enumerate(names):
        w.put(ops.STORE, out, w.const(d.int32, k), w.variable(name, 0, 1000))
    result = empty(d.int32, len(names))
    run(device, w.kernel(), result, **{name: k * 10 for k, name in enumerate(names)})
    assert result.tolist() == [k * 10 for k in range(len(names))]


@pytest.mark.parametrize("threads", [2, 7])
def test_cpu_threads(device: Runtime, threads: int) -> None:
    w = Writer()
    out = w.buffer(d.int32, threads * 3, written=True)
    thread = w.put(ops.SPECIAL, w.const(d.int32, threads), arg=SpecialArg(ThreadKind.THREAD, 0))
    with w.loop(3) as i:
        w.put(ops.STORE, out, w.at(thread, 3, i), w.put(ops.ADD, thread, w.const(d.int32, 100)))
    kernel = w.kernel(threads=threads)
    if device.name not in ("llvm", "c"):
        return
    result = empty(d.int32, threads * 3)
    run(device, kernel, result)
    assert result.tolist() == [100 + t for t in range(threads) for _ in range(3)]


def test_groups_and_local_memory(device: Runtime) -> None:
    """Each group turns its four values round through local memory. A device without groups says so."""
    w = Writer()
    out, x = w.buffer(d.int32, 12, written=True), w.buffer(d.int32, 12)
    group = w.put(ops.SPECIAL, w.const(d.int32, 3), arg=SpecialArg(ThreadKind.GROUP, 0))
    local = w.put(ops.SPECIAL, w.const(d.int32, 4), arg=SpecialArg(ThreadKind.LOCAL, 0))
    memory = w.put(ops.LOCAL, dtype=d.int32.ptr("local"), arg=ops.BufferArg(0, 4))
    place = w.at(group, 4, local)
    stored = w.put(ops.STORE, memory, local, w.put(ops.LOAD, x, place))
    ready = w.put(ops.AFTER, memory, w.put(ops.BARRIER, stored))
    mirrored = w.put(ops.SUB, w.const(d.int32, 3), local)
    w.put(ops.STORE, out, place, w.put(ops.LOAD, ready, mirrored))
    kernel = w.kernel(group=3, local=4)
    target = device.renderer.target
    if not (target.has("threads") and target.has("local-memory")):
        with pytest.raises(RenderError, match=target.name):
            device.renderer.render(kernel)
        return
    source, result = np.arange(12, dtype=np.int32), empty(d.int32, 12)
    run(device, kernel, result, source)
    assert result.tolist() == source.reshape(3, 4)[:, ::-1].ravel().tolist()


def test_a_long_chain_of_operations(device: Runtime) -> None:
    w = Writer()
    out, x = w.buffer(d.int32, 1, written=True), w.buffer(d.int32, 1)
    zero = w.const(d.int32, 0)
    value = first = w.put(ops.LOAD, x, zero)
    for k in range(1000):
        value = w.put(ops.XOR, w.put(ops.ADD, value, first), w.const(d.int32, k))
    w.put(ops.STORE, out, zero, value)
    result = empty(d.int32, 1)
    run(device, w.kernel(), result, np.array([12345], dtype=np.int32))
    want = 12345
    for k in range(1000):
        want = int(d.int32.canonical(want + 12345)) ^ k
    assert result.tolist() == [want]
