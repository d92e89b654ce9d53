"""Wrong rules are refuted with a case that is one, right ones are proved, and what is not proved says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rulewright.engine.language.parser import RuleSource, load_rules
from rulewright.engine.language.syntax import Rule
from rulewright.engine.rewriting import RuleSet
from rulewright.verify.proofs.cache import COMMITTED, Cache, meaning_of
from rulewright.verify.proofs.prove import prove
from rulewright.verify.proofs.runner import known_verdicts, prove_rules, rules_of
from rulewright.verify.proofs.verdicts import RuleVerdict, Verdict, as_json, from_row, summary

HEAD = "module m\nvars x, y, z, r, b, i, p\nconsts c, c1, c2\ntypes t, u\ngroup g {\n"


def rule(text: str) -> Rule:
    """One rule; guarded ones bring cases that nobody runs here."""
    cases = "\n test x => x\n keep x" if "when" in text else ""
    book = load_rules([RuleSource("m.rules", f"{HEAD}rule it: {text}{cases}\n}}")])
    return rules_of(book)[0]


WRONG = {
    "times zero of a float": ("x * 0 => 0 on float", "x = -0.0"),
    "NaN minus itself": ("x - x => 0 on float", "nan"),
    "negative zero plus zero": ("x + 0 => x on float", "-0.0"),
    "a product that wraps": ("truncdiv(x * c, c) => x on sint when c != 0", "c = "),
    "a sum that wraps": ("x + c1 < c2 => x < {c2 - c1} on int", "before"),
    "a shift for C's division": ("truncdiv(x, 2) => x >> 1 on sint", "x = -"),
    "a cast by way of a narrow type": ("cast[t](cast[u](x)) => cast[t](x) on int", "u ="),
    "branches exchanged": ("where(p, x, y) => where(p, y, x)", "p ="),
    "a maximum over no steps": ("reduce[max](x, r) => x", "0 steps"),
    "a sum of what varies": ("reduce[add](x, r) => x * {extent(r)} on int", "1 steps"),
    "a gate that is dropped": ("load(b, i, p, x) => load(b, i)", "p = false"),
    "a remainder dropped": ("x % c => x on index", "c = "),
    "a negative divisor": ("(x // c1) // c2 => x // {c1 * c2} on index", "c2 = -"),
    "bits shifted out": ("(x << y) >> y => x on uint", "y = "),
    "times zero, whatever the order": ("x * 0 => 0 on float(reassoc)", "x = nan"),
    "an order that is not there": ("max(x, y) - y => max(x - y, 0) on int", "x ="),
    "a shift too far": ("x * 256 => x << 8 on uint8, sint", "undefined"),
    "unsigned below zero": ("x - y < 0 => x < y on uint", "before"),
}

RIGHT = {
    "times zero where granted": "x * 0 => 0 on float(nnan, ninf, nsz)",
    "a difference": "x + y - y => x on int, index",
    "a quotient": "(x * c) // c => x on index when c != 0",
    "a shift for the floor division": "x // 2 => x >> 1 on int",
    "distribution, whatever the order": "(x + y) * z => x * z + y * z on float(reassoc)",
    "a fused product": "x * y + z => mulacc(x, y, z) on float(contract)",
    "divisible terms": "(x + y) % c => y % c on index when c > 0 and divides(c, x)",
    "a narrow cast in between": "cast[t](cast[int32](x)) => cast[t](x) on int when fits(x, int32)",
    "powers of two": "x % c => x & {c - 1} on int8, uint8 when c > 0 and c & (c - 1) == 0",
    "a share of a sum": "add{...x when divides(c, x), ...y} % c => y % c on index when c > 0",
}

BOUNDED = {
    "a maximum of what does not vary": "reduce[max](x, r) => x on int when not uses(x, r) and extent(r) > 0",
    "a gate for a choice": "where(p, load(b, i), x) => load(b, i, p, x)",
    "lanes": "gep[0](vec[x, y]) => x",
}


@pytest.mark.parametrize(("text", "shown"), WRONG.values(), ids=WRONG)
def test_a_wrong_rule_is_refuted_with_a_case(text: str, shown: str) -> None:
    verdict = prove(rule(text))
    assert verdict.verdict is Verdict.REFUTED
    assert shown in verdict.detail


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_a_right_rule_is_proved(text: str) -> None:
    assert prove(rule(text)).verdict is Verdict.PROVED


@pytest.mark.parametrize("text", BOUNDED.values(), ids=BOUNDED)
def test_loops_lanes_and_memory_are_bounded(text: str) -> None:
    verdict = prove(rule(text))
    assert verdict.verdict is Verdict.BOUNDED
    assert verdict.detail


def test_what_cannot_be_proved_is_trusted_only_with_a_reason() -> None:
    text = "exp2(log2(x)) => x on float(nnan, ninf)"
    assert prove(rule(text)).verdict in (Verdict.UNDECIDED, Verdict.REFUTED)
    trusted = prove(rule('exp2(log2(x)) => x on float(afn, nnan, ninf, nsz) because "they are inverse"'))
    assert trusted.verdict is Verdict.TRUSTED
    assert trusted.detail == "they are inverse"


def test_verdicts_are_kept_by_what_a_rule_means() -> None:
    one, other = rule("x + 0 => x on int"), rule("x + 0 => x on index")
    moved = rules_of(load_rules([RuleSource("n.rules", "module n\n\nvars x\ngroup h { rule a: x + 0 => x on int }")]))[
        0
    ]
    assert meaning_of(one) == meaning_of(moved) != meaning_of(other)


def test_the_cache_is_read_back_and_a_broken_one_is_ignored(tmp_path: Path) -> None:
    path, proven = tmp_path / "proofs.json", rule("x + 0 => x on int")
    cache = Cache.read(path)
    assert cache.of(proven) is None
    assert "not there" in str(cache.problem)
    cache.add(proven, prove(proven))
    cache.write(path, [proven])
    assert Cache.read(path).of(proven) == cache.of(proven)
    path.write_text(path.read_text()[:40])
    broken = Cache.read(path)
    assert broken.of(proven) is None
    assert "cannot be read" in str(broken.problem)


def test_processes_in_parallel_agree_with_one() -> None:
    source = RuleSource("m.rules", f"{HEAD}rule a: x + 0 => x on int\nrule b: x * 0 => 0 on float\n}}")
    rules = rules_of(load_rules([source]))
    alone, together = (prove_rules([source], rules, Cache(), jobs) for jobs in (1, 2))
    assert [one.line for one in alone.verdicts] == [one.line for one in together.verdicts]
    assert alone.fresh == 2
    assert [one.verdict for one in alone.verdicts] == [Verdict.PROVED, Verdict.REFUTED]


def test_reports() -> None:
    verdicts = [
        RuleVerdict("g.a", Verdict.PROVED, "", 9, 0.1, True),
        RuleVerdict("g.b", Verdict.BOUNDED, "up to 4 lanes", 3, 0.1, False),
    ]
    assert [from_row(row) for row in json.loads(as_json(verdicts))] == verdicts
    assert summary(verdicts) == "1 proved, 1 bounded; of 1 scalar rules 100.0 % are proved"
    assert [one.line for one in verdicts] == ["proved", "bounded: up to 4 lanes"]


def test_the_committed_verdicts_can_be_read_and_refute_nothing() -> None:
    cache = Cache.read(COMMITTED)
    assert cache.problem is None
    known = known_verdicts(RuleSet.builtin().book(), cache)
    assert not [one for one in known.values() if one.verdict is Verdict.REFUTED]
    assert known
