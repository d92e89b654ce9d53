"""A set of rules ready to run: loaded from `.rules` files, compiled, cached on disk, applied stage by stage."""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import CodeType

from ..cache import cache_directory
from ..errors import KernelError
from ..language.externs import EXTERNS
from ..language.parser import RuleSource, load_rules, read_sources
from ..language.syntax import RuleBook
from ..target import Context
from ..uop import UOp
from .compiler import Compiled, Function, compile_rules
from .fixed_point import Report, paused_collector, run_stage
from .matcher import Matcher


@dataclass(slots=True)
class Trace:
    """What a pipeline did: the report of each stage, in order, with the groups that it ran."""

    stages: list[tuple[str, Report]] = field(default_factory=list)

    @property
    def fires(self) -> Counter[str]:
        """How often each rule fired, over all stages."""
        total: Counter[str] = Counter()
        for _, report in self.stages:
            total.update(report.fires)
        return total

    def __str__(self) -> str:
        lines = []
        for name, report in self.stages:
            lines.append(f"{name}: {sum(report.fires.values())} rewrites, {report.visited} nodes visited")
            lines += [f"  {count:6} {rule}" for rule, count in report.fires.most_common()]
        return "\n".join(lines)


@dataclass(slots=True)
class RuleSet:
    """Compiled rules. `sources` are the texts, kept for the tools that need the syntax tree."""

    sources: tuple[RuleSource, ...]
    compiled: Compiled
    _functions: dict[str, Function] | None = None
    _matchers: dict[tuple[tuple[str, ...], Context], Matcher] = field(default_factory=dict)
    _inner: dict[Context, Matcher] = field(default_factory=dict)

    @classmethod
    def builtin(cls) -> RuleSet:
        """Our own rules, from the package's `rules/`."""
        return _builtin()

    @classmethod
    def builtin_beside(cls, own: Sequence[RuleSource]) -> list[RuleSource]:
        """Our own files, without those that a user's file of the same module replaces."""
        replaced = {source.module for source in own}
        return [source for source in cls.builtin().sources if source.module not in replaced]

    @classmethod
    def load(cls, *paths: str | Path) -> RuleSet:
        """Our rules with those of these files, or folders of files, on top: what they add, replace and disable.

        Raises RuleError for a file that cannot be read, RuleSyntaxError with everything that is wrong in the files.
        """
        own = read_sources(paths)
        return cls.from_sources([*cls.builtin_beside(own), *own])

    @classmethod
    def loads(cls, text: str, name: str = "<text>") -> RuleSet:
        """Like `load`, of rules written in a string."""
        own = [RuleSource(name, text)]
        return cls.from_sources([*cls.builtin_beside(own), *own])

    @classmethod
    def from_text(cls, text: str, name: str = "<text>") -> RuleSet:
        """The rules in a string alone, without ours."""
        return cls.from_sources([RuleSource(name, text)])

    @classmethod
    def from_sources(cls, sources: Sequence[RuleSource]) -> RuleSet:
        """The rules of these texts alone, as one set. Raises RuleSyntaxError with everything that is wrong in them."""
        return cls(tuple(sources), _compile_cached(tuple(sources)))

    def book(self) -> RuleBook:
        """The syntax tree, parsed anew: for checks, documentation and explanations."""
        return load_rules(self.sources)

    def stages(self, pipeline: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The stages of a pipeline: (mode, groups). Raises KernelError if there is no such pipeline."""
        try:
            return self.compiled.pipelines[pipeline]
        except KeyError:
            names = ", ".join(sorted(self.compiled.pipelines)) or "none"
            raise KernelError(f"there is no pipeline `{pipeline}`; the rules define {names}") from None

    def matcher(self, groups: Iterable[str], context: Context) -> Matcher:
        """The decision trees of these groups, merged in order."""
        key = (tuple(groups), context)
        found = self._matchers.get(key)
        if found is None:
            rows = [row for group in key[0] for row in self.compiled.groups[group]]
            found = self._matchers[key] = Matcher(rows, self.functions(), self._simplifying(context))
        return found

    def _simplifying(self, context: Context) -> Context:
        """The context with the way to simplify something on the side: by the first stage of the pipeline `simplify`."""
        stages = self.compiled.pipelines.get("simplify")
        if not stages:
            return context
        rows = [row for group in stages[0][1] for row in self.compiled.groups[group]]

        def simplify(graph: UOp) -> UOp:
            inner = self._inner.get(context)
            if inner is None:
                inner = self._inner[context] = Matcher(rows, self.functions(), context)
            return run_stage(graph, inner).graph

        return replace(context, simplify=simplify)

    def rule_matcher(self, rule: str, context: Context) -> Matcher:
        """The decision tree of one rule alone: for its `test` and `keep` lines."""
        rows = [row for row in self.compiled.groups[rule.split(".")[0]] if row.rule == rule]
        return Matcher(rows, self.functions(), self._simplifying(context))

    @classmethod
    def of_book(cls, sources: Sequence[RuleSource], book: RuleBook) -> RuleSet:
        """A rule book, or a part of one, compiled now and not kept on disk."""
        return cls(tuple(sources), compile_rules(book))

    def functions(self) -> dict[str, Function]:
        if self._functions is None:
            self._functions = self.compiled.functions()
        return self._functions

    def rewrite(
        self,
        graph: UOp,
        pipeline: str,
        context: Context | None = None,
        *,
        fuel: int | None = None,
        keep_steps: bool = False,
        after_stage: Callable[[str, UOp], None] | None = None,
    ) -> tuple[UOp, Trace]:
        """Runs a pipeline. `after_stage(name, graph)` is called after each stage: for verifiers and `show --stage`.

        Raises RewriteError naming the rules if they loop.
        """
        trace = Trace()
        with paused_collector():
            for mode, groups in self.stages(pipeline):
                matcher = self.matcher(groups, context or Context())
                report = run_stage(graph, matcher, once=mode == "once", fuel=fuel, keep_steps=keep_steps)
                graph = report.graph
                name = f"{mode}({', '.join(groups)})"
                trace.stages.append((name, report))
                if after_stage is not None:
                    after_stage(name, graph)
        return graph, trace


@lru_cache(maxsize=1)
def _builtin() -> RuleSet:
    folder = resources.files(__package__.split(".")[0]) / "rules"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".rules")), key=lambda entry: entry.name)
    return RuleSet.from_sources([RuleSource(entry.name, entry.read_text(encoding="utf-8")) for entry in files])


# --- the cache of compiled rules -------------------------------------------------------------------------------------


def _compile_cached(sources: tuple[RuleSource, ...]) -> Compiled:
    """Compiles, or reads what an earlier process compiled from the same texts with the same engine."""
    path = cache_directory() / "rules" / f"{_key(sources)}.bin"
    compiled = _read(path)
    if compiled is None:
        compiled = compile_rules(load_rules(sources))
        _store(path, pickle.dumps((compiled.groups, compiled.pipelines, marshal.dumps(compiled.code))))
    return compiled


def _read(path: Path) -> Compiled | None:
    """What is cached, or None where it is absent, cut short or of another version: then it is made anew."""
    try:
        groups, pipelines, marshalled = pickle.loads(path.read_bytes())  # noqa: S301 - our own file, like a .pyc
        code = marshal.loads(marshalled)  # noqa: S302
    except Exception:  # noqa: BLE001 - a broken cache may fail in any way
        return None
    return Compiled(groups, pipelines, code) if isinstance(code, CodeType) else None


def _key(sources: tuple[RuleSource, ...]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    digest.update(engine_key())
    digest.update(" ".join(sorted(EXTERNS)).encode())  # an extern that is not registered is compiled from its meaning
    for source in sources:
        digest.update(f"\0{source.name}\0{source.text}".encode())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=1)
def engine_key() -> bytes:
    """The engine's own text: another compiler makes other code from the same rules."""
    digest = hashlib.sha256()
    engine = Path(__file__).resolve().parent.parent
    for path in sorted(engine.rglob("*")):
        if path.suffix in (".py", ".lark"):
            digest.update(path.read_bytes())
    return digest.digest()


def _store(path: Path, content: bytes) -> None:
    """Writes whole or not at all; a cache that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
    except OSError:
        return
