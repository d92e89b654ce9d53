"""Rules that can never fire are found, and none that could."""

from __future__ import annotations

import pytest
from rulewright.engine.language.parser import RuleSource, analyse

HEADER = "vars x, y, z, r\nconsts c, c1\ntypes t, u\nargs a\nfamily ordered = max, min\n"


def shadowed(first: str, second: str) -> bool:
    text = f"{HEADER}group g {{\n  rule first{first}\n  rule second{second}\n}}\n"
    found = analyse([RuleSource("t.rules", text)]).diagnostics
    codes = {one.code for one in found if one.code != "W001"}
    assert codes <= {"E064"}, found
    return codes == {"E064"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (": x + y => x", ": x + 0 => x"),
        (": x + 0 => x", ": 0 + x => x"),
        (": x * c => x", ": x * 2 => x"),
        (": x * c => x on int", ": x * 2 => x on int32"),
        (": x - y => x", ": x - x => x"),
        (": n@exp2(x) + y => y", ": exp2(z) + exp2(z) => z"),
        ("[op in ordered]: op(x, x) => x", ": max(x, x) => x"),
        (": cast[t](x) => cast[t](exp2(x))", ": cast[float32](exp2(x)) => exp2(x)"),
        (": load(x, ..._) => load(x, 0)", ": load(x, y, z, ..._) => load(x, y)"),
        (": x + 0 => x on float(nsz)", ": x + 0 => x on float(nsz, reassoc)"),
        (": x + y => x", ": x * y + z => x when min(x) > 0 test i * j + k => i given i in 1..9 keep i * j + k"),
    ],
)
def test_shadowed(first: str, second: str) -> None:
    assert shadowed(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (": x + 0 => x", ": x + y => x"),
        (": x + 0.0 => x", ": x + -0.0 => x"),
        (": x + 0 => x ordered", ": 0 + x => x"),
        (": x * c => x on int", ": x * 2 => x on index"),
        (": x * c => x on int32", ": x * 2 => x on int"),
        (": x * c => x on index", ": x * 2 => x"),
        (": x - x => x", ": x - y => x"),
        (": c + c1 => {c + c1}", ": c + 2 => c"),
        (": max(x, x) => x", "[op in ordered]: op(x, x) => x"),
        (": cast[t](cast[t](x)) => cast[t](x)", ": cast[t](cast[u](x)) => cast[t](x)"),
        (": x + 0 => x on float(nsz)", ": x + 0 => x on float"),
        (": x + y => x when min(x) > 0 test i + j => i given i in 1..9 keep i + j", ": x + 0 => x"),
        (": load(x, y) => y", ": load(x, y, ..._) => y"),
        (": x * 0 => x", ": x * false => x"),
    ],
)
def test_not_shadowed(first: str, second: str) -> None:
    assert not shadowed(first, second)
