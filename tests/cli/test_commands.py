"""The commands as a user calls them: what they print, how they end, and what they say about bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rulewright as rw
from rulewright.cli import main
from rulewright.cli.samples import SAMPLES
from rulewright.kernels.json_form import write_kernel

SIZE = 8


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return Call(capsys)


class Call:
    """Calls the command line; `status`, `out` and `err` are of the last call."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.status, self.out, self.err = 0, "", ""

    def __call__(self, *arguments: str, status: int = 0) -> str:
        with pytest.raises(SystemExit) as left:
            main(arguments)
        self.status = left.value.code if isinstance(left.value.code, int) else 1
        self.out, self.err = self.capsys.readouterr()
        assert self.status == status, self.out + self.err
        return self.out

    def refused(self, *arguments: str, status: int = 2) -> str:
        """The message of a call that must fail without output and without a traceback."""
        self(*arguments, status=status)
        assert self.out == ""
        assert "Traceback" not in self.err
        return self.err


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """out = a * 2 + b, as a kernel's JSON file."""
    built = rw.kernel(rw.tensor("a", (SIZE, SIZE)) * 2 + rw.tensor("b", (SIZE, SIZE)))
    path = tmp_path / "kernel.json"
    path.write_text(json.dumps(write_kernel(built)), encoding="utf-8")
    return path


def lines_of(path: Path, *documents: object) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    return path


# --- the whole -------------------------------------------------------------------------------------------------------

COMMANDS = ["demo", "run", "show", "corpus", "check", "simplify", "devices"]


def test_help_lists_the_commands(call: Call) -> None:
    text = call("--help")
    assert all(f" {command} " in text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(call: Call, command: str) -> None:
    text = call(command, "--help")
    assert f"rulewright {command}" in text
    assert command in ("demo", "devices") or "Examples:" in text


def test_version(call: Call) -> None:
    assert call("--version").startswith("rulewright 0.")


def test_unknown_command(call: Call) -> None:
    assert "Did you mean 'simplify'?" in call.refused("simpify")


def test_as_a_module() -> None:
    command = [sys.executable, "-m", "rulewright.cli", "simplify", "x * 1", "--type", "int32"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "x\n"


def test_importing_the_package_is_quick() -> None:
    script = (
        "import sys, time; t = time.perf_counter(); import rulewright; print(time.perf_counter() - t, *sys.modules)"
    )
    seconds, *modules = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert float(seconds) < 0.2
    assert not {"lark", "llvmlite", "pyopencl", "rich", "typer", "z3"} & set(modules)


# --- simplify, devices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["(i*12 + j) % 4", "--given", "j in 0..4"], "j"),
        (["(i*12 + j) % 4", "--given", "j in 0..5"], "j % 4"),
        (["x*1 + 0*y", "--type", "int32"], "x"),
        (["f + 0.0", "--given", "f: float32"], "f + 0.0"),
        (["f + 0.0", "--given", "f: float32", "--math", "fast"], "f"),
    ],
)
def test_simplify(call: Call, arguments: list[str], expected: str) -> None:
    assert call("simplify", *arguments) == expected + "\n"


def test_simplify_shows_the_steps(call: Call) -> None:
    *steps, last = call("simplify", "x * 1", "--type", "int32", "--steps").splitlines()
    assert steps == ["algebra.mul-one: x * 1  =>  x"]
    assert last == "x"


def test_simplify_with_more_rules(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "logic.rules"
    path.write_text("vars x\ngroup logic { rule square: x * x => x on bool }\n", encoding="utf-8")
    assert "E0" in call.refused("simplify", "x * x", "--rules", str(path))  # ours need what the file replaces


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["1 +* 2"], "<expression>:1:4: error[E001]"),
        (["i", "--given", "i in 4"], "<given>:1:"),
        (["x", "--type", "int33"], "there is no type 'int33'"),
        (["x", "--math", "sloppy"], "'sloppy' is not one of"),
        (["x", "--rules", "nowhere.rules"], "cannot read the rule file nowhere.rules"),
    ],
)
def test_simplify_refuses(call: Call, arguments: list[str], message: str) -> None:
    assert message in call.refused("simplify", *arguments)


def test_explain_tells_each_step(call: Call) -> None:
    told = call("explain", "(i*12 + j) % 4 + x*1", "--given", "i in 0..64, j in 0..4").splitlines()
    assert told[0] == "(i * 12 + j) % 4 + x * 1"
    assert told[-1] == "j + x"
    assert "    ✓ x in 0..c" in told
    assert "    x = j   (in 0..4)" in told
    assert "  => j % 4 + x * 1" in told


def test_explain_says_when_nothing_is_to_be_done(call: Call) -> None:
    assert call("explain", "x + y").splitlines() == ["x + y", "no rule fires"]


def test_explain_a_rule_that_does_not_fire(call: Call) -> None:
    told = call("explain", "i * 6", "--rule", "algebra.mul-zero")
    assert "does not fire: `0` does not match 6 (index)" in told
    assert "rule mul-zero: x * 0 => 0" in told


def test_explain_as_json(call: Call) -> None:
    document = json.loads(call("explain", "i*1 + j", "--json"))
    assert document["before"] == "i * 1 + j"
    assert document["after"] == "i + j"
    (step,) = document["steps"]
    assert (step["rule"], step["place"], step["whole_after"]) == ("algebra.mul-one", [0], "i + j")
    (attempt,) = json.loads(call("explain", "i * 6", "--rule", "algebra.mul-zero", "--json"))["attempts"]
    assert attempt["problem"] == "`0` does not match 6 (index)"


def test_explain_refuses_what_there_is_not(call: Call) -> None:
    assert "did you mean `algebra.mul-zero`?" in call.refused("explain", "i * 6", "--rule", "algebra.mul-zro")
    assert "a rule about mul, and there is none in i + j" in call.refused(
        "explain", "i + j", "--rule", "algebra.mul-zero"
    )


def test_devices(call: Call) -> None:
    text = call("devices")
    assert "llvm" in text
    assert "present" in text


# --- check -----------------------------------------------------------------------------------------------------------

RULES = """module mine
vars x
consts c
group mine {
  rule own: x % c => x
    when x in 0..c
    on index
    test i % 4 => i given i in 0..4
    keep i % 4 given i in 0..5
}
"""


def test_check_our_own_rules(call: Call) -> None:
    assert "test and keep lines hold" in call("check")


def test_check_counts_the_users_lines_only(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(RULES, encoding="utf-8")
    assert call("check", str(path)) == (
        "ok: 1 file, 1 rule, 2 test and keep lines hold, 1 rule kept every value that was tried\n"
    )


def test_check_shows_a_line_that_fails(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(RULES.replace("i in 0..5", "i in 0..3"), encoding="utf-8")
    first, *_, last = call("check", str(tmp_path), status=1).splitlines()
    assert first == f"{path}:9:5: error[E063]: mine.own: the rule fires on i % 4 and gives i"
    assert last == "failed: 1 file, 1 rule, 1 of 2 test and keep lines fail, 1 rule kept every value that was tried"


def test_check_shows_what_is_malformed(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(RULES.replace("=> x\n", "=> y\n"), encoding="utf-8")
    text = call("check", str(path), status=1)
    assert f"{path}:5:22: error[E010]: unknown name `y`" in text
    assert text.endswith("failed: 1 file, 1 error\n")


@pytest.mark.parametrize("name", ["nowhere.rules", ""])
def test_check_refuses(call: Call, tmp_path: Path, name: str) -> None:
    assert "rule" in call.refused("check", str(tmp_path / name))


# --- run -------------------------------------------------------------------------------------------------------------


def test_run_on_files(call: Call, kernel: Path, tmp_path: Path) -> None:
    a = np.arange(SIZE * SIZE, dtype=np.float32)
    np.save(tmp_path / "a.npy", a.reshape(SIZE, SIZE))
    np.save(tmp_path / "b.npy", a)
    result = tmp_path / "out.npy"
    files = "--input", f"data1={tmp_path}/a.npy", "--input", f"2={tmp_path}/b.npy", "--output", f"data0={result}"
    text = call("run", str(kernel), *files, "--check")
    assert "the same as NumPy" in text
    assert np.array_equal(np.load(result).reshape(-1), a * 3)


@pytest.mark.parametrize("name", SAMPLES)
def test_run_the_samples(call: Call, name: str) -> None:
    shown = call("run", name)
    assert "random numbers" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "data1"], "write NAME=VALUE"),
        (["--input", "data7=x.npy"], "no buffer 'data7'; it has data0, data1, data2"),
        (["--input", "data1=nowhere.npy"], "cannot read nowhere.npy: No such file or directory"),
        (["--output", "data1=x.npy"], "does not write data1; it writes data0"),
        (["--var", "n=3"], "no variable 'n'; it has none"),
        (["--schedule", "UPCAST(1"], "--schedule: not a schedule option"),
    ],
)
def test_run_refuses(call: Call, kernel: Path, arguments: list[str], message: str) -> None:
    assert message in call.refused("run", str(kernel), *arguments)


def test_run_fails_by_an_option_that_is_not_legal(call: Call, kernel: Path) -> None:
    assert "3 does not divide" in call.refused("run", str(kernel), "--schedule", "UPCAST(1, 3)", status=1)


def test_run_refuses_arrays_that_do_not_fit(call: Call, kernel: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.zeros(3, np.float32))
    assert "data1 needs 64 elements, not 3" in call.refused("run", str(kernel), "--input", f"data1={file}")
    np.save(file, np.zeros(64))
    assert "data1 holds float32, not float64" in call.refused("run", str(kernel), "--input", f"data1={file}")
    file.write_text("no array", encoding="utf-8")
    assert "not a NumPy .npy file" in call.refused("run", str(kernel), "--input", f"data1={file}")


def test_run_symbolic_sizes(call: Call, tmp_path: Path) -> None:
    n = rw.var("n", 1, 100)
    built = rw.kernel(rw.tensor("x", (n,)) + 1)
    path = lines_of(tmp_path / "k.json", write_kernel(built))
    assert "the same as NumPy" in call("run", str(path), "--var", "n=7", "--check")
    assert "n must be a whole number in 1..100, got 101" in call.refused("run", str(path), "--var", "n=101")


def test_unknown_device(call: Call, kernel: Path) -> None:
    assert "did you mean 'opencl'?" in call.refused("run", str(kernel), "--device", "opencI")


def test_kernels_that_are_none(call: Call, kernel: Path, tmp_path: Path) -> None:
    assert "there is no file nowhere.json" in call.refused("run", "nowhere.json")
    broken = tmp_path / "broken.json"
    broken.write_text('{"nodes": [', encoding="utf-8")
    assert f"{broken}:1:12: not JSON" in call.refused("run", str(broken))
    document = json.loads(kernel.read_text(encoding="utf-8"))
    document["nodes"][0]["op"] = "lod"
    lines_of(broken, document)
    assert f"{broken}:1: nodes[0].op: unknown operator 'lod'" in call.refused("run", str(broken))


def test_a_kernel_of_a_corpus(call: Call, kernel: Path, tmp_path: Path) -> None:
    document = json.loads(kernel.read_text(encoding="utf-8"))
    file = lines_of(tmp_path / "c.jsonl", document | {"id": "k1-abc"}, document | {"id": "k2-def"})
    assert "the same as NumPy" in call("run", f"{file}:k2-def", "--check")
    assert "did you mean k2-def?" in call.refused("run", f"{file}:k2")


# --- show ------------------------------------------------------------------------------------------------------------


def test_show_source(call: Call) -> None:
    assert call("show", "matmul").startswith(rw.compile(SAMPLES["matmul"].kernel()).source.rstrip())


@pytest.mark.parametrize(
    ("stage", "expected"), [("lower", "reduce("), ("1", "reduce("), ("width", "width.narrow"), ("linear", "endrange")]
)
def test_show_stage(call: Call, stage: str, expected: str) -> None:
    assert expected in call("show", "sum", "--stage", stage, "--device", "interpreter")


def test_show_everything(call: Call) -> None:
    headings = [line.split(" ─")[0] for line in call("show", "add", "--stage", "all").splitlines() if " ─" in line]
    assert headings[0] == "lower"
    assert headings[1].startswith("1 fix(")
    assert headings[-2:] == ["linear", "source"]


def test_show_timings(call: Call) -> None:
    output = call("show", "add", "--timings", "--device", "interpreter")
    assert "lower" in output
    assert "nodes visited" in output


@pytest.mark.parametrize("device", ["interpreter", "llvm"])
def test_show_verify(call: Call, device: str) -> None:
    output = call("show", "conv3x3", "--stage", "verify", "--device", device)
    assert ", 0 problems\n" in output
    assert output.rstrip().endswith("accesses inside")


def test_show_verify_finds_what_a_wrong_rule_does(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "wrong.rules"
    path.write_text("vars buf, i, p, other\nextend gate { rule ungated: load(buf, i, p, other) => load(buf, i) }\n")
    output = call("show", "conv3x3", "--stage", "verify", "--device", "interpreter", "--rules", str(path))
    assert ": perhaps outside; not proven: " in output


def test_show_unknown_stage(call: Call) -> None:
    assert "the stages are all, verify, lower; 1 fix(" in call.refused("show", "add", "--stage", "nothing")


# --- corpus ----------------------------------------------------------------------------------------------------------


def test_corpus(call: Call, kernel: Path, tmp_path: Path) -> None:
    good = json.loads(kernel.read_text(encoding="utf-8"))
    large = write_kernel(rw.kernel(rw.tensor("x", (1024, 1024)).sum(1)))
    file = lines_of(tmp_path / "c.jsonl", good | {"id": "small"}, large | {"id": "large"}, good)
    text = call("corpus", str(file), "--check", "--jobs", "1")
    assert [line.split()[:3:2] for line in text.splitlines()[2:4]] == [["matched", "2"], ["compiled", "1"]]


def test_corpus_reports_what_goes_wrong(call: Call, kernel: Path, tmp_path: Path) -> None:
    good = json.loads(kernel.read_text(encoding="utf-8"))
    file = lines_of(tmp_path / "c.jsonl", good | {"id": "good"}, good | {"id": "bad", "nodes": []}, good)
    file.write_text(file.read_text(encoding="utf-8") + "{no json\n", encoding="utf-8")
    report = tmp_path / "report.jsonl"
    text = call("corpus", str(file), "--jobs", "1", "--report", str(report), status=1)
    assert "bad: failed: KernelError: a kernel needs at least one store" in text
    assert "line 4: failed: KernelError: not JSON" in text
    results = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [(result["id"], result["outcome"]) for result in results] == [
        ("good", "ran"),
        ("bad", "failed"),
        ("line 3", "ran"),
        ("line 4", "failed"),
    ]


def test_corpus_takes_only_the_first(call: Call, kernel: Path, tmp_path: Path) -> None:
    good = json.loads(kernel.read_text(encoding="utf-8"))
    file = lines_of(tmp_path / "c.jsonl", good, good, good)
    assert call("corpus", str(file), "--limit", "2").splitlines()[-1].startswith("2 kernels in ")


def test_corpus_refuses(call: Call, tmp_path: Path) -> None:
    assert "cannot read" in call.refused("corpus", str(tmp_path / "nowhere.jsonl"))
    empty = lines_of(tmp_path / "empty.jsonl")
    assert "holds no kernel" in call.refused("corpus", str(empty))
    some = lines_of(tmp_path / "c.jsonl", {})
    assert "there is no device 'vulkan'" in call.refused("corpus", str(some), "--device", "vulkan")


# --- demo ------------------------------------------------------------------------------------------------------------


def test_demo(call: Call) -> None:
    text = call("demo")
    assert all(name in text for name in SAMPLES)
    assert "wrong" not in text
    assert text.splitlines()[-1].endswith("agree with NumPy")


def test_stats_count_tries_and_hits(call: Call, kernel: Path) -> None:
    document = json.loads(call("stats", str(kernel), "--json"))
    assert (document["kernels"], document["failed"]) == (1, 0)
    rules = document["rules"]
    assert len(rules) > 100
    assert all(cost["hits"] <= cost["tries"] for cost in rules.values())
    assert rules["algebra.add-zero"]["tries"] > 0
    assert rules["algebra.add-zero"]["seconds"] > 0
    assert rules["remainder.mod-one"] == {"tries": 0, "hits": 0, "seconds": 0.0}


def test_stats_table_is_sorted_and_names_what_never_fired(call: Call, kernel: Path) -> None:
    told = call("stats", str(kernel), "--sort", "hits", "--top", "3").splitlines()
    hits = [int(line.split("│")[2].replace(",", "")) for line in told if line.count("│") == 5]
    assert len(hits) == 3
    assert hits == sorted(hits, reverse=True)
    assert any("more rules" in line for line in told)
    assert any("never tried" in line for line in told)


def test_stats_refuses_what_there_is_not(call: Call) -> None:
    assert "there is no file nothing.json" in call.refused("stats", "nothing.json")


def test_rules_by_group(call: Call) -> None:
    told = call("rules")
    assert "  algebra.add-zero   x + 0 => x   on index, int, bool" in told.splitlines()
    assert len(told.splitlines()) > 200


def test_rules_of_a_group_with_their_examples(call: Call) -> None:
    told = call("rules", "algebra.add-negative-zero").splitlines()
    assert told[1:] == [
        "  algebra.add-negative-zero   x + -0.0 => x   on float",
        "      Adding -0.0 changes nothing; adding 0.0 turns -0.0 into 0.0.",
        "      test f + -0.0 => f given f: float32",
        "      keep f + 0.0 given f: float32",
    ]
    assert "did you mean `algebra.add-zero`?" in call.refused("rules", "algebra.ad-zero")


def test_rules_as_a_page(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mine.rules"
    path.write_text(
        "vars x, y\nfamily ordered = max, min\n## Mine.\ngroup mine {\n## Twice is once.\n"
        "rule twice[op in ordered]: op(x, op(x, y)) => op(x, y)\n"
        "test max(i, max(i, j)) => max(i, j) given i in 0..4 }"
    )
    page = call("rules", "mine", "--rules", str(path), "--markdown")
    section = page[page.index("## mine") :]
    assert section.splitlines() == [
        "## mine", "", "Mine.", "", "### mine.twice", "", "Twice is once.", "",
        "```", "op(x, op(x, y)) => op(x, y)", "  for op in max, min", "```", "",
        "- `max(i, max(i, j))` becomes `max(i, j)`, given `i in 0..4`", "",
    ]  # fmt: skip
