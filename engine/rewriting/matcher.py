"""Which rules can match a node: the decision tree of a stage.

The groups of a stage are merged, in order, into one tree for each root operator. Its first level is that operator; the
second tests the type and the operators of the operands together, with one look-up; a leaf lists the compiled
functions that are left, in the order of the rules. Leaves are made when a node first asks for them, so a node that no
rule can match costs two dictionary look-ups. The rules on chains stand apart, by operator and type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import ops
from ..dtypes import DType
from ..ops import Op
from ..target import Context
from ..uop import UOp
from .chain_run import ChainRules, ChainRun, TermRule
from .chains import may_chain
from .compiler import Function, Row, RowKind, admits

Leaf = tuple[tuple[Function, str], ...]
"""Functions and the ids of their rules, in the order in which they are tried."""


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
        self.trees: dict[Op, Callable[[UOp], Leaf]] = {op: self._tree(op, own) for op, own in by_root.items()}
        self.chain_operators = frozenset(self._chains)
        self._chain_rules: dict[tuple[Op, DType], ChainRules | None] = {}

    def match(self, node: UOp) -> tuple[UOp, str] | None:
        """What the first rule that fires makes of the node, and the rule's id."""
        return self.match_link(node) or self.match_chain(node)

    def match_link(self, node: UOp) -> tuple[UOp, str] | None:
        """The same for the rules on single nodes alone."""
        tree = self.trees.get(node.op)
        if tree is not None:
            for function, rule in tree(node):
                result = function(node, self.context)
                if result is not None and result is not node:
                    return result, rule
        return None

    def match_chain(self, node: UOp) -> tuple[UOp, str] | None:
        """The same for the rules on the chain that the node is the top of."""
        rules = self.chain_rules(node.op, node.dtype) if node.op in self.chain_operators else None
        if rules is None:
            return None
        fired: list[str] = []
        run = ChainRun(node, rules, self.context, lambda rule, term: fired.append(rule))
        run.run(limit=1)
        return (run.result(), fired[0]) if fired else self.match_whole(rules, node)

    def match_whole(self, rules: ChainRules, node: UOp) -> tuple[UOp, str] | None:
        """What the first rule makes of a chain that looks at all of it."""
        for function, rule in rules.whole:
            result = function(node, self.context)
            if result is not None and result is not node:
                return result, rule
        return None

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
                TermRule(row.rule, functions[row.pattern], functions[row.function])
                for row in rows
                if row.kind is RowKind.TERMS
            ),
            tuple((functions[row.function], row.rule) for row in rows if row.kind is RowKind.CHAIN),
        )

    def _tree(self, op: Op, rows: list[Row]) -> Callable[[UOp], Leaf]:
        """The function that finds a node's leaf. One for each shape of operator: this is the engine's inner loop."""
        leaves: dict[object, Leaf] = {}
        find = leaves.get

        def grow(key: object, dtype: DType, operands: tuple[Op, ...]) -> Leaf:
            leaf = leaves[key] = self._leaf(rows, dtype, operands)
            return leaf

        def unary(node: UOp) -> Leaf:
            (a,) = node.src
            key = (node.dtype, a.op)
            leaf = find(key)
            return grow(key, node.dtype, (a.op,)) if leaf is None else leaf

        def binary(node: UOp) -> Leaf:
            a, b = node.src
            key = (node.dtype, a.op, b.op)
            leaf = find(key)
            return grow(key, node.dtype, (a.op, b.op)) if leaf is None else leaf

        def comparison(node: UOp) -> Leaf:
            a, b = node.src
            key = (a.dtype, a.op, b.op)
            leaf = find(key)
            return grow(key, a.dtype, (a.op, b.op)) if leaf is None else leaf

        def general(node: UOp) -> Leaf:
            dtype = node.src[2].dtype if op is ops.STORE else node.dtype
            operands = tuple([s.op for s in node.src[:3]])
            key = (dtype, operands)
            leaf = find(key)
            return grow(key, dtype, operands) if leaf is None else leaf

        if op.negated is not None:
            return comparison
        if op.arity == 2:
            return binary
        return unary if op.arity == 1 else general

    def _leaf(self, rows: list[Row], dtype: DType, operands: tuple[Op, ...]) -> Leaf:
        names = tuple(op.name for op in operands)
        return tuple(
            (self._functions[row.function], row.rule)
            for row in rows
            if len(row.operands) <= len(names)
            and all(wanted is None or wanted == name for wanted, name in zip(row.operands, names, strict=False))
            and admits(row.on, dtype, self.context.flags)
        )
