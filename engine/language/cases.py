"""Reads what a test assumes: types and bounds of its names, buffers, loops, the target, the granted flags."""

from __future__ import annotations

from lark import Token

from ..dtypes import DType, index
from ..target import FLOAT_FLAGS
from .diagnostics import Report, did_you_mean
from .grammar import Node
from .modules import Statement
from .names import TYPE_NAMES, type_named
from .syntax import Given, Span

LOOPS = ("range", "reduce", "upcast", "unroll", "partial")
MEMORY = ("buffer", "local", "image")


def read_given(statement: Statement, tree: Node, report: Report) -> tuple[Given, ...]:
    """The assumptions after `given`."""
    reader = _Reader(statement, report)
    found: dict[str, Span] = {}
    result = []
    for part in tree.children:
        if part is None or isinstance(part, Token):
            continue
        given = reader.assumption(part)
        if given is None:
            continue
        key = given.names[0] if given.form not in ("target", "flags") else f"{given.form}(…)"
        if key in found:
            report.error(
                "E052",
                f"`{key}` is already described",
                given.span,
                related=("the first", found[key]),
            )
        found[key] = given.span
        result.append(given)
    return tuple(result)


class _Reader:
    def __init__(self, statement: Statement, report: Report) -> None:
        self.statement, self.report = statement, report

    def assumption(self, tree: Node) -> Given | None:
        match tree.data:
            case "bounded":
                name, low, high = tree.children
                return self._value(str(name), None, _integer(low), _integer(high), tree)
            case "typed":
                return self._typed(tree)
            case _:
                return self._featured(tree)

    def _value(
        self,
        name: str,
        dtype: DType | None,
        low: int | None,
        high: int | None,
        tree: Node,
    ) -> Given:
        span = self.statement.span(tree)
        if low is not None and high is not None and low >= high:
            self.report.error(
                "E071",
                f"no value lies in {low}..{high}",
                span,
                "the end is not included",
            )
        return Given("value", (name,), dtype, low, high, (), span)

    def _typed(self, tree: Node) -> Given | None:
        name, described, low, high = tree.children
        assert described is not None and not isinstance(described, Token)
        form, *parts = (part for part in described.children if part is not None)
        assert isinstance(form, Token)
        bounds = (None, None) if low is None else (_integer(low), _integer(high))
        if str(form) in LOOPS or str(form) in MEMORY:
            if low is not None:
                self.report.error("E019", f"a {form} has no bounds", self.statement.span(tree))
            described_by = self._loop if str(form) in LOOPS else self._memory
            return described_by(str(name), str(form), [str(part) for part in parts], tree)
        dtype = self._type(str(form), form)
        if dtype is None:
            return None
        if parts:
            self.report.error(
                "E019",
                f"the type `{form}` takes no brackets",
                self.statement.span(described),
            )
        return self._value(str(name), dtype, bounds[0], bounds[1], tree)

    def _type(self, name: str, part: Token) -> DType | None:
        dtype = type_named(name)
        if dtype is None:
            hint = did_you_mean(name, [*TYPE_NAMES, *LOOPS, *MEMORY])
            self.report.error("E014", f"unknown type `{name}`", self.statement.span(part), hint)
        return dtype

    def _loop(self, name: str, form: str, parts: list[str], tree: Node) -> Given | None:
        span = self.statement.span(tree)
        if len(parts) != 1 or not parts[0][0].isdigit():
            self.report.error(
                "E019",
                f"a {form} needs its number of steps",
                span,
                f"`{name}: {form}[16]`",
            )
            return None
        return Given(form, (name,), index, 0, int(parts[0], 0), (), span)

    def _memory(self, name: str, form: str, parts: list[str], tree: Node) -> Given | None:
        span = self.statement.span(tree)
        if len(parts) not in (1, 2) or parts[0][0].isdigit() or len(parts) == 2 and not parts[1][0].isdigit():
            self.report.error("E019", f"a {form} needs the type of its elements, and may say how many there are", span,
                              f"`{name}: {form}[float32, 64]`")  # fmt: skip
            return None
        dtype = type_named(parts[0])
        if dtype is None or dtype.lanes > 1 or dtype is index:
            self.report.error(
                "E014",
                f"a {form} cannot hold `{parts[0]}`",
                span,
                did_you_mean(parts[0], TYPE_NAMES[1:]),
            )
            return None
        return Given(
            form,
            (name,),
            dtype,
            0,
            int(parts[1], 0) if len(parts) == 2 else None,
            (),
            span,
        )

    def _featured(self, tree: Node) -> Given | None:
        form, *features = (part for part in tree.children if part is not None)
        words = [str(part.children[0]) for part in features if not isinstance(part, Token)]
        span = self.statement.span(tree)
        if form == "target":
            widths = tuple(int(word, 0) for word in words if word[0].isdigit())
            return Given(
                "target",
                tuple(w for w in words if not w[0].isdigit()),
                None,
                None,
                None,
                widths,
                span,
            )
        if form == "flags":
            for word in words:
                if word not in FLOAT_FLAGS:
                    self.report.error(
                        "E016",
                        f"unknown flag `{word}`",
                        span,
                        did_you_mean(word, FLOAT_FLAGS),
                    )
            return Given("flags", tuple(words), None, None, None, (), span)
        self.report.error(
            "E019",
            f"unknown assumption `{form}(…)`",
            span,
            "it is `target(…)` or `flags(…)`",
        )
        return None


def _integer(tree: Node | Token | None) -> int:
    assert tree is not None and not isinstance(tree, Token)
    sign, digits = tree.children
    return int(str(digits), 0) * (1 if sign is None else -1)
