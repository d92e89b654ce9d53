"""Random expressions on every device against the exact evaluator.

Operators are tested one by one elsewhere; here they stand in each other: parentheses, narrow types inside wide ones,
values shared between expressions, conditions that guard what would be undefined. One kernel holds many expressions,
so that a compiler runs few times.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from rulewright.engine import dtypes as d
from rulewright.engine import evaluate as ev
from rulewright.engine import ops
from rulewright.engine.dtypes import DType, Scalar
from rulewright.engine.interpret import evaluate
from rulewright.engine.linear import BufferParam, LinearKernel
from rulewright.engine.ops import AxisKind, Op, RangeArg
from rulewright.engine.uop import UOp, buffer, const, make
from rulewright.runtimes import devices
from rulewright.runtimes.base import Array, Runtime

TYPES = (d.bool_, d.int8, d.int32, d.int64, d.uint8, d.uint16, d.uint32, d.uint64, d.float32)
ROWS = 48
NUMBERS = (ops.ADD, ops.SUB, ops.MUL)
BITS = (ops.AND, ops.OR, ops.XOR)
COMPARISONS = (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)


@pytest.fixture(params=list(devices.DEVICES))
def device(request: pytest.FixtureRequest) -> Runtime:
    status = devices.probe(request.param)
    if not status.present:
        pytest.skip(f"device {request.param} is absent: {status.reason}")
    return devices.get(request.param)


def constants(dtype: DType) -> list[Scalar]:
    if dtype.is_float:
        return [0.0, -0.0, 1.0, -1.5, 0.1, 3e38, 1e-40, float("inf"), float("nan")]
    low, high = int(dtype.lowest), int(dtype.highest)
    return [dtype.canonical(v) for v in (0, 1, 2, 3, 7, -1, -3, low, high, low + 1, high - 1)]


class Grower:
    """Grows a graph of expressions of all types over one loaded value of each type."""

    def __init__(self, seed: int, leaves: list[UOp]) -> None:
        self.random = random.Random(seed)
        self.made: dict[DType, list[UOp]] = {leaf.dtype: [leaf] for leaf in leaves}
        self.nodes: list[UOp] = []
        self.depth = 0

    def pick(self, dtype: DType) -> UOp:
        """A value of the type: a constant, an expression for this place alone, or one that others use too."""
        kind = self.random.random()
        if kind < 0.15:
            return self.add(const(dtype, self.random.choice(constants(dtype))))
        if kind < 0.6 and self.depth < 3:
            return self.expression(dtype)
        known = self.made[dtype]
        return self.random.choice(known[-4:] if self.random.random() < 0.7 else known)

    def put(self, op: Op, *src: UOp, dtype: DType | None = None) -> UOp:
        return self.add(make(op, *src, dtype=dtype))

    def add(self, node: UOp) -> UOp:
        if node not in self.nodes:
            self.nodes.append(node)
        return node

    def grow(self) -> None:
        """One more expression of a random type."""
        dtype = self.random.choice(TYPES)
        self.made[dtype].append(self.expression(dtype))

    def expression(self, dtype: DType) -> UOp:
        self.depth += 1
        node: UOp = self.random.choice(self.ways(dtype))(dtype)
        self.depth -= 1
        return node

    def ways(self, dtype: DType) -> list:  # type: ignore[type-arg]  # of bound methods
        if dtype.kind == "bool":
            return [self.compared, self.compared, self.bitwise, self.negated]
        if dtype.is_float:
            return [self.arithmetic, self.arithmetic, self.chosen, self.converted]
        return [self.arithmetic, self.arithmetic, self.bitwise, self.shifted, self.divided, self.negated,
                self.chosen, self.converted, self.converted]  # fmt: skip

    def arithmetic(self, dtype: DType) -> UOp:
        return self.put(self.random.choice(NUMBERS), self.pick(dtype), self.pick(dtype))

    def bitwise(self, dtype: DType) -> UOp:
        return self.put(self.random.choice(BITS), self.pick(dtype), self.pick(dtype))

    def negated(self, dtype: DType) -> UOp:
        return self.put(self.random.choice((ops.NEG, ops.NOT)), self.pick(dtype))

    def shifted(self, dtype: DType) -> UOp:
        amount = self.put(ops.AND, self.pick(dtype), self.add(const(dtype, dtype.bits - 1)))
        return self.put(self.random.choice((ops.SHL, ops.SHR)), self.pick(dtype), amount)

    def divided(self, dtype: DType) -> UOp:
        """A quotient or remainder, taken only where the divisor is not 0."""
        divisor = self.pick(dtype)
        result = self.put(self.random.choice((ops.TRUNCDIV, ops.TRUNCMOD)), self.pick(dtype), divisor)
        defined = self.put(ops.NE, divisor, self.add(const(dtype, 0)))
        return self.put(ops.WHERE, defined, result, self.pick(dtype))

    def compared(self, dtype: DType) -> UOp:
        operand = self.random.choice(TYPES[1:])
        return self.put(self.random.choice(COMPARISONS), self.pick(operand), self.pick(operand))

    def chosen(self, dtype: DType) -> UOp:
        return self.put(ops.WHERE, self.pick(d.bool_), self.pick(dtype), self.pick(dtype))

    def converted(self, dtype: DType) -> UOp:
        source = self.random.choice([t for t in TYPES if not t.is_float or dtype.is_float])
        return self.put(ops.CAST, self.pick(source), dtype=dtype)


def kernel_of(seed: int) -> tuple[LinearKernel, list[UOp], list[UOp]]:
    """A kernel that stores the last expressions of each type for each row; the loads, and what is stored."""
    end = const(d.int32, ROWS)
    row = make(ops.RANGE, end, arg=RangeArg(0, AxisKind.LOOP))
    count = 3 * len(TYPES)
    inputs = [buffer(count + k, t, ROWS) for k, t in enumerate(TYPES)]
    loads = [make(ops.LOAD, memory, row) for memory in inputs]
    grower = Grower(seed, loads)
    for _ in range(60):
        grower.grow()
    stored = [node for t in TYPES for node in (grower.made[t] * 3)[-3:]]
    outputs = [buffer(k, node.dtype, ROWS) for k, node in enumerate(stored)]
    fixed = [node for node in grower.nodes if node.op is ops.CONST]
    computed = [node for node in grower.nodes if node.op is not ops.CONST]
    stores = [make(ops.STORE, memory, row, node) for memory, node in zip(outputs, stored, strict=True)]
    places = dict.fromkeys([*outputs, *inputs, end, *fixed, row, *loads, *computed, *stores])
    nodes = (*places, make(ops.ENDRANGE, row))
    buffers = [BufferParam(k, node.dtype, ROWS, True) for k, node in enumerate(stored)]
    buffers += [BufferParam(count + k, t, ROWS, False) for k, t in enumerate(TYPES)]
    return LinearKernel("expressions", nodes, tuple(buffers), (), (), (), 1), loads, stored


def empty(dtype: DType) -> Array:
    return np.zeros(ROWS, np.bool_ if dtype.kind == "bool" else dtype.name)


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions(device: Runtime, seed: int) -> None:
    kernel, loads, stored = kernel_of(seed)
    choose = random.Random(seed)
    rows = [[load.dtype.canonical(choose.choice(constants(load.dtype))) for _ in range(ROWS)] for load in loads]
    sources = [np.array(values, empty(load.dtype).dtype) for load, values in zip(loads, rows, strict=True)]
    results = [empty(node.dtype) for node in stored]
    device.build(kernel, device.renderer.render(kernel))([*results, *sources], {})
    checked = 0
    for k in range(ROWS):
        values = {load: row[k] for load, row in zip(loads, rows, strict=True)}
        for node, result in zip(stored, results, strict=True):
            expected = evaluate(node, values)
            if expected is not None:
                assert not isinstance(expected, tuple)
                assert ev.same_value(expected, result[k].item()), (node.op, node.dtype, k)
                checked += 1
    assert checked > ROWS * len(stored) // 2  # the expressions are defined often enough to say something
