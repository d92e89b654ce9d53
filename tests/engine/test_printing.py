"""Printed expressions read back as the same node; listings show one node a line; both stay linear."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine import ops
from rulewright.engine.dtypes import DATA_TYPES, DType, bool_, float16, float32, index, int8, int32, uint8
from rulewright.engine.language.expressions import parse_expression
from rulewright.engine.ops import AxisKind, BufferArg, ThreadKind
from rulewright.engine.printing import expression, listing
from rulewright.engine.uop import UOp, buffer, const, make, range_, special, variable


def var(name: str, dtype: DType = index) -> UOp:
    return make(ops.VAR, dtype=dtype, arg=name)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("x + y * z", ""),
        ("(x + y) * z", ""),
        ("x - y - z", ""),
        ("x - (y - z)", ""),
        ("x - -3", ""),
        ("-x * -3", ""),
        ("-(x + y)", ""),
        ("--x", ""),
        ("-neg(3)", ""),
        ("~(x & 7)", ""),
        ("x // 4 % 4", ""),
        ("x // (4 % y)", ""),
        ("x << 2 + y", ""),
        ("(x << 2) + y", ""),
        ("x & y ^ z | 1", ""),
        ("x & (y ^ (z | 1))", ""),
        ("x < y", ""),
        ("(x < y) == (y < z)", ""),
        ("(x < y) & (y < z)", ""),
        ("where(x < y, x + 1, 3)", ""),
        ("where(true, 1.0, f)", "f: float16"),
        ("max(x, min(y, 3))", ""),
        ("mulacc(f, 2.0, 1.0)", "f: float32"),
        ("exp2(f) / 3.0", "f: float64"),
        ("f + -0.0", "f: float16"),
        ("f * -inf", "f: float16"),
        ("max(f, nan)", "f: float16"),
        ("f + 1e-07", "f: float64"),
        ("f + 1e+22", "f: float64"),
        ("cast[float32](x)", ""),
        ("cast[int8](v)", "v: float32x4"),
        ("bitcast[int32](f)", "f: float32"),
        ("vec[x, y + 1, 3]", ""),
        ("vec[int8(1), 2]", ""),
        ("gep[2](v) + 1.0", "v: float32x4"),
        ("v + 1.0", "v: float32x4"),
        ("int32(5)", ""),
        ("int32(5) + 6", ""),
        ("cast[float32](int32(5))", ""),
        ("float32x4(2.0) * 3.0", ""),
        ("5", ""),
        ("1.5", ""),
        ("float16(1.5)", ""),
        ("true", ""),
        ("boolx2(true)", ""),
        ("load(buffer_0, r0 + 1)", "buffer_0: buffer[int8], r0: range[16]"),
        ("load(buffer_0, r0, r0 < 3, 0)", "buffer_0: buffer[int8], r0: range[16]"),
        ("load[4](shared_0, 0)", "shared_0: local[int8]"),
        ("store(buffer_0, r0, 0, r0 < 3)", "buffer_0: buffer[int8], r0: range[16]"),
        ("reduce[max](load(buffer_0, r0), r0)", "buffer_0: buffer[int8], r0: range[16]"),
    ],
)
def test_an_expression_is_printed_as_it_is_written(text: str, given: str) -> None:
    assert expression(parse_expression(text, given)) == text


def test_what_only_graphs_have() -> None:
    local = make(ops.LOCAL, dtype=float32.ptr("local"), arg=BufferArg(3, 64))
    group = special(ThreadKind.GROUP, 1, 16)
    value = make(ops.LOAD, local, group)
    reduce = make(ops.REDUCE, value, range_(0, 4), arg=ops.ADD)
    acc = make(ops.DEFINE_ACC, const(float32, 0.0), range_(0, 4), arg=reduce)
    assert expression(make(ops.PHI, acc, make(ops.ADD, acc, value))) == (
        "phi(define_acc[…](0.0, r0), define_acc[…](0.0, r0) + load(shared_3, group_1))"
    )
    assert expression(variable("n", 1, 8)) == "n"
    assert expression(make(ops.SINK)) == "sink()"
    assert expression(make(ops.VECTORIZE, var("x"))) == "vectorize(x)"


def test_repr_is_the_expression() -> None:
    assert repr(make(ops.ADD, var("x"), const(index, 1))) == "x + 1"


# --- random expressions ----------------------------------------------------------------------------------------------

TYPES = (index, bool_, int8, int32, uint8, float16, float32)
UNARY = (ops.NEG, ops.NOT, ops.EXP2, ops.SQRT, ops.RECIP, ops.FLOOR)
BINARY = tuple(op for op in ops.ELEMENTWISE if op.arity == 2 and op.negated is None)
COMPARISONS = tuple(op for op in ops.ELEMENTWISE if op.negated is not None)
GIVEN = ", ".join(f"{name}_{dtype}: {dtype}" for dtype in TYPES for name in "xy")


def constants(dtype: DType) -> st.SearchStrategy[UOp]:
    if dtype is bool_:
        return st.booleans().map(lambda value: const(dtype, value))
    if dtype.is_float:
        return st.floats(width=32).map(lambda value: const(dtype, value))
    return st.integers(-(1 << 40), 1 << 40).map(lambda value: const(dtype, value))


def fits(op: ops.Op, dtype: DType) -> bool:
    try:
        make(op, *[var("x", dtype)] * (op.arity or 0))
    except Exception:  # noqa: BLE001 - only whether it can be made
        return False
    return True


@st.composite
def graphs(draw: st.DrawFn, dtype: DType, depth: int = 5) -> UOp:
    """A random expression of a type over two variables of each type."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        names = st.sampled_from([var(f"{name}_{dtype}", dtype) for name in "xy"])
        return draw(st.one_of(names, constants(dtype)))

    def operand(of: DType) -> UOp:
        return draw(graphs(of, depth - 1))

    form = draw(st.sampled_from(["unary", "binary", "binary", "where", "cast", "compare"]))
    if form == "compare" and dtype is bool_:
        other = draw(st.sampled_from(TYPES))
        return make(draw(st.sampled_from(COMPARISONS)), operand(other), operand(other))
    if form == "where":
        return make(ops.WHERE, operand(bool_), operand(dtype), operand(dtype))
    if form == "cast":
        return make(ops.CAST, operand(draw(st.sampled_from(TYPES))), dtype=dtype)
    choices = [op for op in (UNARY if form == "unary" else BINARY) if fits(op, dtype)]
    op = draw(st.sampled_from(choices))
    return make(op, *[operand(dtype) for _ in range(op.arity or 0)])


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TYPES).flatmap(graphs))
def test_what_is_printed_reads_back(node: UOp) -> None:
    text = expression(node, limit=10_000)
    assert parse_expression(text, GIVEN) is node, text


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(TYPES).flatmap(lambda dtype: st.lists(graphs(dtype, 2), min_size=2, max_size=4)))
def test_vectors_read_back(lanes: list[UOp]) -> None:
    node = make(ops.VECTORIZE, *lanes)
    doubled = make(ops.MAX, node, const(node.dtype, 1))
    assert parse_expression(expression(doubled), GIVEN) is doubled


def test_every_type_of_constant_reads_back() -> None:
    for dtype in (*DATA_TYPES, index):
        for wide in (dtype, dtype.vec(4)):
            assert parse_expression(expression(const(wide, 1))) is const(wide, 1)


# --- size ------------------------------------------------------------------------------------------------------------


def test_a_shared_graph_is_cut_off() -> None:
    node = var("x")
    for _ in range(200):  # as a tree 2**200 nodes
        node = make(ops.ADD, node, node)
    text = expression(node, limit=50)
    assert text.endswith("…")
    assert len(text) < 1000


def test_a_deep_graph_is_no_recursion() -> None:
    node = var("x")
    for _ in range(100_000):
        node = make(ops.NEG, node)
    assert expression(node, limit=1_000_000) == "-" * 100_000 + "x"
    assert expression(node, limit=3) == "---…"
    assert listing(node).count("\n") == 100_000


def test_the_limit_is_exact() -> None:
    node = parse_expression("x + y")
    assert expression(node, limit=3) == "x + y"
    assert expression(node, limit=2) == "x + …"
    assert expression(node, limit=0) == "…"


def test_listing() -> None:
    value = make(ops.LOAD, buffer(0, float32, 64), make(ops.MUL, range_(0, 16, AxisKind.REDUCE), variable("n", 1, 4)))
    reduce = make(ops.REDUCE, make(ops.MUL, value, const(float32, 2.0)), range_(0, 16, AxisKind.REDUCE), arg=ops.ADD)
    assert listing(reduce) == (
        "%0: global float32*  buffer() #0 of 64\n"
        "%1: index            const() 16\n"
        "%2: index            range(%1) r0 reduce\n"
        "%3: index            var() n in 1..5\n"
        "%4: index            mul(%2, %3)\n"
        "%5: float32          load(%0, %4)\n"
        "%6: float32          const() 2.0\n"
        "%7: float32          mul(%5, %6)\n"
        "%8: float32          reduce(%7, %2) add"
    )


def test_listing_of_accumulators_and_threads() -> None:
    group = special(ThreadKind.GROUP, 1, 16)
    reduce = make(ops.REDUCE, group, range_(0, 4), arg=ops.ADD)
    acc = make(ops.DEFINE_ACC, const(index, 0), range_(0, 4), arg=reduce)
    lines = listing(make(ops.SINK, make(ops.ADD, reduce, acc))).splitlines()
    assert lines[1] == "%1: index  special(%0) group_1"
    assert "define_acc(%5, %3) for %4" in lines[6]
    assert lines[-1] == "%8: void   sink(%7)"
