"""The reference of the rule language is true: its examples load, and it lists all functions, operators and codes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rulewright.engine.language.builtins import BUILTINS
from rulewright.engine.language.cases import LOOPS, MEMORY
from rulewright.engine.language.diagnostics import CODES
from rulewright.engine.language.names import BRACKETS
from rulewright.engine.ops import OPS
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.target import FLOAT_FLAGS
from rulewright.verify.cases import run_cases

PAGE = (Path(__file__).parents[2] / "docs" / "rule-language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```rules\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DECLARATIONS = EXAMPLES[0]
WITH_OURS = re.findall(r"^```rules with ours\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def problems(rules: RuleSet, file: str) -> list[str]:
    return [f"{case.rule}: {case.problem}" for case in run_cases(rules, rules.book(), {file}) if case.problem]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example_loads(number: int) -> None:
    text = EXAMPLES[number]
    if text.startswith("rule "):
        text = f"{DECLARATIONS}group example {{\n{text}}}\n"
    rules = RuleSet.from_text(text, f"example-{number}.rules")
    assert problems(rules, f"example-{number}.rules") == []


@pytest.mark.parametrize("text", WITH_OURS)
def test_example_on_top_of_ours(text: str) -> None:
    assert problems(RuleSet.loads(text, "mine.rules"), "mine.rules") == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 10


WORDS = [*BUILTINS, *(name for name in BRACKETS if name != "vectorize"), *LOOPS, *MEMORY, *sorted(FLOAT_FLAGS)]


@pytest.mark.parametrize("word", WORDS)
def test_word_is_described(word: str) -> None:
    assert re.search(rf"\b{re.escape(word)}\b", PAGE)


def test_signs_are_described() -> None:
    signs = {op.symbol for op in OPS.values() if op.symbol is not None}
    assert {sign for sign in signs if f"{sign}" not in PAGE.replace("\\|", "|")} == set()


def test_every_code_is_listed() -> None:
    listed = dict(re.findall(r"^\| ([EW]\d{3}) \| (.*) \|$", PAGE, re.MULTILINE))
    assert listed == CODES
