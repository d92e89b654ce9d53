"""The benchmark of rewriting runs at its smallest size, and what it claims to measure is so."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from rulewright.engine.rewriting import RuleSet
from rulewright.engine.uop import walk

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "rewriting.py"
spec = spec_from_file_location("benchmark_of_rewriting", SCRIPT)
assert spec is not None
assert spec.loader is not None
benchmark = module_from_spec(spec)
sys.modules[spec.name] = benchmark
spec.loader.exec_module(benchmark)


def test_it_runs() -> None:
    command = [sys.executable, str(SCRIPT), "--quick", "--runs", "1", "--only", "sinks,fold,settled"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert [line.split()[0] for line in output.splitlines() if "N/s" in line].count("sinks") == 2


@pytest.mark.parametrize("workload", sorted(benchmark.WORKLOADS))
def test_a_workload_has_the_size_that_it_says(workload: str) -> None:
    graph = benchmark.WORKLOADS[workload](benchmark.Rulewright(), 400)
    operators = sum(bool(node.src) for node in walk(graph))
    assert 400 * 0.5 <= operators <= 400 * 6


def test_no_rule_fires_on_what_is_settled() -> None:
    graph = benchmark.settled(benchmark.Rulewright(), 400)
    result, trace = RuleSet.builtin().rewrite(graph, "simplify")
    assert result is graph
    assert not trace.fires


def test_wide_loops_become_vectors() -> None:
    assert benchmark.unrolled(64)[1] == 8
