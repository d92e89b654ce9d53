"""Mutation: a guard that is weakened is refuted where it matters, and found right where it does not."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rulewright.cli.app import app
from rulewright.engine.language.syntax import Rule
from rulewright.engine.rewriting import RuleSet
from rulewright.verify.mutation.judge import Fate, Judgement, judge
from rulewright.verify.mutation.mutants import mutants_of
from rulewright.verify.mutation.runner import judge_mutants, mutants_in, read_explained, stale, write_explained
from typer.testing import CliRunner

TEXT = """
vars x
consts c
group mine {
  rule small: x % c => x
    when x in 0..c
    on index
    test i % 4 => i given i in 0..4
    keep i % 4 given i in 0..5

  rule implied: x // c => 0
    when x in 0..c and c > 0
    on index
    test i // 4 => 0 given i in 0..4
    keep i // 4 given i in 0..5
}
"""


def rules() -> tuple[RuleSet, dict[str, Rule]]:
    ruleset = RuleSet.from_text(TEXT)
    return ruleset, {rule.id: rule for rule in ruleset.book().groups["mine"].rules}


def test_each_condition_is_taken_out_and_weakened() -> None:
    _, named = rules()
    assert [one.change for one in mutants_of(named["mine.small"])] == [
        "without `x in 0..c`",
        "`x in 0..c` becomes `x in -1..c`",
        "`x in 0..c` becomes `x in 0..c + 1`",
        "on index, int",
    ]


def test_what_matters_is_refuted_and_what_is_implied_is_right() -> None:
    ruleset, named = rules()
    book = ruleset.book()
    fates = {one.change: judge(book, one).fate for one in mutants_of(named["mine.implied"])}
    assert fates["without `x in 0..c`"] is Fate.REFUTED
    assert fates["`x in 0..c` becomes `x in 0..c + 1`"] is Fate.REFUTED
    assert fates["without `c > 0`"] is Fate.RIGHT


def test_a_sample_of_our_own_mutants_meets_its_fate() -> None:
    book = RuleSet.builtin().book()
    every = {one.name: one for one in mutants_in(book)}
    names = (
        "remainder.mod-in-range: without `x in 0..c`",
        "remainder.mod-in-range: `x in 0..c` becomes `x in 0..c + 1`",
        "division.div-of-mod: without `c1 % c == 0`",
        "division.div-div: without `c > 0`",
        "algebra.mul-zero: on float without the flag nsz",
        "extrema.clamp: without `c1 <= c2`",
    )
    for name in names:
        assert judge(book, every[name], proofs=False).fate is Fate.REFUTED, name


def test_explanations_are_kept_and_found_stale(tmp_path: Path) -> None:
    ruleset, _ = rules()
    judged = judge_mutants(ruleset.sources, list(mutants_in(ruleset.book())), 1)
    file = tmp_path / "explained.json"
    write_explained(judged, {}, file)
    explained = read_explained(file)
    assert explained and all(one.proven for one in explained.values())
    assert stale(ruleset.book(), explained) == []
    other = RuleSet.from_text(TEXT.replace("=> 0\n    when", "=> 1\n    when", 1)).book()
    changed = {name for name in explained if name.startswith("mine.implied")}
    assert changed and set(stale(other, explained)) == changed
    assert Judgement("m", "k", Fate.RIGHT, "", 0).row()["fate"] == "right"


def test_the_command_reports_survivors_and_writes_json(tmp_path: Path) -> None:
    rules_file, report = tmp_path / "mine.rules", tmp_path / "mutants.json"
    rules_file.write_text(TEXT, encoding="utf-8")
    done = CliRunner().invoke(app, ["check", str(rules_file), "--mutate", "--jobs", "1", "--json", str(report)])
    assert done.exit_code == 0, done.output
    rows = json.loads(report.read_text(encoding="utf-8"))
    assert {row["fate"] for row in rows} == {"refuted", "right"}


def test_the_page_on_mutation_tells_the_truth() -> None:
    page = (Path(__file__).parents[2] / "docs" / "mutation.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(example, {})  # noqa: S102
    assert re.findall(r"^\| ([a-z]+) \|", page, re.MULTILINE) == [fate.value for fate in Fate]
