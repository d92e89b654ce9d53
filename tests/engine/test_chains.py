"""Rules on chains: `add{x*c, ...rest}` wherever its terms stand, shares, the canonical order, linear cost."""

from __future__ import annotations

from time import process_time

import pytest
from rulewright.engine import ops
from rulewright.engine.dtypes import float32, index
from rulewright.engine.language.expressions import parse_expression
from rulewright.engine.order import sort_key, structural_hash
from rulewright.engine.rewriting import LoopError, RuleSet
from rulewright.engine.rewriting.chains import combined, terms_of
from rulewright.engine.target import Context
from rulewright.engine.uop import UOp, const, make, range_, variable

HEADER = "vars x, y, z, xs, ys, rest\nconsts c, c1, c2\n"

COLLECT = """
rule collect: add{x*c1, x*c2, ...rest} => x*{c1 + c2} + rest on index, int, float
rule double: add{x, x, ...rest} => x*2 + rest on index, int
rule collect-one: add{x*c, x, ...rest} => x*{c + 1} + rest on index, int
rule zero: x*0 => 0 on index
rule drop-zero: x + 0 => x on index
"""


def rules(text: str, stage: str = "fix(g)") -> RuleSet:
    return RuleSet.from_text(f"module m\n{HEADER}group g {{\n{text}\n}}\npipeline p = {stage}\n")


def rewritten(text: str, expression: str, given: str = "", flags: tuple[str, ...] = ()) -> UOp:
    graph = parse_expression(expression, given)
    return rules(text).rewrite(graph, "p", Context(flags=frozenset(flags)))[0]


def same(text: str, expression: str, expected: str, given: str = "") -> None:
    assert rewritten(text, expression, given) is parse_expression(expected, given)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("i*3 + i*4", "i*7"),
        ("i*3 + j + i*4", "i*7 + j"),
        ("j + (i*3 + (k + i*4))", "j + i*7 + k"),
        ("i + j + i", "i*2 + j"),
        ("i + j + i + j + i", "i*3 + j*2"),
        ("i*3 + j + i*-3", "j"),
        ("(i + j)*3 + k + (i + j)*4", "(i + j)*7 + k"),
        ("i*3 + j*4", "i*3 + j*4"),
        ("(i*3 + j + i*4) % 5", "(i*7 + j) % 5"),
        ("max(i*3 + j + i*4, 5) + i*2 + i*4", "max(i*7 + j, 5) + i*6"),
    ],
)
def test_terms_meet_wherever_they_stand(before: str, after: str) -> None:
    same(COLLECT, before, after)


def test_an_unchanged_chain_is_the_same_object() -> None:
    graph = parse_expression("(i + (j + k)) % 4")
    assert rules(COLLECT).rewrite(graph, "p")[0] is graph


def test_floats_are_only_reassociated_where_the_kernel_grants_it() -> None:
    text, given = "f*2.0 + g + f*3.0", "f: float32, g: float32"
    assert rewritten(COLLECT, text, given) is parse_expression(text, given)
    assert rewritten(COLLECT, text, given, flags=("reassoc",)) is parse_expression("f*5.0 + g", given)


def test_the_rest_may_be_empty() -> None:
    text = "rule r: add{x*c1, x*c2, ...rest} => max(x*{c1 + c2}, rest) on index"
    same(text, "i*2 + i*3", "max(i*5, 0)")
    same(text, "i*2 + j + i*3", "max(i*5, j)")


def test_without_a_rest_the_terms_are_all() -> None:
    text = "rule r: add{x*c, y, y} => x - y on index"
    same(text, "j + i*3 + j", "i - j")
    same(text, "j + i*3 + j + k", "j + i*3 + j + k")


def test_three_terms_with_backtracking() -> None:
    text = "rule r: add{x*c1, y*c1, x*y, ...rest} => (x - y) + rest on index"
    same(text, "i*2 + j*3 + k*3 + a + j*k", "i*2 + (j - k) + a")
    same(text, "i*2 + j*3 + k*4 + j*k", "i*2 + j*3 + k*4 + j*k")


def test_a_failed_guard_tries_other_terms() -> None:
    text = """
    rule r: add{x*c1, y*c2, ...rest} => (x + y)*c1 + rest
      when c1 == c2 and min(x) > min(y)
      on index
      test i*3 + j*3 => (i + j)*3 given i in 1..9, j in 0..4
      keep i*3 + j*4 given i in 1..9, j in 0..4
    """
    given = "i in 1..9, j in 2..4, k in 0..3"
    same(text, "i*3 + j*4 + k*3", "(i + k)*3 + j*4", given)


def test_a_rule_may_drop_the_rest() -> None:
    text = "rule r: and{x, ~x, ...rest} => false on bool"
    same(text, "p & q & ~p", "false", "p: bool, q: bool")
    same(text, "p & q & ~p & (q | p)", "false", "p: bool, q: bool")


def test_below_another_operator() -> None:
    text = "rule r: add{x*c, ...rest} % c => rest % c on index"
    same(text, "(i + j*4 + k) % 4", "(i + k) % 4")
    same(text, "(i + j*4 + k*4) % 4", "i % 4")
    same(text, "(j*4) % 4", "0 % 4")
    same(text, "(i + j*5 + k) % 4", "(i + j*5 + k) % 4")


def test_below_another_operator_the_rest_is_looked_at_by_the_guard() -> None:
    text = """
    rule r: add{x*c1, ...rest} // c => x
      when c1 == c and rest in 0..c
      on index
      test (i + j*8) // 8 => j given i in 0..8
      keep (i + j*8) // 8 given i in 0..9
    """
    same(text, "(i + k + j*8) // 8", "j", "i in 0..4, k in 0..4")
    same(text, "(i*8 + k + j*8) // 8", "(i*8 + k + j*8) // 8", "i in 0..4, k in 0..4")
    same(text, "(i*8 + k + j*8) // 8", "j", "i in 0..1, k in 0..8")


SHARE = "rule r: add{...xs when divides(c, xs), ...rest} // c => xs // c + rest // c on index"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(i*8 + j + k*4 + 3) // 4", "(i*8 + k*4) // 4 + (j + 3) // 4"),
        ("(i*8 + k*4) // 4", "(i*8 + k*4) // 4"),
        ("(j + k) // 4", "(j + k) // 4"),
        ("(i*8) // 4", "(i*8) // 4"),
        ("(i*8 + j) // 0", "(i*8 + j) // 0"),
    ],
)
def test_a_guard_selects_terms(before: str, after: str) -> None:
    same(SHARE, before, after)


def test_several_shares() -> None:
    text = """
    rule r: add{x*3, ...xs when divides(4, xs), ...ys when divides(2, ys), ...rest} => max(max(x, xs), max(ys, rest))
      on index
    """
    same(text, "i*8 + j*6 + k*3 + j + i*4", "max(max(k, i*8 + i*4), max(j*6, j))")
    same(text, "i*8 + j*6 + k*3", "i*8 + j*6 + k*3")


def test_chains_of_other_operators() -> None:
    biggest = "rule r: max{x*c1, x*c2, ...rest} => max(x*{max(c1, c2)}, rest) on index"
    same(biggest, "max(max(i*2, j), i*3)", "max(i*3, j)")
    same("rule r: mul{x, recip(x), ...rest} => rest on float", "f * recip(f)", "f * recip(f)", "f: float32")
    same("rule r[op in {and, or}]: op{x, x, ...rest} => op(x, rest)", "p & q & p", "p & q", "p: bool, q: bool")


# --- the canonical order ---------------------------------------------------------------------------------------------

ORDER = "rule order[op in {add, mul}]: op{...xs} => op{...sorted(xs)} on index, int, float(reassoc)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("3 + i", "i + 3"),
        ("j + i", "i + j"),
        ("i + j", "i + j"),
        ("j*3 + 5 + i", "i + j*3 + 5"),
        ("k + (j + (i + 1))", "i + j + k + 1"),
        ("(2*j)*i", "i*j*2"),
        ("(b + a) % 4 + (d + c)", "(a + b) % 4 + c + d"),
    ],
)
def test_the_canonical_order(before: str, after: str) -> None:
    same(ORDER, before, after)


def test_what_varies_in_outer_loops_comes_first() -> None:
    outer, inner, x = range_(0, 4), range_(1, 8), variable("z", 0, 9)
    terms = [make(ops.MUL, inner, const(index, 3)), const(index, 7), outer, x]
    graph = combined(ops.ADD, index, terms)
    result, _ = rules(ORDER).rewrite(graph, "p")
    assert terms_of(ops.ADD, result) == (x, outer, terms[0], terms[1])


def test_equal_sums_become_one_node_in_every_order() -> None:
    terms = ["i*4", "j", "i//3", "(i % 5)*j", "7"]
    text = COLLECT + ORDER
    first = rewritten(text, " + ".join(terms))
    for turn in range(5):
        turned = terms[turn:] + terms[:turn]
        assert rewritten(text, " + ".join(turned)) is first
        assert rewritten(text, " + (".join(reversed(turned)) + ")" * 4) is first


def test_strict_floats_keep_their_order() -> None:
    given = "f: float32, g: float32"
    assert rewritten(ORDER, "g + f", given) is parse_expression("g + f", given)
    assert rewritten(ORDER, "g + f", given, flags=("reassoc",)) is parse_expression("f + g", given)


def test_hashes_differ_by_bits_types_and_loops() -> None:
    nodes = [const(float32, value) for value in (0.0, -0.0, 1.0)]
    nodes += [const(index, 1), range_(0, 4), range_(1, 4), variable("i", 0, 3), variable("i", 0, 4)]
    assert len({structural_hash(node) for node in nodes}) == len(nodes)
    assert sort_key(nodes[0])[0]
    assert not sort_key(nodes[-1])[0]


def test_a_hash_is_the_same_everywhere() -> None:
    assert structural_hash(parse_expression("(i*4 + j) % 7")) == 4515383664815795586


# --- the engine ------------------------------------------------------------------------------------------------------


def test_steps_tell_each_firing() -> None:
    _, trace = rules(COLLECT).rewrite(parse_expression("i*3 + j + i*4 + i"), "p", keep_steps=True)
    steps = [(step.rule, step.before, step.after) for _, report in trace.stages for step in report.steps]
    assert steps == [
        ("g.collect", parse_expression("i*3 + j + i*4 + i"), parse_expression("i*7 + j + i")),
        ("g.collect-one", parse_expression("i*7 + j + i"), parse_expression("i*8 + j")),
    ]
    assert trace.fires["g.collect"] == 1


def test_one_rule_alone_fires_once() -> None:
    ruleset = rules(COLLECT)
    matcher = ruleset.rule_matcher("g.double", Context())
    graph = parse_expression("i + j + i + j")
    assert matcher.match_chain(graph) == (parse_expression("i*2 + j + j"), "g.double")
    assert matcher.match_chain(parse_expression("i + j")) is None


def test_once_applies_a_rule_to_terms_once() -> None:
    assert rules("rule r: add{x*c, ...rest} => (x*{c + 1})*{c + 1} + rest on index", "once(g)").rewrite(
        parse_expression("i*2 + j"), "p"
    )[0] is parse_expression("i*3*3 + j")


def test_rules_on_terms_that_never_end_are_named() -> None:
    with pytest.raises(LoopError, match=r"g\.grow"):
        rules("rule grow: add{x*c, ...rest} => x*{c + 1} + rest on index").rewrite(
            parse_expression("i*2 + j"), "p", fuel=500
        )


def test_rules_on_chains_that_undo_each_other_are_named() -> None:
    text = "rule there: add{x, y, ...rest} => max(x, y) + rest on index\nrule back: max(x, y) => x + y on index"
    with pytest.raises(LoopError, match=r"g\.there|g\.back"):
        rewritten(text, "i + j + k")


def test_a_sum_whose_terms_are_exponentially_many_costs_its_nodes() -> None:
    graph, before = parse_expression("i"), parse_expression("j")
    for _ in range(60):
        graph, before = make(ops.ADD, graph, before), graph
    assert len(terms_of(ops.ADD, graph)) <= 4
    rules(COLLECT + ORDER).rewrite(graph, "p")


def seconds(graph: UOp, ruleset: RuleSet) -> float:
    start = process_time()
    ruleset.rewrite(graph, "p")
    return process_time() - start


def pairs(count: int) -> UOp:
    """A sum in which every term has a partner far away, and one that divides by parts of it."""
    names = [variable(f"v{number}", 0, 99) for number in range(count)]
    terms = [make(ops.MUL, name, const(index, factor)) for factor in (3, 4) for name in names]
    total = combined(ops.ADD, index, terms)
    return make(ops.FLOORDIV, total, const(index, 7))


def test_pairs_in_a_long_sum_cost_linear_time() -> None:
    ruleset = rules(COLLECT + ORDER + SHARE)
    seconds(pairs(10), ruleset)
    short, long = (min(seconds(pairs(count), ruleset) for _ in range(2)) for count in (500, 4_000))
    assert long < 8 * 3 * short
    assert rules(COLLECT).rewrite(pairs(2), "p")[0] is make(
        ops.FLOORDIV, combined(ops.ADD, index, [make(ops.MUL, variable(f"v{k}", 0, 99), const(index, 7))
                                                for k in range(2)]), const(index, 7))  # fmt: skip


def test_a_sum_of_one_term_repeated_collapses() -> None:
    x = variable("x", 0, 9)
    graph = combined(ops.ADD, index, [x] * 20_000)
    assert rules(COLLECT).rewrite(graph, "p")[0] is make(ops.MUL, x, const(index, 20_000))


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("i*4 + j", True),
        ("i*4", True),  # its own only term
        ("i*4 + j + k", True),  # the shape does not show the terms of a longer chain
        ("max(i, j) + k", False),
        ("i", False),
    ],
)
def test_a_chain_is_only_tried_where_its_terms_may_be(expression: str, fits: bool) -> None:
    book = rules(
        "rule m: add{x*c1, ...rest} % c => rest % c when c > 1 and c1 == c on index test (i*2 + j) % 2 => j % 2 keep (i*3 + j) % 2"
    )
    (wanted,) = {row.operands[0] for row in book.compiled.groups["g"]}
    assert wanted.fits(parse_expression(expression)) is fits


def test_a_share_and_a_rest_take_two_terms() -> None:
    book = rules(
        "rule m: add{...xs when divides(c, xs), ...rest} % c => rest % c when c > 1 on index test (i*2 + j) % 2 => j % 2 keep (i*2 + j) % 1"
    )
    (wanted,) = {row.operands[0] for row in book.compiled.groups["g"]}
    assert wanted.fits(parse_expression("i + j")) and not wanted.fits(parse_expression("i*4"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("max(i*2 + j, i*2 + 3)", "max(j, 3)"),
        ("max(i + j, k)", "max(i + j, k)"),
        ("max(i + 3, j + 3)", "max(i + 3, j + 3)"),  # the guard says no before the rests are built
    ],
)
def test_two_chains_share_a_term_and_their_rests_differ(before: str, after: str) -> None:
    rule = "rule m: max(add{x, ...rest}, add{x, ...ys}) => max(rest, ys) when not constant(x) on index"
    rule += " test max(i + j, i + k) => max(j, k) keep max(i, j)"
    same(rule, before, after)


def test_a_rest_that_stands_in_two_chains_must_be_the_same() -> None:
    rule = (
        "rule m: max(add{x*c, ...rest}, add{y*c1, ...rest}) => max(x*c, y*c1) + rest when not constant(rest) on index"
    )
    rule += " test max(i*2 + j, k*3 + j) => max(i*2, k*3) + j keep max(i*2, k*3)"
    same(rule, "max(i*2 + j, k*3 + j)", "max(i*2, k*3) + j")
    same(rule, "max(i*2 + j, k*3 + i)", "max(i*2 + j, k*3 + i)")
