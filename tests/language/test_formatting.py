"""The layout of rule files: what it is, that it changes no word, keeps every comment, and is stable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rulewright.engine.language.diagnostics import RuleSyntaxError
from rulewright.engine.language.formatting import format_rules
from rulewright.engine.language.parser import RuleSource
from rulewright.engine.rewriting import RuleSet

PAGE = (Path(__file__).parents[2] / "docs" / "rule-language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```rules(?: with ours)?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
OURS = RuleSet.builtin().sources


def formatted(text: str) -> str:
    return format_rules(RuleSource("t.rules", text))


CRAMPED = """module m   # the name
# about
vars x,y
consts c

family f=max,and


group g{   # begins
## Doc.
   rule r[op in{max , min}]:op(x,y)-c*-x=>vec[x for k in 0..{c+1},...y]
  when  not(c in-c..4)and x in 0 .. c # when
     # before on
on index,float( nsz,reassoc ) ordered test  n@exp2( -i )-1=>and(i,~j)given i:int32 in-3..4,target(local-memory ,4)
keep add{ i,... j when c>1 }
because "a  b"

  # last
}
disable a-b.c-d,e.f
pipeline p=fix(g);once( g )
extern pred few(n)means min(n)>- 1
"""

TIDY = """module m  # the name
# about
vars x, y
consts c

family f = max, and

group g {  # begins
  ## Doc.
  rule r[op in {max, min}]: op(x, y) - c * -x => vec[x for k in 0..{c + 1}, ...y]
    when not(c in -c..4) and x in 0..c  # when
    # before on
    on index, float(nsz, reassoc)
    ordered
    test n@exp2(-i) - 1 => and(i, ~j) given i: int32 in -3..4, target(local-memory, 4)
    keep add{i, ...j when c > 1}
    because "a  b"

  # last
}
disable a-b.c-d, e.f
pipeline p = fix(g) ; once(g)
extern pred few(n) means min(n) > -1
"""


def test_the_layout() -> None:
    assert formatted(CRAMPED) == TIDY


def test_long_lines_are_broken_at_the_outermost_places() -> None:
    rule = "rule r: store(buffer, index, value) => sink(" + ", ".join(["store(buffer, index, value)"] * 6) + ")"
    assert formatted("group g { " + rule + " }") == (
        "group g {\n"
        "  rule r: store(buffer, index, value)\n"
        "      => sink(store(buffer, index, value), store(buffer, index, value), store(buffer, index, value),\n"
        "        store(buffer, index, value), store(buffer, index, value), store(buffer, index, value))\n"
        "}\n"
    )


def test_comments_inside_a_line_stay_behind_their_words() -> None:
    text = "group g {\n  rule r: x + # one\n    # two\n    y => x\n}\n"
    assert formatted(text) == "group g {\n  rule r: x +  # one\n      # two\n      y => x\n}\n"


@pytest.mark.parametrize("text", [*EXAMPLES, *(source.text for source in OURS), "", "# only this", "\n\n## x\n\n# y\n"])
def test_nothing_is_lost_and_twice_is_once(text: str) -> None:
    if text.startswith("rule "):
        text = f"group g {{\n{text}}}\n"
    once = formatted(text)
    assert formatted(once) == once
    assert sorted(re.findall(r"#.*\S", text)) == sorted(re.findall(r"#.*\S", once))
    assert re.sub(r"\s", "", text) == re.sub(r"\s", "", once)


def test_our_own_files_are_formatted() -> None:
    for source in OURS:
        assert formatted(source.text) == source.text, f"run `rulewright fmt {source.name}`"


@settings(max_examples=50)
@given(st.data())
def test_line_breaks_and_comments_anywhere(data: st.DataObject) -> None:
    """Where the grammar admits a blank, any blanks and comments change at most the places of comments."""
    words = re.findall(r'\s+|"[^"\n]*"|[^\s"]+', TIDY.split("# last")[0] + "}\n")
    for position, word in enumerate(words):
        if word.isspace() and data.draw(st.booleans()):
            words[position] = data.draw(st.sampled_from(["\n", "\n\n", " # c\n", "\n# d\n", "\n  \n\n"]))
        elif word.startswith("#"):
            words[position] = ""
    text = "".join(words)
    try:
        once = formatted(text)
    except RuleSyntaxError:
        return  # a comment has taken the rest of a line
    assert formatted(once) == once
    assert text.count("#") == once.count("#")


def test_a_broken_file_is_left_alone() -> None:
    with pytest.raises(RuleSyntaxError, match="E001"):
        formatted("group g { rule r: x + }")
