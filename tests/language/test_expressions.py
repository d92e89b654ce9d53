"""Expressions in the language's notation: their graphs, the types of literals, the names that `given` describes."""

from __future__ import annotations

import pytest
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import DType, bool_, float16, float32, float64, index, int8, int32, uint32
from rulewright.engine.language.diagnostics import RuleSyntaxError
from rulewright.engine.language.expressions import (
    TermError,
    build_term,
    case_context,
    default_type,
    free_names,
    parse_expression,
    parse_given,
)
from rulewright.engine.language.parser import RuleSource, load_rules
from rulewright.engine.language.syntax import Rule
from rulewright.engine.ops import AxisKind, BufferArg, RangeArg, VarArg
from rulewright.engine.target import Context, Target
from rulewright.engine.uop import UOp, buffer, const, make, range_


def var(name: str, dtype: DType = index) -> UOp:
    return make(ops.VAR, dtype=dtype, arg=name)


def rule(text: str) -> Rule:
    source = RuleSource("t.rules", f"vars x, y\nconsts c\ngroup g {{ rule {text} }}")
    return load_rules([source]).groups["g"].rules[0]


def test_an_expression_is_a_graph() -> None:
    i, j = make(ops.VAR, dtype=index, arg=VarArg("i", 0, 8)), var("j")
    twelve, four = const(index, 12), const(index, 4)
    expected = make(ops.FLOORMOD, make(ops.ADD, make(ops.MUL, i, twelve), j), four)
    assert parse_expression("(i*12 + j) % 4", "i in 0..9") is expected


# --- the types of literals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", const(index, 5)),
        ("-5", const(index, -5)),
        ("1.5", const(float32, 1.5)),
        ("true", const(bool_, True)),
        ("int8(300)", const(int8, 300)),
        ("float16(0.1)", const(float16, 0.1)),
        ("float64(2)", const(float64, 2.0)),
        ("float32x4(1.5)", const(float32.vec(4), 1.5)),
        ("uint32(0xFFFFFFFF)", const(uint32, 0xFFFFFFFF)),
        ("float32(-0.0)", const(float32, -0.0)),
        ("-0.0", const(float32, -0.0)),
        ("-inf", const(float32, float("-inf"))),
        ("nan", const(float32, float("nan"))),
        ("h + 1", make(ops.ADD, var("h", float16), const(float16, 1.0))),
        ("1 + h", make(ops.ADD, const(float16, 1.0), var("h", float16))),
        ("v * 2", make(ops.MUL, var("v", float32.vec(4)), const(float32.vec(4), 2.0))),
        ("h + (1 + 2)", make(ops.ADD, var("h", float16), make(ops.ADD, const(float16, 1.0), const(float16, 2.0)))),
        ("1 < h", make(ops.LT, const(float16, 1.0), var("h", float16))),
        ("1 < 2.5", make(ops.LT, const(float32, 1.0), const(float32, 2.5))),
        ("true == false", make(ops.EQ, const(bool_, True), const(bool_, False))),
        ("p & 1", make(ops.AND, var("p", bool_), const(bool_, True))),
        ("where(p, 1, h)", make(ops.WHERE, var("p", bool_), const(float16, 1.0), var("h", float16))),
        ("where(true, h, 1)", make(ops.WHERE, const(bool_, True), var("h", float16), const(float16, 1.0))),
        ("h + where(p, 1, 2)", make(ops.ADD, var("h", float16),
                                    make(ops.WHERE, var("p", bool_), const(float16, 1.0), const(float16, 2.0)))),
        ("where(p, 1, 2.5)", make(ops.WHERE, var("p", bool_), const(float32, 1.0), const(float32, 2.5))),
        ("cast[float16](1)", make(ops.CAST, const(index, 1), dtype=float16)),
        ("cast[int8](v)", make(ops.CAST, var("v", float32.vec(4)), dtype=int8.vec(4))),
        ("bitcast[int32](1.5)", make(ops.BITCAST, const(float32, 1.5), dtype=int32)),
        ("vec[1, 2]", make(ops.VECTORIZE, const(index, 1), const(index, 2))),
        ("vec[h, 2]", make(ops.VECTORIZE, var("h", float16), const(float16, 2.0))),
        ("vec[1.5, 2]", make(ops.VECTORIZE, const(float32, 1.5), const(float32, 2.0))),
        ("w + vec[1, 2]", make(ops.ADD, var("w", int8.vec(2)), make(ops.VECTORIZE, const(int8, 1), const(int8, 2)))),
        ("vec[h]", var("h", float16)),
        ("vec[{k * 2 + 1} for k in 0..3]", make(ops.VECTORIZE, const(index, 1), const(index, 3), const(index, 5))),
        ("vec[x + k for k in 0..2]", make(ops.VECTORIZE, var("x"), make(ops.ADD, var("x"), const(index, 1)))),
        ("gep[1](v)", make(ops.GEP, var("v", float32.vec(4)), arg=1)),
        ("max(x, 3)", make(ops.MAX, var("x"), const(index, 3))),
    ],
)  # fmt: skip
def test_literals_take_the_type_of_what_stands_beside_them(text: str, expected: UOp) -> None:
    given = "h: float16, v: float32x4, w: int8x2, p: bool"
    assert parse_expression(text, given) is expected


def test_memory_and_loops() -> None:
    given = "a: buffer[float16, 64], b: buffer[int8], l: local[float32, 8], r: range[16], u: upcast[4]"
    a, b = buffer(0, float16, 64), buffer(1, int8, 1 << 20)
    local = make(ops.LOCAL, dtype=float32.ptr("local"), arg=BufferArg(0, 8))
    r, u = range_(0, 16), range_(1, 4, AxisKind.UPCAST)
    load = make(ops.LOAD, a, make(ops.ADD, r, u))
    assert parse_expression("load(a, r + u)", given) is load
    assert parse_expression("load[4](b, 8)", given) is make(ops.LOAD, b, const(index, 8), dtype=int8.vec(4))
    gated = make(ops.LOAD, a, r, make(ops.LT, r, const(index, 3)), const(float16, 0.0))
    assert parse_expression("load(a, r, r < 3, 0)", given) is gated
    assert parse_expression("store(l, 1, 2)", given) is make(ops.STORE, local, const(index, 1), const(float32, 2.0))
    assert parse_expression("reduce[add](load(a, r + u), r)", given) is make(ops.REDUCE, load, r, arg=ops.ADD)
    wide = make(ops.WIDEN, load, u, dtype=float16.vec(4))
    assert parse_expression("widen(load(a, r + u), u)", given) is wide
    folded = make(ops.FOLD_LANES, wide, dtype=float16.vec(2), arg=ops.MAX)
    assert parse_expression("fold_lanes[max, 2](widen(load(a, r + u), u))", given) is folded


def test_every_kind_of_loop_counts_on() -> None:
    names = free_names(parse_given("a: reduce[2], b: unroll[3], c: range[4]"), [])
    assert [node.arg for node in names.values()] == [
        RangeArg(0, AxisKind.REDUCE),
        RangeArg(1, AxisKind.UNROLL),
        RangeArg(2, AxisKind.LOOP),
    ]


def test_names_without_a_description_have_the_default_type() -> None:
    assert parse_expression("x + y") is make(ops.ADD, var("x"), var("y"))
    assert parse_expression("x", default=float32) is var("x", float32)
    bounded = make(ops.VAR, dtype=index, arg=VarArg("i", -2, 3))
    assert parse_expression("i", "i in -2..4", default=float32) is bounded
    assert parse_expression("i", "i in -2..4", default=int8) is make(ops.VAR, dtype=int8, arg=VarArg("i", -2, 3))


# --- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("1 +", "", "<expression>:1:4: error[E001]: expected a term, found the end of the text\n  1 +\n     ^"),
        ("", "", "<expression>:1:1: error[E001]: expected a term, found the end of the text\n  \n  ^"),
        ("x +\n  y z", "", "<expression>:2:5: error[E001]: expected an operator, found `z`\n    y z\n      ^"),
        ("x + f", "f: int8", ("<expression>:1:1: error[E030]: add(var: index, var: int8): operands must have one type, "
                             "got index, int8\n  x + f\n  ^^^^^")),
        ("x + 1.5", "", "<expression>:1:5: error[E030]: `1.5` is no value of type index\n  x + 1.5\n      ^^^"),
        ("x + true", "", "<expression>:1:5: error[E030]: `true` is no value of type index\n  x + true\n      ^^^^"),
        ("load(x, 1)", "", ("<expression>:1:6: error[E030]: this must be a buffer: describe it after `given`, as "
                           "`b: buffer[float32]`\n  load(x, 1)\n       ^")),
        ("gep[4](v)", "v: int8x4", ("<expression>:1:1: error[E030]: gep(var: int8x4): there is no lane 4 in int8x4\n"
                                   "  gep[4](v)\n  ^^^^^^^^^")),
        ("vec[{1 // 0}]", "", "<expression>:1:6: error[E030]: this has no value here\n  vec[{1 // 0}]\n       ^^^^^^"),
        ("vec[x for k in 0..0]", "", ("<expression>:1:1: error[E030]: a vector needs at least one lane\n"
                                     "  vec[x for k in 0..0]\n  ^^^^^^^^^^^^^^^^^^^^")),
        ("x", "i in", "<given>:1:5: error[E001]: expected a number, found the end of the text\n  i in\n      ^"),
        ("_ + 1", "", "<expression>:1:1: error[E041]: `_` can only stand on the left side\n  _ + 1\n  ^"),
    ],
)  # fmt: skip
def test_mistakes_show_their_place(text: str, given: str, message: str) -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse_expression(text, given)
    assert str(caught.value) == message


def test_a_term_error_names_its_place() -> None:
    (case,) = rule("r: x + 0 => x test i + 0 => i").cases
    with pytest.raises(TermError, match=r"^t\.rules:3:\d+: `i` is not described$"):
        build_term(case.before, {})


# --- size ------------------------------------------------------------------------------------------------------------


def test_long_sums() -> None:
    node = parse_expression(" + ".join(["x"] * 5_000))
    depth = 0
    while node.op is ops.ADD:
        node, depth = node.src[0], depth + 1
    assert depth == 4_999


def test_long_sums_of_literals() -> None:
    node = parse_expression(" + ".join(["1"] * 2_000) + " + h", "h: float16")
    assert node.dtype is float16


@pytest.mark.parametrize("text", ["(" * 5_000 + "x" + ")" * 5_000, "x"])
def test_parentheses_are_no_depth(text: str) -> None:
    assert parse_expression(text) is var("x")


@pytest.mark.parametrize(
    "text", ["-" * 5_000 + "x", "exp2(" * 5_000 + "x" + ")" * 5_000, "x - (" * 999 + "x" + ")" * 999]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(RuleSyntaxError, match="this is nested more than 120 deep"):
        parse_expression(text)


# --- tests of rules --------------------------------------------------------------------------------------------------


def test_the_graphs_of_a_case() -> None:
    found = rule("r: (x*c + y) % c => y % c on index test (i*12 + j) % 4 => j % 4 given i in 0..9")
    (case,) = found.cases
    assert case.after is not None
    names = free_names(case.given, [case.before, case.after], default_type(found))
    assert list(names) == ["i", "j"]
    assert build_term(case.before, names) is parse_expression("(i*12 + j) % 4", "i in 0..9")
    assert build_term(case.after, names) is parse_expression("j % 4")


def test_what_a_case_becomes_may_be_a_literal() -> None:
    (case,) = rule("r: x * 0 => 0 on float(nnan) test f * 0 => 0 given f: float16, flags(nnan)").cases
    assert case.after is not None
    assert build_term(case.after, {}, float16) is const(float16, 0.0)


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("", index),
        ("on index", index),
        ("on int", int32),
        ("on sint, float", int32),
        ("on uint", uint32),
        ("on float(nsz)", float32),
        ("on bool", bool_),
        ("on float16, index", float16),
    ],
)
def test_default_type(on: str, expected: DType) -> None:
    assert default_type(rule(f"r: x + x => x {on}")) is expected


def test_the_context_of_a_case() -> None:
    found = rule(
        "r: x + 0 => x test i + 0 => i given target(max, half, 4, 8), flags(nsz), flags2: int8 test j + 0 => j"
    )
    first, second = found.cases
    assert case_context(first) == Context(Target("test", frozenset({"max", "half"}), (8, 4)), frozenset({"nsz"}))
    assert case_context(second) == Context()


def test_vectors_and_their_scalars_are_told_apart() -> None:
    assert dtypes.by_name("float32x4") is parse_expression("v", "v: float32x4").dtype
