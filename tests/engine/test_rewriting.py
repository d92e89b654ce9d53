"""The engine: matching, order, the fixed point, loops, depth."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rulewright.engine import dtypes, ops
from rulewright.engine.dtypes import index, int32
from rulewright.engine.errors import RewriteError
from rulewright.engine.language.expressions import parse_expression
from rulewright.engine.rewriting import LoopError, RuleSet, StopReason
from rulewright.engine.rewriting.fixed_point import run_stage
from rulewright.engine.rewriting.matcher import Matcher
from rulewright.engine.target import Context
from rulewright.engine.uop import UOp, const, intern, make, variable, walk

HEADER = "vars x, y, z\nconsts c, c1, c2\n"


def rules(text: str, stage: str = "fix(g)") -> RuleSet:
    return RuleSet.from_text(f"module m\n{HEADER}group g {{\n{text}\n}}\npipeline p = {stage}\n")


def rewritten(text: str, expression: str, given: str = "") -> UOp:
    return rules(text).rewrite(parse_expression(expression, given), "p")[0]


def test_an_unchanged_graph_is_the_same_object() -> None:
    graph = parse_expression("i * 3 + j")
    assert rewritten("rule r: x - x => 0", "i * 3 + j") is graph


def test_commutative_operators_match_in_every_order() -> None:
    for text in ("(i * 2) + j", "(2 * i) + j", "j + (i * 2)", "j + (2 * i)"):
        assert rewritten("rule r: x * 2 + y => x - y", text) is parse_expression("i - j"), text


def test_a_rule_that_says_ordered_matches_as_written_only() -> None:
    text = "rule r: x + 0 => x\n ordered"
    assert rewritten(text, "i + 0") is parse_expression("i")
    assert rewritten(text, "0 + i") is parse_expression("0 + i")


def test_a_failed_guard_lets_the_other_order_and_the_next_rule_try() -> None:
    text = """
    rule first: x + y => x
      when min(x) > min(y)
      test i + j => i given i in 5..9, j in 0..4
      keep i + j given i in 0..1, j in 0..1
    rule second: x + y => y * 2
    """
    assert rewritten(text, "j + i", "i in 5..9, j in 0..4") is parse_expression("i", "i in 5..9")
    same = "i in 0..1, j in 0..1"
    assert rewritten(text, "i + j", same) is parse_expression("j * 2", same)


def test_rules_are_tried_in_the_order_in_which_they_stand() -> None:
    assert rewritten("rule a: x % 4 => 1\nrule b: x % c => 2", "i % 4") is parse_expression("1")


def test_the_same_name_twice_is_the_same_node() -> None:
    text = "rule r: x * c1 + x * c2 => x * {c1 + c2}"
    assert rewritten(text, "i * 3 + i * 4") is parse_expression("i * 7")
    assert rewritten(text, "i * 3 + j * 4") is parse_expression("i * 3 + j * 4")


def test_what_has_no_value_does_not_fire() -> None:
    text = "rule r: c1 // c2 => {c1 // c2}"
    assert rewritten(text, "7 // 2") is parse_expression("3")
    assert rewritten(text, "7 // 0") is parse_expression("7 // 0")
    big = "rule r: c1 * c2 => {c1 * c2}"
    assert rewritten(big, "4611686018427387904 * 4") is parse_expression("4611686018427387904 * 4")


def test_literals_tell_the_zeros_apart() -> None:
    text = "rule r: x + 0 => x\n on float"
    zero, negative = (const(dtypes.float32, value) for value in (0.0, -0.0))
    f = parse_expression("f", "f: float32")
    ruleset = rules(text)
    assert ruleset.rewrite(make(ops.ADD, f, zero), "p")[0] is f
    assert ruleset.rewrite(make(ops.ADD, f, negative), "p")[0] is make(ops.ADD, f, negative)


def test_on_restricts_the_type_and_asks_for_flags() -> None:
    ruleset = rules("rule r: x * 0 => 0\n on int, float(nnan, nsz)")
    for text, given, flags, fires in (
        ("i * 0", "i: int32", (), True),
        ("i * 0", "", (), False),
        ("f * 0.0", "f: float32", (), False),
        ("f * 0.0", "f: float32", ("nnan",), False),
        ("f * 0.0", "f: float32", ("nnan", "nsz"), True),
    ):
        graph = parse_expression(text, given)
        result, _ = ruleset.rewrite(graph, "p", Context(flags=frozenset(flags)))
        assert (result is not graph) == fires, (text, given, flags)


def test_rules_that_undo_each_other_are_reported_with_their_names() -> None:
    with pytest.raises(LoopError, match=r"the rules loop: .*m?g\.there.*g\.back|g\.back.*g\.there") as caught:
        rewritten("rule there: x + y => x - y\nrule back: x - y => x + y", "i + j")
    assert sorted(set(caught.value.rules)) == ["g.back", "g.there"]
    assert caught.value.term in (parse_expression("i + j"), parse_expression("i - j"))


def test_a_rule_that_grows_its_term_runs_out_of_fuel() -> None:
    with pytest.raises(LoopError, match=r"do not come to an end.*g\.grow"):
        rules("rule grow: x % c => (x + 1) % c").rewrite(parse_expression("i % 4"), "p", fuel=500)


def test_once_applies_a_rule_to_each_node_once() -> None:
    ruleset = rules("rule grow: x % c => (x + 1) % c", "once(g)")
    graph, trace = ruleset.rewrite(parse_expression("i % 4"), "p")
    assert graph is parse_expression("(i + 1) % 4")
    assert trace.stages[0][1].stop is StopReason.APPLIED


def test_a_right_side_of_another_type_is_an_error() -> None:
    ruleset = rules("rule bad: cast[float32](x) => cast[float32](x)")
    rows = ruleset.compiled.groups["g"]
    matcher = Matcher(rows, {row.function: lambda node, context: const(int32, 0) for row in rows}, Context())
    graph = parse_expression("cast[float32](i)")
    with pytest.raises(RewriteError, match=r"rule g\.bad turned a float32 into a int32"):
        run_stage(graph, matcher)


def test_the_trace_says_which_rule_did_what() -> None:
    graph, trace = RuleSet.builtin().rewrite(
        parse_expression("(i * 12 + j) % 4", "j in 0..4"), "simplify", keep_steps=True
    )
    assert graph is parse_expression("j", "j in 0..4")
    assert trace.fires["remainder.mod-terms"] == 1
    step = next(s for _, report in trace.stages for s in report.steps if s.rule == "remainder.mod-terms")
    assert step.before is parse_expression("(i * 12 + j) % 4", "j in 0..4")


def test_a_million_additions_are_built_rewritten_and_freed() -> None:
    x = variable("x", 0, 9)
    one = const(index, 1)
    graph = x
    for _ in range(1_000_000):
        graph = intern(ops.ADD, index, (graph, one))
    result, trace = RuleSet.builtin().rewrite(graph, "simplify")
    assert result is make(ops.ADD, x, const(index, 1_000_000))
    assert trace.fires["algebra.add-constants"] == 999_999


def test_a_graph_whose_tree_is_exponential_costs_its_nodes() -> None:
    graph = parse_expression("i")
    for _ in range(200):
        graph = make(ops.MAX, make(ops.ADD, graph, graph), graph)
    _, trace = rules("rule r: max(x, x) => x").rewrite(graph, "p")
    assert trace.stages[0][1].visited <= 2 * sum(1 for _ in walk(graph))


def test_the_cache_is_rebuilt_when_it_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULEWRIGHT_CACHE", str(tmp_path))
    text = "rule unusual: x ^ x => 0\n on int"
    first = rules(text)
    (path,) = tmp_path.rglob("*.bin")
    path.write_bytes(path.read_bytes()[:100])
    second = rules(text)
    assert first.compiled.groups == second.compiled.groups
    graph = parse_expression("i ^ i", "i: int32")
    assert second.rewrite(graph, "p")[0] is const(int32, 0)


def test_processes_that_start_at_once_share_the_cache(tmp_path: Path) -> None:
    script = (
        "from rulewright.engine.rewriting import RuleSet\n"
        "rules = RuleSet.from_text('vars x\\ngroup g {\\n  rule r: x ^ x => 0 on int\\n}\\npipeline p = fix(g)\\n')\n"
        "print(len(rules.functions()))\n"
    )
    environment = {**os.environ, "RULEWRIGHT_CACHE": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in started] == ["1\n"] * 4
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.suffix for path in files] == [".bin"]
