"""What rule files say, as the syntax tree that the compiler reads."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from rulewright.engine import dtypes, ops
from rulewright.engine.language.diagnostics import RuleError
from rulewright.engine.language.externs import EXTERNS, extern
from rulewright.engine.language.grammar import build
from rulewright.engine.language.parser import RuleSource, analyse, load_rules, read_sources
from rulewright.engine.language.syntax import (
    Apply,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Formula,
    Function,
    InRange,
    Instance,
    Lanes,
    Literal,
    Logic,
    Name,
    Number,
    Operation,
    Pack,
    Rule,
    RuleBook,
    Stage,
    Term,
    Text,
    TypeName,
    Var,
    VarKind,
    Wildcard,
)

HEADER = """
vars x, y, z, rest
consts c, c1, c2
types t, u
args a, k
family ordered = max, min
"""


def load(text: str) -> RuleBook:
    return load_rules([RuleSource("t.rules", HEADER + text)])


def rule(text: str) -> Rule:
    return load(f"group g {{ rule {text} }}").groups["g"].rules[0]


def instance(text: str) -> Instance:
    return rule(text).instances[0]


def shape(part: Term | Formula) -> str:
    """A tree as nested calls, without places."""
    match part:
        case Var():
            return part.name if part.kind is VarKind.ANY else f"{part.name}:{part.kind.value}"
        case Wildcard():
            return "_"
        case Literal() | Number() | Text():
            return repr(part.value)
        case Bind():
            return f"{part.name}@{shape(part.term)}"
        case Pack():
            return f"...{shape(part.term)}"
        case Apply() | Operation():
            attrs = ",".join(attr.name if isinstance(attr, ops.Op) else shape(attr) for attr in part.attrs)
            brackets = f"[{attrs}]" if attrs else ""
            return f"{part.op.name}{brackets}({','.join(shape(arg) for arg in part.args)})"
        case Lanes():
            return f"vec[{','.join(shape(element) for element in part.elements)}]"
        case Comprehension():
            return f"{shape(part.term)} for {part.counter} in {shape(part.low)}..{shape(part.high)}"
        case Chain():
            rest = "" if part.rest is None else f",...{shape(part.rest)}"
            shares = "".join(f",...{share.name.name} when {shape(share.guard)}" for share in part.shares)
            return f"{part.op.name}{{{','.join(shape(term) for term in part.terms)}{shares}{rest}}}"
        case Compute():
            return f"{{{shape(part.formula)}}}"
        case Name():
            return part.name
        case TypeName():
            return part.dtype.name
        case Function():
            return f"{part.name}({','.join(shape(arg) for arg in part.args)})"
        case Logic():
            words = [shape(arg) for arg in part.args]
            return f"(not {words[0]})" if part.word == "not" else f"({f' {part.word} '.join(words)})"
        case InRange():
            return f"{shape(part.value)} in {shape(part.low)}..{shape(part.high)}"


# --- terms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + y * z", "add(x,mul(y,z))"),
        ("(x + y) * z", "mul(add(x,y),z)"),
        ("x - y - z", "sub(sub(x,y),z)"),
        ("x // y % z", "floormod(floordiv(x,y),z)"),
        ("x << y + z", "shl(x,add(y,z))"),
        ("x & y ^ z | rest", "or(xor(and(x,y),z),rest)"),
        ("x + y < z & rest", "lt(add(x,y),and(z,rest))"),
        ("x >> y >= z", "ge(shr(x,y),z)"),
        ("x == y", "eq(x,y)"),
        ("-x * ~y", "mul(neg(x),not(y))"),
        ("-2 * x", "mul(-2,x)"),
        ("x - 1", "sub(x,1)"),
        ("x + 0x1F", "add(x,31)"),
        ("x * 1.5", "mul(x,1.5)"),
        ("x * 1e-3", "mul(x,0.001)"),
        ("x * -inf", "mul(x,-inf)"),
        ("x * nan", "mul(x,nan)"),
        ("x & true", "and(x,True)"),
        ("x * -0.0", "mul(x,-0.0)"),
        ("neg(x)", "neg(x)"),
        ("and(x, y)", "and(x,y)"),
        ("where(x, y, z)", "where(x,y,z)"),
        ("max(x, c)", "max(x,c:consts)"),
        ("x + _", "add(x,_)"),
        ("n@exp2(x) + n", "add(n@exp2(x),n)"),
        ("n@(x + y) * z", "mul(n@add(x,y),z)"),
        ("cast[float32](x)", "cast[float32](x)"),
        ("cast[t](cast[u](x))", "cast[t:types](cast[u:types](x))"),
        ("reduce[add](x, ...rest)", "reduce[add](x,...rest)"),
        ("reduce[a](x, ...rest)", "reduce[a:args](x,...rest)"),
        ("gep[2](x)", "gep[2](x)"),
        ("gep[a](x)", "gep[a:args](x)"),
        ("load[4](x, y)", "load[4](x,y)"),
        ("load(x, y, z, rest)", "load(x,y,z,rest)"),
        ("phi(define_acc[a](x, ...rest), y)", "phi(define_acc[a:args](x,...rest),y)"),
        (
            "n@reduce[add](x, ...rest) + define_acc[n](y, ...rest)",
            "add(n@reduce[add](x,...rest),define_acc[n](y,...rest))",
        ),
        ("fold_lanes[max, 2](x)", "fold_lanes[max,2](x)"),
        ("range[a](c)", "range[a:args](c:consts)"),
        ("sink(..._)", "sink(..._)"),
        ("add{x*c, ...rest}", "add{mul(x,c:consts),...rest}"),
        ("and{x, y}", "and{x,y}"),
        ("vec[x, y]", "vec[x,y]"),
        ("vec[x, ...rest]", "vec[x,...rest]"),
        ("vec[gep[k](x) for k in 0..4]", "vec[gep[k](x) for k in 0..4]"),
        ("vec[gep[k + 1](x) for k in 0..n]", "vec[gep[add(k,1)](x) for k in 0..n]"),
        ("vec[load(x, y + k) for k in 0..n]", "vec[load(x,add(y,{k})) for k in 0..n]"),
        ("vec[load(x, y + {k * 2}) for k in 0..n]", "vec[load(x,add(y,{mul(k,2)})) for k in 0..n]"),
    ],
)
def test_left_side(text: str, expected: str) -> None:
    left = instance(f"r: whole@({text}) => whole").left
    assert isinstance(left, Bind)
    assert shape(left.term) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{c1 + c2}", "{add(c1,c2)}"),
        ("{-c1}", "{neg(c1)}"),
        ("{c1 << 2 | 1}", "{or(shl(c1,2),1)}"),
        ("{cast[int32](c1)}", "{cast[int32](c1)}"),
        ("{max(c1, c2)}", "{max(c1,c2)}"),
        ("{where(c1 < c2, c1, c2)}", "{where(lt(c1,c2),c1,c2)}"),
        ("x + int32(5)", "add(x,{cast[int32](5)})"),
        ("vec[gep[k](x) for k in 0..{c1}]", "vec[gep[k](x) for k in 0..c1]"),
        ("vec[x + k for k in 2..c1 * 2]", "vec[add(x,{k}) for k in 2..mul(c1,2)]"),
    ],
)
def test_right_side(text: str, expected: str) -> None:
    assert shape(instance(f"r: add(add(x, c1), c2) => {text}").right) == expected


def test_packs_and_lets_on_the_right() -> None:
    rule = instance(
        "r: store(y, z, vec[...rest]) => sink(...store(y, z, rest), barrier())\n"
        "let first = gep[0](...rest)\n"
        "let both = vec[first, ...rest]"
    )
    assert shape(rule.right) == "sink(...store(y,z,rest),barrier())"
    assert [(name, shape(term)) for name, term in rule.lets] == [
        ("first", "gep[0](...rest)"),
        ("both", "vec[first,...rest]"),
    ]


def test_places_are_exact() -> None:
    left = instance("r: (x +\n  exp2(y)) * z => z").left
    assert isinstance(left, Apply)
    total = left.args[0]
    assert isinstance(total, Apply)
    assert (str(total.args[1].span), total.args[1].span.end_column) == ("t.rules:8:3", 10)
    assert (total.span.line, total.span.column, total.span.end_line, total.span.end_column) == (7, 20, 8, 10)


# --- formulas --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c > 0 and c1 % c == 0", "(gt(c:n,0) and eq(floormod(c1:n,c:n),0))"),
        ("c > 0 and c > 1 and c > 2", "(gt(c:n,0) and gt(c:n,1) and gt(c:n,2))"),
        ("c > 0 or not c1 < 2 and c1 > 0", "(gt(c:n,0) or ((not lt(c1:n,2)) and gt(c1:n,0)))"),
        ("not (c > 0 or c < 1)", "(not (gt(c:n,0) or lt(c:n,1)))"),
        ("c & 3 | c1 ^ 1 == c << 2", "eq(or(and(c:n,3),xor(c1:n,1)),shl(c:n,2))"),
        ("-c < -4", "lt(neg(c:n),-4)"),
        ("x in 0..c", "x:n in 0..c:n"),
        ("x in -c..{c + 1}", "x:n in neg(c:n)..add(c:n,1)"),
        ("c in 0..8", "c:n in 0..8"),
        ("c + c1 in 0..8", "(le(0,add(c:n,c1:n)) and lt(add(c:n,c1:n),8))"),
        ("min(x) >= 0", "ge(min(x:n),0)"),
        ("min(c, c1) == max(c, c1)", "eq(min(c:n,c1:n),max(c:n,c1:n))"),
        ("divides(c, x)", "divides(c:n,x:n)"),
        ("aligned(x, 4)", "aligned(x:n,4)"),
        ("fits(x, int32)", "fits(x:n,int32)"),
        ("dtype(x) == float32", "eq(dtype(x:n),float32)"),
        ("bits(int32) == bits(x)", "eq(bits(int32),bits(x:n))"),
        ('kind(x) == "reduce"', "eq(kind(x:n),'reduce')"),
        ('target.has("max") and target.width(4)', "(target.has('max') and target.width(4))"),
        ("not uses(x, y)", "(not uses(x:n,y:n))"),
        ("extent(x) > width(y)", "gt(extent(x:n),width(y:n))"),
        ("true", "True"),
    ],
)
def test_guard(text: str, expected: str) -> None:
    found = instance(f"r: (x + y) * c - c1 => x when {text} test i + 1 => i keep i")
    assert found.when is not None
    assert shape(found.when) == expected.replace(":n", "")


def test_parameters_in_guards_are_their_values() -> None:
    found = rule(
        "r[op in {add, mul}, n in {8, -4}]: op(x, n) => {identity(op)} when op(n, 1) > 0 test i + 1 => i keep i"
    )
    assert [one.bindings for one in found.instances] == [
        (("op", ops.ADD), ("n", 8)),
        (("op", ops.ADD), ("n", -4)),
        (("op", ops.MUL), ("n", 8)),
        (("op", ops.MUL), ("n", -4)),
    ]
    last = found.instances[-1]
    assert last.when is not None
    assert (shape(last.left), shape(last.when), shape(last.right)) == ("mul(x,-4)", "gt(mul(-4,1),0)", "{identity(op)}")


# --- rules, groups, modules ------------------------------------------------------------------------------------------


def test_clauses() -> None:
    found = rule(
        "some-rule: x * c => x\n"
        "  when c == 1\n"
        "  on index, float(nsz, reassoc), int32\n"
        "  ordered\n"
        "  decreases size(x) + c\n"
        '  because "it is so"\n'
        "  test i * 1 => i\n"
        "  keep i * 2 given i in 0..4\n"
    )
    assert found.id == "g.some-rule"
    assert found.text == "x * c => x"
    assert [(on.name, on.flags) for on in found.on] == [("index", ()), ("float", ("nsz", "reassoc")), ("int32", ())]
    assert found.ordered
    assert found.decreases is not None
    assert shape(found.decreases) == "add(size(x),c)"
    assert found.because == "it is so"
    assert [shape(case.before) for case in found.cases] == ["mul(i,1)", "mul(i,2)"]
    assert [case.after is None for case in found.cases] == [False, True]


def test_a_plain_rule_has_no_clauses() -> None:
    found = rule("r: x + 0 => x")
    assert (found.on, found.ordered, found.cases, found.decreases, found.because) == ((), False, (), None, None)
    assert (found.instances[0].when, found.instances[0].lets, found.instances[0].bindings) == (None, (), ())


def test_given() -> None:
    (case,) = rule(
        "r: x + 0 => x test f + 0 => f given f: float32, v: float32x4, i in -3..9, q: int32 in 0..5, b: buffer[float32], "
        "d: buffer[int8, 64], e: local[float32, 0x20], r: range[16], w: reduce[8], u: upcast[4], z: unroll[2], "
        "target(max, local-memory, 4, 8), flags(nsz, reassoc)"
    ).cases
    assert [(one.form, one.names, one.dtype, one.low, one.high, one.widths) for one in case.given] == [
        ("value", ("f",), dtypes.float32, None, None, ()),
        ("value", ("v",), dtypes.float32.vec(4), None, None, ()),
        ("value", ("i",), None, -3, 9, ()),
        ("value", ("q",), dtypes.int32, 0, 5, ()),
        ("buffer", ("b",), dtypes.float32, 0, None, ()),
        ("buffer", ("d",), dtypes.int8, 0, 64, ()),
        ("local", ("e",), dtypes.float32, 0, 32, ()),
        ("range", ("r",), dtypes.index, 0, 16, ()),
        ("reduce", ("w",), dtypes.index, 0, 8, ()),
        ("upcast", ("u",), dtypes.index, 0, 4, ()),
        ("unroll", ("z",), dtypes.index, 0, 2, ()),
        ("target", ("max", "local-memory"), None, None, None, (4, 8)),
        ("flags", ("nsz", "reassoc"), None, None, None, ()),
    ]


def test_doc_lines_belong_to_what_follows() -> None:
    book = load(
        "## One group,\n## of two lines.\ngroup g {\n  # a comment\n  ## A rule.\n  rule r: x + 0 => x\n"
        "  rule s: x * 1 => x  ## no doc\n}\n## A pipeline.\npipeline p = fix(g)\n"
    )
    group = book.groups["g"]
    assert group.doc == "One group,\nof two lines."
    assert [found.doc for found in group.rules] == ["A rule.", ""]
    assert book.pipelines["p"].doc == "A pipeline."


def test_pipelines_name_groups_and_each_other() -> None:
    rules = "rule r: x + 0 => x"
    book = load(
        f"pipeline kernel = simplify ; once(c) ; fix(c, simplify)\n"
        f"group a {{ {rules} }} group b {{ {rules} }} group c {{ {rules} }}\n"
        f"pipeline simplify = fix(a, b)\n"
    )
    simplify = Stage("fix", ("a", "b"))
    assert book.pipelines["kernel"].stages == (simplify, Stage("once", ("c",)), Stage("fix", ("c", "a", "b")))
    assert list(book.groups) == ["a", "b", "c"]


def test_modules_see_families_of_those_they_use() -> None:
    core = RuleSource("rules/core.rules", "family ordered = max, min\nfamily more = ordered, add\n")
    user = RuleSource("rules/user.rules", "use core\nvars x\nfamily all = more, mul\n"
                      "group g { rule r[op in all]: op(x, x) => x }\n")  # fmt: skip
    book = load_rules([user, core])
    found = [dict(one.bindings)["op"] for one in book.groups["g"].rules[0].instances]
    assert found == [ops.MAX, ops.MIN, ops.ADD, ops.MUL]
    without = RuleSource("rules/user.rules", user.text.replace("use core\n", ""))
    assert [error.code for error in analyse([without, core]).errors] == ["E011"]


def test_names_hold_for_their_module() -> None:
    first = RuleSource("one.rules", "vars x\ngroup a { rule r: x + 0 => x }\n")
    second = RuleSource("two.rules", "group b { rule r: x + 0 => x }\n")
    assert [str(error.span) for error in analyse([first, second]).errors] == ["two.rules:1:19", "two.rules:1:28"]


@pytest.fixture
def registered() -> Iterator[None]:
    @extern
    def is_small(c: int) -> bool:
        return c < 4

    yield
    del EXTERNS["is_small"]


@pytest.mark.usefixtures("registered")
def test_extern() -> None:
    book = load(
        "extern pred is_small(n) means n < 4\n"
        "group g { rule r: x * c => x when is_small(c) and is_small(x) test i * 1 => i keep i * 8 }"
    )
    when = book.groups["g"].rules[0].instances[0].when
    assert when is not None
    assert shape(when) == "(is_small(c) and is_small(x))"
    wrong = HEADER + "extern pred is_small(n) means m < 4\ngroup g { rule r: x * c => is_small(c) }"
    assert [error.code for error in analyse([RuleSource("t.rules", wrong)]).errors] == ["E010", "E011"]


@pytest.mark.usefixtures("registered")
def test_a_function_is_registered_once() -> None:
    def is_small(c: int) -> bool:
        return c < 5

    with pytest.raises(ValueError, match="is_small is already registered"):
        extern(is_small)


# --- files -----------------------------------------------------------------------------------------------------------


def test_reading_files(tmp_path: Path) -> None:
    path = tmp_path / "some.rules"
    path.write_text("module other\n", encoding="utf-8")
    (source,) = read_sources([path])
    assert (source.name, source.text, source.module) == (str(path), "module other\n", "some")


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"cannot read the rule file .*absent\.rules: No such file or directory"):
        read_sources([tmp_path / "absent.rules"])
    (tmp_path / "binary.rules").write_bytes(b"ab\xff")
    with pytest.raises(RuleError, match=r"binary\.rules is not UTF-8 text \(byte 2\)"):
        read_sources([tmp_path / "binary.rules"])


def test_an_empty_file_is_a_module_without_rules() -> None:
    assert load_rules([RuleSource("t.rules", "")]) == RuleBook({}, {})
    assert load_rules([]) == RuleBook({}, {})


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    """Lark refuses an LALR grammar with reduce/reduce conflicts; it resolves the others, and logs them if asked."""
    with caplog.at_level(logging.DEBUG, logger="lark"):
        build(debug=True)
    assert [record.getMessage() for record in caplog.records if "onflict" in record.getMessage()] == []


def test_no_word_can_be_read_in_two_ways() -> None:
    """Lark's strict mode also compares the regular expressions of the words, for which it needs a library."""
    pytest.importorskip("interegular", reason="lark compares regular expressions with it")
    build(strict=True)
