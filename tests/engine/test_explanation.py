"""Explanations agree with the engine, and say where a match or a guard stopped."""

from __future__ import annotations

import itertools

import pytest
from rulewright.engine.language.expressions import case_context, parse_expression
from rulewright.engine.language.syntax import Case, Rule
from rulewright.engine.printing import expression
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.rewriting.explanation import Attempt, Explainer, place_of, wholes
from rulewright.engine.target import Context
from rulewright.verify.cases import case_graphs

RULES = RuleSet.builtin()
CASES = [(rule, case) for group in RULES.book().groups.values() for rule in group.rules for case in rule.cases]


@pytest.mark.parametrize(("rule", "case"), CASES, ids=[f"{rule.id}:{case.span.line}" for rule, case in CASES])
def test_agrees_with_the_engine_on_every_case_of_our_rules(rule: Rule, case: Case) -> None:
    before, _ = case_graphs(rule, case)
    attempt = Explainer(RULES, case_context(case)).attempt(rule, before)
    if case.after is None:
        assert attempt.after is None
        assert attempt.problem is not None
        assert attempt.place is not None
    else:
        assert attempt.problem is None
        assert all(clause.holds for clause in attempt.guard)
        found = RULES.rule_matcher(rule.id, case_context(case)).match(before)
        assert found is not None
        assert attempt.after is found[0]


def explain(rules: str, text: str, given: str = "", context: Context | None = None) -> Attempt:
    explainer = Explainer(RuleSet.from_text(rules, "mine.rules"), context or Context())
    (rule,) = explainer.by_id.values()
    return explainer.attempt(rule, parse_expression(text, given))


HEAD = "vars x, y\nconsts c, c1\ngroup g {\n"


def test_names_and_facts_of_a_hit() -> None:
    attempt = explain(
        HEAD
        + "rule r: (x + y) % c => y % c when c > 0 and divides(c, x) test (i*4 + j) % 4 => j % 4 keep (i + j) % 4 }",
        "(i*12 + j) % 4",
        "i in 0..64, j in 0..5",
    )
    assert [(value.text, value.value, value.facts) for value in attempt.names] == [
        ("c", "4", ""),
        ("x", "i * 12", "in 0..757, a multiple of 12"),
        ("y", "j", "in 0..5"),
    ]
    assert [(clause.text, clause.holds) for clause in attempt.guard] == [("c > 0", True), ("divides(c, x)", True)]
    assert attempt.after is parse_expression("j % 4", "j in 0..5")


def test_a_part_of_the_guard_that_fails_is_named_with_its_values() -> None:
    rule = "rule r: max(x, y) => x when min(x) >= max(y) test max(1, 0) => 1 keep max(i, 0) }"
    attempt = explain(HEAD + rule, "max(i, 2)", "i in 1..4")
    assert attempt.problem == "`min(x) >= max(y)` is not known to hold"
    assert [(value.text, value.value) for value in attempt.guard[0].values][::2] == [("min(x)", "1"), ("max(y)", "2")]


def test_a_name_that_stands_for_two_things() -> None:
    attempt = explain(HEAD + "rule r: x - x => 0 }", "i*2 - j")
    assert attempt.problem == "`x` is i * 2, and here stands j"
    assert attempt.place is not None
    assert (attempt.place.line, attempt.place.column) == (4, 13)


def test_another_operator() -> None:
    assert explain(HEAD + "rule r: (x // c) % c1 => x }", "i % 4").problem == "`x // c` does not match i (index)"


def test_another_type() -> None:
    attempt = explain(HEAD + "rule r: x * 0 => 0 on index, float(nsz) }", "f * 0.0", "f: float32")
    assert attempt.problem == "the rule is on index, float(nsz), and this is float32 with no flags"


def test_a_right_side_without_a_value() -> None:
    attempt = explain(HEAD + "rule r: x + c => x + {1 // c} }", "i + 0")
    assert attempt.problem is not None
    assert "no value" in attempt.problem


def test_of_several_orders_the_furthest_is_shown() -> None:
    attempt = explain(HEAD + "rule r: (x // c) + (x % c) => x }", "i % 4 + j // 4")
    assert attempt.problem == "`x` is i, and here stands j"


def test_whole_terms_follow_the_steps() -> None:
    graph = parse_expression("(i*12 + j) % 4 + x*1", "i in 0..64, j in 0..4")
    result, trace = RULES.rewrite(graph, "simplify", keep_steps=True)
    told = list(wholes(graph, [step for _, report in trace.stages for step in report.steps]))
    assert told[0][0] is graph
    assert told[-1][1] is result
    assert all(after is before for (_, after), (before, _) in itertools.pairwise(told))


def test_shared_parts_are_replaced_everywhere() -> None:
    part = "((i*12 + j) % 4)"
    graph = parse_expression(f"{part} // 2 + max({part}, k)", "i in 0..64, j in 0..4")
    result, trace = RULES.rewrite(graph, "simplify", keep_steps=True)
    *_, (_, after) = wholes(graph, [step for _, report in trace.stages for step in report.steps])
    assert after is result
    assert expression(after) == "max(j, k) + j // 2"


def test_the_place_of_a_part() -> None:
    graph = parse_expression("a + max(b, c*2)")
    assert place_of(parse_expression("c*2"), graph) == (1, 1)
    assert place_of(graph, graph) == ()
    assert place_of(parse_expression("c*3"), graph) is None
