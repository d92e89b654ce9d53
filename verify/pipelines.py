"""Random graphs, and the check that a pipeline of rules keeps their values.

Single rules may be right and a pipeline wrong: where one relies on a form that another has changed, or where they undo each
other for ever. So whole graphs are drawn: arithmetic on bounded variables, choices, casts, gated loads, reductions.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from ..engine import dtypes, ops
from ..engine.dtypes import DType
from ..engine.errors import GraphError, RewriteError
from ..engine.ops import AxisKind, BufferArg, Op, VarArg
from ..engine.rewriting import RuleSet
from ..engine.target import Context
from ..engine.uop import UOp, const, intern, make, range_
from .choices import Choices, decisions
from .counterexample import Counterexample, malformed
from .properties import compare
from .values import edges

WHOLE = (ops.ADD, ops.MUL, ops.SUB, ops.FLOORDIV, ops.FLOORMOD, ops.MAX, ops.MIN, ops.ADD)
REAL = (ops.ADD, ops.MUL, ops.SUB, ops.MAX, ops.MIN, ops.DIV, ops.ADD)
RELATIONS = (ops.LT, ops.LE, ops.GT, ops.GE, ops.EQ, ops.NE)
BOUNDS = ((0, 7), (-4, 9), (0, 63), (3, 20))
NODES = 10
"""Operators of a graph, at most."""


def graphs(dtype: DType = dtypes.index, *, reductions: bool = True) -> st.SearchStrategy[UOp]:
    """A strategy for graphs of values of a type, for tests of one's own rules."""
    return decisions().map(lambda data: _graph(Choices(data), dtype, reductions))


def _graph(choices: Choices, dtype: DType, reductions: bool) -> UOp:
    pool = [_leaf(choices, dtype, name) for name in "xyz"]
    loop = range_(0, choices.pick((3, 1, 4, 2)), AxisKind.REDUCE)
    if reductions and choices.rarely(2):
        pool.append(loop if dtype.kind == "index" else _table(dtype, loop))
    pool += [const(dtype, value) for value in (choices.pick(edges(dtype)[:12]), choices.pick(edges(dtype)[:8]))]
    for _ in range(1 + choices.below(NODES)):
        pool.append(_step(choices, dtype, pool))
    if not reductions or loop not in ops_below(pool[-1]):
        return pool[-1]
    total = make(ops.REDUCE, pool[-1], loop, arg=choices.pick((ops.ADD, ops.MAX, ops.MIN)))
    return make(ops.ADD, total, pool[0]) if dtype.kind != "bool" and choices.rarely(3) else total


def ops_below(node: UOp) -> set[UOp]:
    from ..engine.uop import walk

    return set(walk(node))


def _leaf(choices: Choices, dtype: DType, name: str) -> UOp:
    if dtype.kind in ("index", "sint", "uint"):
        low, high = choices.pick(BOUNDS)
        if dtype.kind == "index" or choices.rarely(2):
            return make(ops.VAR, dtype=dtype, arg=VarArg(name, max(0, low) if dtype.kind == "uint" else low, high))
    return make(ops.VAR, dtype=dtype, arg=name)


def _table(dtype: DType, loop: UOp) -> UOp:
    memory = intern(ops.BUFFER, dtype.ptr("global"), (), BufferArg(0, 8))
    return make(ops.LOAD, memory, loop)


def _step(choices: Choices, dtype: DType, pool: list[UOp]) -> UOp:
    a, b = choices.pick(pool[::-1]), choices.pick(pool)
    kind = choices.below(6)
    if kind == 5:
        return make(ops.WHERE, make(choices.pick(RELATIONS), a, b), choices.pick(pool), choices.pick(pool))
    if kind == 4 and dtype.kind not in ("bool", "index"):
        return _loaded(dtype, a, b)
    operators: tuple[Op, ...] = REAL if dtype.is_float else WHOLE
    if dtype.kind == "bool":
        operators = (ops.AND, ops.OR, ops.XOR)
    return make(choices.pick(operators), a, b)


def _loaded(dtype: DType, value: UOp, other: UOp) -> UOp:
    """A load whose gate keeps it inside of the buffer."""
    at = make(ops.VAR, dtype=dtypes.index, arg=VarArg("i", -2, 9))
    zero, size = const(dtypes.index, 0), const(dtypes.index, 8)
    gate = make(ops.AND, make(ops.GE, at, zero), make(ops.LT, at, size))
    memory = intern(ops.BUFFER, dtype.ptr("global"), (), BufferArg(1, 8))
    return make(ops.ADD, value, make(ops.LOAD, memory, at, gate, other))


# --- pipelines --------------------------------------------------------------------------------------------------------

FUEL = 5000
"""Rewrites after which a stage counts as looping: the graphs are small."""

TYPES = (dtypes.index, dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.int8, dtypes.bool_)


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """What the check of a pipeline found."""

    pipeline: str
    drawn: int
    counterexample: Counterexample | None


class _Changed(Exception):
    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__(str(counterexample))
        self.counterexample = counterexample


def check_pipeline(
    ruleset: RuleSet, pipeline: str, *, context: Context | None = None, examples: int = 100, start: int = 0
) -> PipelineResult:
    """Runs a pipeline on random kernels of several types, and compares what they store before and after."""
    setting = context or Context()
    drawn = 0

    @seed(start)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(decisions())
    def keeps(data: bytes) -> None:
        nonlocal drawn
        drawn += 1
        choices = Choices(data)
        dtype = choices.pick(TYPES)
        graph = _stored(_graph(choices, dtype, dtype.kind != "index"))  # nothing accumulates an index
        counterexample = _ran(ruleset, pipeline, graph, setting, choices.below(1 << 12))
        if counterexample is not None:
            raise _Changed(counterexample)

    try:
        keeps()
    except _Changed as changed:
        return PipelineResult(pipeline, drawn, changed.counterexample)
    return PipelineResult(pipeline, drawn, None)


def _stored(value: UOp) -> UOp:
    """A kernel that stores the value: what a pipeline is for."""
    if value.dtype.kind == "index":
        value = make(ops.CAST, value, dtype=dtypes.int64)
    memory = intern(ops.BUFFER, value.dtype.ptr("global"), (), BufferArg(2, 1))
    return make(ops.SINK, make(ops.STORE, memory, const(dtypes.index, 0), value))


def _ran(ruleset: RuleSet, pipeline: str, graph: UOp, context: Context, start: int) -> Counterexample | None:
    try:
        after, _ = ruleset.rewrite(graph, pipeline, context, fuel=FUEL)
    except (RewriteError, GraphError) as problem:
        return malformed(graph, graph, context, str(problem))
    return compare(graph, after, context, start)
