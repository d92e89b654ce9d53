"""Views and externs: what they match, what they build, and that a meaning runs where no function is registered."""

from __future__ import annotations

import pytest
from rulewright.engine.language.expressions import parse_expression
from rulewright.engine.printing import expression
from rulewright.engine.rewriting import RuleSet

HEADER = """vars x, y
consts c, c1, c2
view affine(x, c) of x + c
view scaled(x, c1, c2) of x * c1 + c2
extern pred small(n) means n in 0..8
extern pred within(e, n) means min(e) >= 0 and max(e) < n
extern fn half(n) means n // 2
"""


def once(rule: str, text: str, given: str = "") -> str | None:
    """What the rule alone makes of an expression; None if it does not fire."""
    from rulewright.engine.target import Context

    rules = RuleSet.from_text(f"{HEADER}group g {{ {rule} }}")
    found = rules.rule_matcher("g.r", Context()).match(parse_expression(text, given))
    return None if found is None else expression(found[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(i + 9) // 4", "i * 9"), ("i // 4", "i * 0"), ("(i + j) // 4", "(i + j) * 0"), ("i % 4", None)],
)
def test_an_absent_constant_is_neutral(text: str, expected: str | None) -> None:
    assert once("rule r: affine(x, c1) // c => x * {c1} on index", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("(i*6 + 3) % 5", "i * 6 + 3"), ("i*6 % 5", "i * 6 + 0"), ("(i + 3) % 5", "i * 1 + 3"), ("i % 5", "i * 1 + 0")],
)
def test_every_constant_may_be_absent(text: str, expected: str) -> None:
    assert once("rule r: scaled(x, c1, c2) % 5 => x * {c1} + {c2} on index", text) == expected


def test_a_view_builds_its_term() -> None:
    assert once("rule r: x - c => affine(x, {-c}) on index", "i - 3") == "i + -3"
    assert once("rule r: x - c => affine(x, 0) on index", "i - 3") == "i"


def test_a_whole_left_side_keeps_an_operator() -> None:
    assert once("rule r: scaled(x, c1, c2) => x * {c1 + c2 + 1} on index", "i * 3") == "i * 4"
    assert once("rule r: scaled(x, c1, c2) => x * {c1 + c2 + 1} on index", "i + 3") == "i * 5"


def test_a_constant_that_is_repeated_is_one_value() -> None:
    rule = "rule r: affine(x, c) * affine(y, c) => x on index"
    assert once(rule, "(i + 3) * (j + 3)") == "i"
    assert once(rule, "(i + 3) * (j + 4)") == "i + 3"  # with c = 0
    assert once(rule, "i * j") == "i"


@pytest.mark.parametrize(("text", "fires"), [("i * 7", True), ("i * 8", False)])
def test_a_meaning_is_a_guard(text: str, fires: bool) -> None:
    assert (once("rule r: x * c => x when small(c) on index test i * 1 => i keep i * 9", text) is not None) == fires


def test_a_meaning_may_speak_of_expressions() -> None:
    rule = "rule r: x % c => {half(c)} when within(x, half(c) + 1) on index test i % 8 => 4 given i in 0..2 keep i % 8"
    assert once(rule, "i % 8", "i in 0..5") == "4"
    assert once(rule, "i % 8", "i in 0..6") is None
