"""Puts the statements of a file together: a module with its declarations, groups of rules, and pipelines, unresolved."""

from __future__ import annotations

from dataclasses import dataclass, field

from lark import Token, Tree

from .blocks import Block, split
from .diagnostics import Report
from .grammar import Node, parse
from .sources import RuleSource
from .syntax import Span

_STARTS = {
    "vars": "names_statement",
    "consts": "names_statement",
    "types": "names_statement",
    "args": "names_statement",
}


def start_symbol(keyword: str) -> str:
    """What the grammar calls a statement that begins with this word."""
    return _STARTS.get(keyword, f"{keyword}_statement")


@dataclass(frozen=True, slots=True)
class Statement:
    """A parsed statement and the block that gives its parts a place."""

    block: Block
    tree: Node

    def span(self, part: Node | Token) -> Span:
        """The place of a part of the statement."""
        if isinstance(part, Token):
            assert part.start_pos is not None and part.end_pos is not None
            return self.block.span(part.start_pos, part.end_pos)
        if part.meta.empty:
            return self.block.head
        return self.block.span(part.meta.start_pos, part.meta.end_pos)

    def text(self, part: Node) -> str:
        """A part as it is written."""
        return self.block.text[part.meta.start_pos : part.meta.end_pos]

    @property
    def name(self) -> Token:
        """The word after the keyword."""
        token = self.tree.children[0]
        if isinstance(token, Tree):  # `group.rule`
            token = token.children[-1]
        assert isinstance(token, Token)
        return token


@dataclass(slots=True)
class GroupText:
    """A group and the rules that stand in it."""

    statement: Statement
    rules: list[Statement] = field(default_factory=list)

    @property
    def extends(self) -> bool:
        """Whether its rules join a group of another file."""
        return self.statement.block.keyword == "extend"


@dataclass(slots=True)
class Module:
    """A file's statements by kind, in the order in which they stand."""

    source: RuleSource
    name: str
    doc: str = ""
    named: Span | None = None
    broken: list[Block] = field(default_factory=list)  # declarations that do not parse
    uses: list[Statement] = field(default_factory=list)
    names: list[Statement] = field(default_factory=list)
    families: list[Statement] = field(default_factory=list)
    externs: list[Statement] = field(default_factory=list)
    groups: list[GroupText] = field(default_factory=list)
    views: list[Statement] = field(default_factory=list)
    pipelines: list[Statement] = field(default_factory=list)
    changes: list[Statement] = field(default_factory=list)  # `replace`, `disable` and `insert`


def read_module(source: RuleSource, report: Report) -> Module:
    """Parses every statement of a file; what is wrong goes to `report` and the rest is still read."""
    return _Assembly(source, report).module()


class _Assembly:
    """Follows which group is open while the statements of a file go by."""

    def __init__(self, source: RuleSource, report: Report) -> None:
        self.report = report
        self.result = Module(source, source.module)
        self.open: GroupText | None = None
        self.unsure = False  # a broken rule may have swallowed the `}` of its group

    def module(self) -> Module:
        blocks = split(self.result.source, self.report)
        for position, block in enumerate(blocks):
            follows = f"`{blocks[position + 1].keyword}`" if position + 1 < len(blocks) else "the end of the file"
            self._block(block, follows)
        self._close_missing()
        return self.result

    def _block(self, block: Block, follows: str) -> None:
        if block.keyword in ("group", "extend", "pipeline"):
            self._close_missing()
        elif block.keyword not in ("rule", "") and self.open is not None and not self.unsure:
            self.report.error(
                "E002",
                f"`{block.keyword}` cannot stand inside a group",
                block.head,
                "declarations hold for the whole module: put them before the groups",
                ("the group that is open begins here", self.open.statement.block.head),
            )
        if not block.keyword:
            span = block.span(0, len(block.text.split()[0]))
            self.report.error("E001", "expected a statement: `module`, `use`, `vars`, `consts`, `types`, `args`, `family`, "
                              "`view`, `extern`, `group`, `pipeline`, `extend`, `replace`, `disable` or `insert`", span)  # fmt: skip
            return
        tree = parse(block.text, start_symbol(block.keyword), block.span, self.report, follows)
        if tree is not None:
            self._statement(Statement(block, tree))
        elif block.keyword in ("rule", "group", "extend"):
            self.unsure = True
        else:
            self.result.broken.append(block)

    def _statement(self, statement: Statement) -> None:
        match statement.block.keyword:
            case "module":
                self._module_name(statement)
            case "use":
                self.result.uses.append(statement)
            case "family":
                self.result.families.append(statement)
            case "extern":
                self.result.externs.append(statement)
            case "pipeline":
                self.result.pipelines.append(statement)
            case "view":
                self.result.views.append(statement)
            case "replace" | "disable" | "insert":
                self.result.changes.append(statement)
                self._close(statement)
            case "group" | "extend":
                self.open = GroupText(statement)
                self.unsure = False
                self.result.groups.append(self.open)
                self._close(statement)
            case "rule":
                self._rule(statement)
            case _:
                self.result.names.append(statement)

    def _module_name(self, statement: Statement) -> None:
        if self.result.named is not None:
            self.report.error("E053", "a file is one module, its name is already given", statement.block.head,
                              related=("the first name", self.result.named))  # fmt: skip
        self.result.name, self.result.doc = str(statement.name), statement.block.doc
        self.result.named = statement.span(statement.name)

    def _rule(self, statement: Statement) -> None:
        if self.open is not None:
            self.open.rules.append(statement)
        elif not self.unsure:
            self.report.error("E002", f"the rule `{statement.name}` stands outside of a group", statement.block.head,
                              "rules stand in `group name { … }` or `extend name { … }`")  # fmt: skip
        self._close(statement)

    def _close(self, statement: Statement) -> None:
        last = statement.tree.children[-1]
        if isinstance(last, Token) or last is None or last.data != "close":
            return
        if self.open is None and not self.unsure:
            self.report.error("E003", "this `}` closes nothing", statement.span(last))
        self.open = None

    def _close_missing(self) -> None:
        """At the start of another group, or at the end: the open group should have been closed."""
        if self.open is not None and not self.unsure:
            group = self.open.statement
            self.report.error("E003", f"the group `{group.name}` is not closed", group.block.head,
                              "write `}` after its last rule")  # fmt: skip
        self.open, self.unsure = None, False
