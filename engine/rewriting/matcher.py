"""Which rules can match a node: the decision tree of a stage.

The groups of a stage are merged, in order, into one tree for each root operator. Its first level is that operator; the
second tests the type and the shapes of the operands together, with one look-up; a leaf lists the compiled functions
that are left, in the order of the rules. Leaves are made when a node first asks for them, so a node that no rule can
match costs two dictionary look-ups. The rules on chains stand apart, by operator and type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .. import ops
from ..dtypes import DType
from ..ops import Op
from ..target import Context
from ..uop import UOp
from .chain_run import ChainRules, ChainRun, TermRule, WholeRule
from .chains import may_chain, terms_of
from .compiler import Function, Row, RowKind, admits
from .shapes import shape

Leaf = tuple[tuple[Function, str], ...]
"""Functions and the ids of their rules, in the order in which they are tried."""


def shape_of(node: UOp) -> object:
    """What a tree looks a node up by: the type that `on` speaks of, and the shapes of the first operands."""
    src = node.src
    if len(src) == 2:
        a, b = src
        return a.dtype, a._shape or shape(a), b._shape or shape(b)
    if len(src) == 1:
        return node.dtype, shape(src[0])
    return (node.dtype, src[2].dtype, shape(src[0]), shape(src[1]), shape(src[2])) if src else node.dtype


def judged_type(node: UOp) -> DType:
    """The type that `on` speaks of: of a comparison its operands', of a store the value's, else the node's."""
    if node.op.negated is not None:
        return node.src[0].dtype
    return node.src[2].dtype if node.op is ops.STORE else node.dtype


class Tree(dict[object, Leaf]):
    """The rules of one root operator: for each shape of node that has been met, those that can match it."""

    def __init__(self, rows: list[Row], functions: Mapping[str, Function], flags: frozenset[str]) -> None:
        self.rows, self.functions, self.flags = rows, functions, flags

    def grow(self, node: UOp, key: object) -> Leaf:
        """The leaf of the nodes of a shape, made from the first of them."""
        src, dtype = node.src, judged_type(node)
        leaf = self[key] = tuple(
            (self.functions[row.function], row.rule)
            for row in self.rows
            if len(row.operands) <= len(src)
            and all(wanted.fits(s) for wanted, s in zip(row.operands, src, strict=False))
            and admits(row.on, dtype, self.flags)
        )
        return leaf

    def leaf(self, node: UOp) -> Leaf:
        key = shape_of(node)
        found = self.get(key)
        return self.grow(node, key) if found is None else found


class PairTree(dict[object, Leaf]):
    """The rules for chains of two terms: those on single nodes, then those on chains."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def grow(self, node: UOp, key: object) -> Leaf:
        """The leaf of the nodes of a shape, made from the first of them."""
        tree = self.matcher.trees.get(node.op)
        rules = self.matcher.chain_rules(node.op, node.dtype)
        on_chain = rules.on_pair(node.src) if rules is not None else []
        leaf = self[key] = (*(tree.leaf(node) if tree is not None else ()), *on_chain)
        return leaf


class Matcher:
    """The rules of one stage, for one target and one set of float flags."""

    def __init__(self, rows: Iterable[Row], functions: dict[str, Function], context: Context) -> None:
        self.context = context
        self._functions = functions
        by_root: dict[Op, list[Row]] = {}
        self._chains: dict[Op, list[Row]] = {}
        for row in rows:
            of_kind = by_root if row.kind is RowKind.NODE else self._chains
            of_kind.setdefault(ops.by_name(row.root), []).append(row)
        self.trees = {op: Tree(own, functions, context.flags) for op, own in by_root.items()}
        self.pairs = {op: PairTree(self) for op in self._chains}
        self._chain_rules: dict[tuple[Op, DType], ChainRules | None] = {}

    def match(self, node: UOp) -> tuple[UOp, str] | None:
        """What the first rule that fires makes of the node, and the rule's id."""
        return self.match_link(node) or self.match_chain(node)

    def match_link(self, node: UOp) -> tuple[UOp, str] | None:
        """The same for the rules on single nodes alone."""
        tree = self.trees.get(node.op)
        if tree is not None:
            for function, rule in tree.leaf(node):
                result = function(node, self.context)
                if result is not None and result is not node:
                    return result, rule
        return None

    def match_chain(self, node: UOp) -> tuple[UOp, str] | None:
        """The same for the rules on the chain that the node is the top of."""
        rules = self.chain_rules(node.op, node.dtype) if node.op in self.pairs else None
        if rules is None:
            return None
        terms = terms_of(node.op, node)
        attempts = rules.attempts(terms)
        if attempts is not None:
            return rules.first(node, terms, attempts, self.context)
        fired: list[str] = []
        run = ChainRun(node, rules, self.context, lambda rule, term: fired.append(rule))
        run.run(limit=1)
        return (run.result(), fired[0]) if fired else rules.first_whole(node, rules.whole, self.context)

    def chain_rules(self, op: Op, dtype: DType) -> ChainRules | None:
        """The rules on chains of this operator and type, if there are any."""
        key = (op, dtype)
        if key not in self._chain_rules:
            self._chain_rules[key] = self._of_chain(op, dtype)
        return self._chain_rules[key]

    def _of_chain(self, op: Op, dtype: DType) -> ChainRules | None:
        flags = self.context.flags
        rows = [row for row in self._chains.get(op, ()) if admits(row.on, dtype, flags)]
        if not rows or not may_chain(op, dtype, flags):
            return None
        functions: Mapping[str, Any] = self._functions
        return ChainRules(
            tuple(
                TermRule(
                    row.rule,
                    functions[row.pattern],
                    functions[row.function],
                    tuple((functions[one.function], one) for one in row.direct),
                    row.repeats,
                )
                for row in rows
                if row.kind is RowKind.TERMS
            ),
            tuple(WholeRule(functions[row.function], row.rule, row.terms) for row in rows if row.kind is RowKind.CHAIN),
        )
