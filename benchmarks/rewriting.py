"""How fast the rules rewrite: Rulewright beside tinygrad 0.14.0, the same input, each with its rules for symbolic terms.

    python benchmarks/rewriting.py            # all sizes; some minutes
    python benchmarks/rewriting.py --quick    # small sizes; some seconds
    python benchmarks/rewriting.py --only sinks,fold

Times are user CPU seconds, the median of several runs, each on a graph built anew. The peers are interleaved, since a
shared machine changes its speed; trust the ratios of one run. tinygrad is an optional peer: `pip install tinygrad==0.14.0`.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Protocol

# --- the peers -------------------------------------------------------------------------------------------------------


class Peer(Protocol):
    """Builds terms of indices and rewrites them."""

    name: str

    def const(self, value: int) -> Any: ...
    def variable(self, name: str, low: int, high: int) -> Any: ...
    def op(self, name: str, a: Any, b: Any) -> Any: ...
    def sink(self, terms: Sequence[Any]) -> Any: ...
    def rewrite(self, graph: Any) -> Any: ...


class Rulewright:
    """Our rules for simplifying: the pipeline `simplify`."""

    name = "rulewright"

    def __init__(self) -> None:
        from rulewright.engine import dtypes, ops, uop
        from rulewright.engine.rewriting import RuleSet

        self.ops, self.index, self.void, self.uop = ops.OPS, dtypes.index, dtypes.void, uop
        self.rules = RuleSet.builtin()

    def const(self, value: int) -> Any:
        return self.uop.const(self.index, value)

    def variable(self, name: str, low: int, high: int) -> Any:
        return self.uop.variable(name, low, high)

    def op(self, name: str, a: Any, b: Any) -> Any:
        return self.uop.intern(self.ops[name], self.index, (a, b))

    def sink(self, terms: Sequence[Any]) -> Any:
        return self.uop.intern(self.ops["sink"], self.void, tuple(terms))

    def rewrite(self, graph: Any) -> Any:
        return self.rules.rewrite(graph, "simplify")[0]


class Tinygrad:
    """`graph_rewrite` with `symbolic`, the rules that tinygrad simplifies indices with."""

    name = "tinygrad"

    def __init__(self) -> None:
        ops = importlib.import_module("tinygrad.uop.ops")
        self.uop, self.graph_rewrite = ops.UOp, ops.graph_rewrite
        self.ops = {name: getattr(ops.Ops, name.upper()) for name in ("add", "mul", "floordiv", "floormod", "max")}
        self.symbolic = importlib.import_module("tinygrad.uop.symbolic").symbolic

    def const(self, value: int) -> Any:
        return self.uop.const(value)

    def variable(self, name: str, low: int, high: int) -> Any:
        return self.uop.variable(name, low, high)

    def op(self, name: str, a: Any, b: Any) -> Any:
        return a.alu(self.ops[name], b)

    def sink(self, terms: Sequence[Any]) -> Any:
        return self.uop.sink(*terms)

    def rewrite(self, graph: Any) -> Any:
        return self.graph_rewrite(graph, self.symbolic)


# --- the workloads: graphs of about `n` operators ---------------------------------------------------------------------


def digits(peer: Peer, t: Any) -> Any:
    """((t // 4) * 8 + t % 4) % 64"""
    four = peer.const(4)
    high = peer.op("mul", peer.op("floordiv", t, four), peer.const(8))
    return peer.op("floormod", peer.op("add", high, peer.op("floormod", t, four)), peer.const(64))


def expressions(peer: Peer, n: int) -> list[Any]:
    """Independent `digits` of (i + k)*4 + j; each has 8 operators."""
    i, j = peer.variable("i", 0, 63), peer.variable("j", 0, 3)
    terms = []
    for k in range(max(1, n // 8)):
        row = peer.op("mul", peer.op("add", i, peer.const(k)), peer.const(4))
        terms.append(digits(peer, peer.op("add", row, j)))
    return terms


def sinks(peer: Peer, n: int) -> Any:
    return peer.sink(expressions(peer, n))


def total(peer: Peer, n: int) -> Any:
    """The same expressions, added up from left to right."""
    terms = expressions(peer, n)
    result = terms[0]
    for term in terms[1:]:
        result = peer.op("add", result, term)
    return result


def nest(peer: Peer, n: int) -> Any:
    """The same expression, applied to its own result n times."""
    row = peer.op("mul", peer.variable("i", 0, 63), peer.const(4))
    result = peer.op("add", row, peer.variable("j", 0, 3))
    for _ in range(n):
        result = digits(peer, result)
    return result


def fold(peer: Peer, n: int) -> Any:
    """A balanced tree of different constants."""
    level = [peer.const(k * 7919) for k in range(n + 1)]
    while len(level) > 1:
        pairs = [peer.op("add", level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) // 2 * 2 :]
    return level[0]


def chain(peer: Peer, n: int) -> Any:
    """A deep chain of sums and maxima of constants."""
    result = peer.const(1)
    for k in range(n):
        result = peer.op("max" if k % 2 else "add", result, peer.const(k % 7))
    return result


def addconst(peer: Peer, n: int) -> Any:
    """(((x + 1) + 2) + 3) + …"""
    result = peer.variable("x", 0, 9)
    for k in range(n):
        result = peer.op("add", result, peer.const(k % 97 + 1))
    return result


def settled(peer: Peer, n: int) -> Any:
    """Terms on which no rule fires."""
    i, j = peer.variable("i", 0, 63), peer.variable("j", 0, 3)
    terms = []
    for k in range(max(1, n // 4)):
        product = peer.op("mul", i, peer.const(2 * k + 3))
        terms.append(peer.op("floormod", peer.op("max", peer.op("add", product, j), peer.const(5)), peer.const(7)))
    return peer.rewrite(peer.sink(terms))


WORKLOADS: dict[str, Callable[[Peer, int], Any]] = {
    "sinks": sinks, "sum": total, "nest": nest, "fold": fold, "chain": chain, "addconst": addconst, "settled": settled,
}  # fmt: skip

# --- measuring -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One workload: our sizes, the sizes at which the peer can follow, and what the ratio must be at the last of these."""

    workload: str
    sizes: tuple[int, ...]
    peer_sizes: tuple[int, ...]
    bar: float | None = None


FULL = (
    Case("sinks", (10_000, 100_000, 1_000_000), (10_000, 100_000), 10),
    Case("fold", (10_000, 100_000, 1_000_000), (10_000, 100_000), 8),
    Case("addconst", (10_000, 100_000, 1_000_000), (10_000, 100_000), 8),
    Case("chain", (10_000, 100_000, 1_000_000), (1_000,)),
    Case("sum", (1_000, 10_000, 100_000, 1_000_000), (1_000,)),
    Case("nest", (100, 1_000, 10_000), (100,)),
    Case("settled", (10_000, 100_000, 1_000_000), (10_000, 100_000)),
)
QUICK = tuple(Case(case.workload, (100, 1_000), (100,)) for case in FULL)


def seconds(peer: Peer, workload: str, size: int) -> float:
    """User CPU time of one rewrite of a new graph."""
    graph = WORKLOADS[workload](peer, size)
    start = process_time()
    peer.rewrite(graph)
    return process_time() - start


def measure(case: Case, peers: Sequence[Peer], runs: int) -> dict[tuple[str, int], float]:
    """The median time for each peer and size, the peers taking turns."""
    times: dict[tuple[str, int], list[float]] = {}
    for size in dict.fromkeys((*case.peer_sizes, *case.sizes)):
        able = [peer for peer in peers if size in (case.sizes if peer.name == "rulewright" else case.peer_sizes)]
        for turn in range(runs):
            for peer in able:
                spent = times.setdefault((peer.name, size), [])
                if turn < 1 or sum(spent) / len(spent) < LONG:
                    spent.append(seconds(peer, case.workload, size))
    return {key: median(spent) for key, spent in times.items()}


LONG = 20.0
"""What takes longer is run once."""


def slope(times: dict[tuple[str, int], float], sizes: Iterable[int]) -> float:
    """The exponent with which the time grows over the last two sizes: 1 is linear."""
    *_, a, b = sizes
    return log(times["rulewright", b] / times["rulewright", a]) / log(b / a)


def memory_of(workload: str, size: int) -> float:
    """kB for each node of the input, graph and rewriting together, as a process of its own uses them."""
    command = [sys.executable, __file__, "--memory", workload, str(size)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_memory() -> int:
    """The most memory that this process has had, in kB. `ru_maxrss` would begin with that of the process before it."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def print_memory(workload: str, size: int) -> None:
    from rulewright.engine.uop import walk

    peer = Rulewright()
    peer.rewrite(WORKLOADS[workload](peer, 100))
    before = peak_memory()
    graph = WORKLOADS[workload](peer, size)
    result = peer.rewrite(graph)
    after = peak_memory()
    assert result is not None
    print((after - before) / sum(1 for _ in walk(graph)))


# --- the whole pipeline ----------------------------------------------------------------------------------------------


def unrolled(lanes: int) -> tuple[float, int]:
    """A loop body of so many loads and stores through all stages of a kernel: seconds, and vector stores at the end."""
    from rulewright.engine import dtypes, ops
    from rulewright.engine.rewriting import RuleSet
    from rulewright.engine.target import Context, Target
    from rulewright.engine.uop import buffer, const, make, range_, walk

    source, result = buffer(0, dtypes.float32, None), buffer(1, dtypes.float32, None)
    i, lane = range_(0, 64), range_(1, lanes, ops.AxisKind.UPCAST)
    at = make(ops.ADD, make(ops.MUL, i, const(dtypes.index, lanes)), lane)
    store = make(ops.STORE, result, at, make(ops.MUL, make(ops.LOAD, source, at), const(dtypes.float32, 2.0)))
    graph = make(ops.SINK, make(ops.WIDEN, store, lane, dtype=store.dtype))
    context = Context(Target("a CPU", frozenset({"max", "floordiv"}), (8, 4, 2)))
    start = process_time()
    graph, _ = RuleSet.builtin().rewrite(graph, "kernel", context)
    spent = process_time() - start
    return spent, sum(node.op is ops.STORE and node.src[2].dtype.lanes == 8 for node in walk(graph))


def report_pipeline(sizes: Sequence[int], runs: int) -> None:
    print("\nunrolled loads and stores through the whole pipeline `kernel`, grouped into vectors of 8")
    unrolled(8)
    times = []
    for lanes in sizes:
        spent = [unrolled(lanes) for _ in range(runs)]
        times.append(median(run[0] for run in spent))
        print(f"  {lanes:>7} lanes  {times[-1]:8.3f} s  {spent[0][1]} vector stores")
    exponent = log(times[-1] / times[0]) / log(sizes[-1] / sizes[0])
    print(f"  slope {exponent:.2f}")


# --- the table -------------------------------------------------------------------------------------------------------


def report(case: Case, times: dict[tuple[str, int], float], with_peer: bool) -> None:
    for size in sorted({size for _, size in times}):
        ours, theirs = times.get(("rulewright", size)), times.get(("tinygrad", size))
        line = f"{case.workload:9} {size:>9}  {_shown(ours)}  {_rate(size, ours, case.workload)}"
        if with_peer and theirs is not None:
            line += f"  tinygrad {_shown(theirs)}"
        if ours and theirs:
            bar = f" (bar {case.bar:.0f})" if case.bar and size == case.peer_sizes[-1] else ""
            line += f"  ratio {theirs / ours:6.1f}{bar}"
        print(line, flush=True)
    print(f"{'':9} slope {slope(times, case.sizes):.2f}", flush=True)


def _shown(spent: float | None) -> str:
    return " " * 10 if spent is None else f"{spent:8.4f} s"


def _rate(size: int, spent: float | None, workload: str) -> str:
    operators = size * 5 if workload == "nest" else size
    return " " * 16 if not spent else f"{operators / spent:>12,.0f} N/s"


def peers() -> list[Peer]:
    """Rulewright, and tinygrad where it is installed."""
    found: list[Peer] = [Rulewright()]
    try:
        found.append(Tinygrad())
    except ImportError as missing:
        print(f"without tinygrad: {missing}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--only", default="", help="workloads, with commas")
    parser.add_argument("--runs", type=int, default=5, help="runs of each, of which the median counts")
    parser.add_argument("--memory", nargs=2, metavar=("WORKLOAD", "N"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.setrecursionlimit(1_000_000)  # for tinygrad
    if options.memory:
        print_memory(options.memory[0], int(options.memory[1]))
        return
    able = peers()
    for case in QUICK if options.quick else FULL:
        if not options.only or case.workload in options.only.split(","):
            report(case, measure(case, able, options.runs), len(able) > 1)
    if not options.only:
        report_pipeline((64, 128) if options.quick else (1_024, 4_096, 16_384), options.runs)
        size = 1_000 if options.quick else 100_000
        print("\nkB of memory for each node, graph and rewriting together")
        for case in FULL:
            if case.workload not in ("settled", "nest"):
                print(f"  {case.workload:9} {memory_of(case.workload, size):.2f}", flush=True)


if __name__ == "__main__":
    main()
