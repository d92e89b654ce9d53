"""The Python source of one matching function: what runs for a rule, a value of its parameters, an order of operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from ..language.syntax import Apply, Chain, Formula, Instance, Logic, Rule, Share, Term, Var
from ..language.terms import bound_names, formula_names, walk
from ..ops import ADD, MUL, Op
from .chains import union
from .formulas import op_name, value_code
from .patterns import PatternCode, variants
from .scope import Binding, Scope, Sort, UnsupportedRule
from .shapes import Place, Wanted, root_operator, shared_places, wanted
from .templates import build


class Direct(NamedTuple):
    """A function that takes the terms of a chain themselves, and what must be true of them before it is called."""

    function: str
    shapes: tuple[Wanted, ...]
    same: tuple[tuple[Place, Place], ...]  # where the operators must be equal


@dataclass(slots=True)
class Writer:
    """Writes the functions of one instance of a rule; `texts` are the definitions, helpers before what uses them."""

    name: str
    rule: Rule
    instance: Instance
    texts: list[str] = field(default_factory=list)

    def function(self, pattern: Term) -> None:
        """`def name(n, ctx)`: what the rule makes of the node `n`, or None."""
        scope = self._scope()
        code = PatternCode(scope)
        code.match(pattern, "n", known_op=True)
        later = self._early_guard(code) if code.chains else self._conditions()
        deferred = self._chains(code)
        start = len(code.lines)
        self._build(code, later, deferred)
        body = code.lines
        if code.chains and _may_lack_value(code.lines[start:]):
            body = [*code.lines[:start], *_guarded(code.lines[start:], code.indent, code.failed)]
        if _may_lack_value(code.lines if not code.chains else code.lines[:start]):
            body = _guarded(body, 1, "return None")
        self._define(f"{self.name}(n, ctx)", body)

    def chain_function(self, chain: Chain, made: Sequence[Term]) -> str:
        """`def name(n, ctx, …)`: the terms that take the place of the matched ones in the chain `n`, or None.

        Its other arguments are the values of the names. Returns the name of the pattern's definition.
        """
        pattern, names = self._pattern(chain)
        scope = self._scope()
        for name, sort in names.items():
            scope.names[name] = Binding(sort, f"v_{name}")
        self._made(self.name, [f"v_{name}" for name in names], PatternCode(scope), made)
        return pattern

    def direct_functions(self, chain: Chain, made: Sequence[Term]) -> Iterator[Direct]:
        """`def name(n, ctx, t0, …)`: the same for given terms, one function for each order of their operands."""
        for terms in product(*([term] if self.rule.ordered else variants(term) for term in chain.terms)):
            scope = self._scope()
            code = PatternCode(scope)
            places = [f"t{number}" for number in range(len(terms))]
            for term, place in zip(terms, places, strict=True):
                code.match(term, place)
            name = f"{self.name}_direct{len(self.texts)}"
            self._made(name, places, code, made)
            yield Direct(name, tuple(wanted(term) for term in terms), shared_places(terms))

    def _made(self, name: str, arguments: Sequence[str], code: PatternCode, made: Sequence[Term]) -> None:
        """Ends the code of a function that returns the terms that a rule makes."""
        if self.instance.when is not None:
            code.require(value_code(self.instance.when, code.scope))
        self._lets(code)
        results = [build(term, code.scope, "n.dtype").node for term in made]
        _flush(code, None)
        code.emit(f"return ({' '.join(f'{result},' for result in results)})")
        body = _guarded(code.lines, 1, "return None") if _may_lack_value(code.lines) else code.lines
        self._define(f"{name}({', '.join(['n', 'ctx', *arguments])})", body)

    def _scope(self) -> Scope:
        return Scope(names=parameters(self.instance))

    def _define(self, head: str, body: list[str]) -> None:
        equation = " ".join(self.rule.text.split())
        self.texts.append("\n".join([f"def {head}:  # {self.rule.id}: {equation}", *body, ""]))

    def _conditions(self) -> list[Formula]:
        """The parts of the guard that must all hold."""
        when = self.instance.when
        if isinstance(when, Logic) and when.word == "and":
            return list(when.args)
        return [] if when is None else [when]

    def _early_guard(self, code: PatternCode) -> list[Formula]:
        """Requires what can be told before chains are taken apart; returns the other conditions."""
        later = []
        for condition in self._conditions():
            known = all(name.name in code.scope.names for name in formula_names(condition))
            text = value_code(condition, code.scope) if known else ""
            if known and not _may_lack_value([text]):
                code.require(text)
            else:
                later.append(condition)
        return later

    def _build(self, code: PatternCode, conditions: list[Formula], deferred: list[str]) -> None:
        """The guard, then the right side."""
        if conditions:
            code.require(" and ".join(f"({value_code(one, code.scope)})" for one in conditions))
        for line in deferred:
            code.emit(line)
        self._lets(code)
        result = build(self.instance.right, code.scope, "n.dtype")
        _flush(code, None)
        code.emit(f"return {result.node}")

    def _lets(self, code: PatternCode) -> None:
        for let, term in self.instance.lets:
            built = build(term, code.scope, "n.dtype")
            code.scope.names[let] = Binding(Sort.NODE, _flush(code, built.node))

    # --- chains ------------------------------------------------------------------------------------------------------

    def _chains(self, code: PatternCode) -> list[str]:
        """Code that matches the chains of the pattern; what is only needed once the guard holds is returned."""
        deferred: list[str] = []
        for chain, place in code.chains:
            if chain.op in (ADD, MUL) and place != "n":  # of a root the matcher has seen to it
                code.require(f"{place}.dtype is T_index or may_chain({op_name(chain.op)}, {place}.dtype, ctx.flags)")
            if not chain.terms and not chain.shares and chain.rest is not None:
                _bind(code, chain.rest, place)
                continue
            terms = code.scope.python_name("terms")
            code.emit(f"{terms} = terms_of({op_name(chain.op)}, {place})")
            used = self._terms(code, chain, terms) if chain.terms else "()"
            if chain.shares:
                self._shares(code, chain, place, terms, used, deferred)
            elif chain.rest is None:
                code.require(f"len({used}) == len({terms})")
            else:
                rest = f"others({op_name(chain.op)}, {place}.dtype, {terms}, {used})"
                self._rest(code, chain.rest, rest, deferred)
        return deferred

    def _terms(self, code: PatternCode, chain: Chain, terms: str) -> str:
        """A loop over all ways to find the named terms; the rest of the function stands in it."""
        if len(chain.terms) == 1:
            (term,) = chain.terms
            bound = code.scope.names.get(term.name) if isinstance(term, Var) else None
            if bound is not None and bound.sort in (Sort.NODE, Sort.CONST):
                code.require(f"{bound.code} in {terms}")
                return f"({terms}.index({bound.code}),)"
        pattern, names = self._pattern(chain)
        used = code.scope.python_name("used")
        values = {name: code.scope.python_name("v") for name in names}
        targets = " ".join(f"{value}," for value in values.values())
        code.failed = "continue"
        if len(chain.terms) == 1:
            at, part = code.scope.python_name("at"), code.scope.python_name("term")
            code.emit(f"for {at}, {part} in enumerate({terms}):")
            code.indent += 1
            root = root_operator(chain.terms[0])
            if root is not None:
                code.require(f"{part}.op is {op_name(root)}")
            code.emit(f"for {targets or '_'} in {pattern}.alone(0, {part}):")
            used = f"({at},)"
        else:
            code.emit(f"for {used}, {targets} in {pattern}.matches({terms}):")
        code.indent += 1
        for name, value in values.items():
            bound = code.scope.names.get(name)
            if bound is None:
                code.scope.names[name] = Binding(names[name], value)
            else:
                same = "is" if bound.sort in (Sort.NODE, Sort.CONST) else "=="
                code.require(f"{value} {same} {bound.code}")
        return used

    def _pattern(self, chain: Chain) -> tuple[str, dict[str, Sort]]:
        """Defines the pattern of the named terms; gives its name, and what it binds."""
        pattern = f"{self.name}_chain{len(self.texts)}"
        alternatives: list[str] = []
        names: list[tuple[str, ...]] = []
        sorts: dict[str, Sort] = {}
        for term in chain.terms:
            functions = []
            own: dict[str, Sort] = {}
            for variant in [term] if self.rule.ordered else variants(term):
                functions.append(f"{pattern}_{len(self.texts)}")
                own = self._term(functions[-1], variant, tuple(own))
            alternatives.append(f"({' '.join(f'{function},' for function in functions)})")
            names.append(tuple(own))
            sorts |= own
        self.texts.append(f"{pattern} = ChainPattern({op_name(chain.op)}, ({', '.join(alternatives)},), {names!r})\n")
        return pattern, {name: sorts[name] for name in union(tuple(names))}

    def _term(self, function: str, term: Term, order: tuple[str, ...]) -> dict[str, Sort]:
        """Defines the function that matches one term alone; what it binds, in the order of its values."""
        scope = self._scope()
        given = set(scope.names)
        code = PatternCode(scope)
        code.match(term, "t")
        if code.chains:
            raise UnsupportedRule(term.span, "a chain cannot stand in a term of another chain")
        found = {name: scope.names[name] for name in order or scope.names if name not in given}
        code.emit(f"return ({' '.join(f'{binding.code},' for binding in found.values())})")
        self._define(f"{function}(t)", code.lines)
        return {name: binding.sort for name, binding in found.items()}

    def _shares(self, code: PatternCode, chain: Chain, place: str, terms: str, used: str, deferred: list[str]) -> None:
        if len(chain.shares) == 1 and chain.rest is not None:
            element = code.scope.python_name("e")
            (share,) = chain.shares
            code.scope.names[share.name.name] = Binding(Sort.NODE, element)
            guard = value_code(share.guard, code.scope)
            del code.scope.names[share.name.name]
            if not _may_lack_value([guard]):
                self._one_share(code, chain, place, terms, used, (share, element, guard), deferred)
                return
        guards = []
        for share in chain.shares:
            code.scope.names[share.name.name] = Binding(Sort.NODE, "e")
            guards.append(f"(lambda e: {value_code(share.guard, code.scope)})")
        parts = code.scope.python_name("parts")
        has_rest = chain.rest is not None
        code.emit(
            f"{parts} = shared_out({op_name(chain.op)}, {place}.dtype, {terms}, {used}, "
            f"({' '.join(f'{guard},' for guard in guards)}), {has_rest})"
        )
        code.require(f"{parts} is not None")
        receivers = [*(share.name for share in chain.shares), *([chain.rest] if chain.rest is not None else [])]
        for number, name in enumerate(receivers):
            code.scope.names.pop(name.name, None)
            _bind(code, name, f"{parts}[{number}]")

    def _one_share(
        self, code: PatternCode, chain: Chain, place: str, terms: str, used: str, share: tuple[Share, str, str],
        deferred: list[str],
    ) -> None:  # fmt: skip
        """The same for the most frequent form: one share that always has a value, and the rest."""
        assert chain.rest is not None
        own, element, guard = share
        given, left, at = (code.scope.python_name(stem) for stem in ("given", "left", "at"))
        code.emit(f"{given}, {left} = [], []")
        if used == "()":
            code.emit(f"for {element} in {terms}:")
        else:
            code.emit(f"for {at}, {element} in enumerate({terms}):")
            code.emit(f"    if {at} in {used}: continue")
        code.emit(f"    ({given} if {guard} else {left}).append({element})")
        code.require(f"{given} and {left}")
        for name, part in ((own.name, given), (chain.rest, left)):
            self._rest(code, name, f"combined({op_name(chain.op)}, {place}.dtype, {part})", deferred)

    def _rest(self, code: PatternCode, name: Var, built: str, deferred: list[str]) -> None:
        """The other terms, combined only when the guard holds unless the guard looks at them."""
        when = self.instance.when
        asked = when is not None and name.name in {n.name for n in formula_names(when)}
        if name.name in code.scope.names or asked or len(code.chains) > 1:  # another chain may compare with it
            _bind(code, name, built)
        else:
            local = code.scope.python_name("rest")
            deferred.append(f"{local} = {built}")
            code.scope.names[name.name] = Binding(Sort.NODE, local)


def parameters(instance: Instance) -> dict[str, Binding]:
    """The names that stand for a parameter of the rule, bound to what this instance puts there."""
    return {
        name: Binding(Sort.ARG, op_name(value)) if isinstance(value, Op) else Binding(Sort.NUMBER, str(value))
        for name, value in instance.bindings
    }


def _bind(code: PatternCode, name: Var, built: str) -> None:
    """Binds a name that stands for several terms, or compares it."""
    bound = code.scope.names.get(name.name)
    if bound is not None:
        code.require(f"{built} is {bound.code}")
        return
    local = code.scope.python_name("part")
    code.emit(f"{local} = {built}")
    code.scope.names[name.name] = Binding(Sort.NODE, local)


def made_terms(instance: Instance) -> list[Term] | None:
    """The terms that a chain rule puts in place of the matched ones, or None if it needs the whole chain.

    So it is for `add{a, b, ...rest} => c + rest`: what the rule does concerns `a` and `b` alone.
    """
    left = instance.left
    if not isinstance(left, Chain) or not left.terms or left.shares or left.rest is None:
        return None
    rest = left.rest.name
    if instance.when is not None and rest in {name.name for name in formula_names(instance.when)}:
        return None
    if rest in set().union(*(bound_names(term) for term in (*left.terms, *(term for _, term in instance.lets)))):
        return None
    leaves: list[Term] = []
    stack = [instance.right]
    while stack:
        term = stack.pop()
        if isinstance(term, Apply) and term.op is left.op:
            stack += reversed(term.args)
        else:
            leaves.append(term)
    made = [term for term in leaves if not (isinstance(term, Var) and term.name == rest)]
    mentioned = any(isinstance(part, Var) and part.name == rest for term in made for part in walk(term))
    return None if len(made) != len(leaves) - 1 or mentioned else made


def _flush(code: PatternCode, value: str | None) -> str:
    """Emits the pending statements, and `value` under a name of its own."""
    scope = code.scope
    for statement in scope.statements:
        code.emit(statement)
    scope.statements.clear()
    if value is None or value.isidentifier():
        return value or ""
    name = scope.python_name("t")
    code.emit(f"{name} = {value}")
    return name


_RISKY = (
    "constant(", "fold(", "folded(", "convert(", "reinterpret(", " // ", " % ", " << ", " >> ", "extent", "g_size", "widened", "x_", "under(",
)  # fmt: skip
"""Code that may find no value."""


def _may_lack_value(lines: list[str]) -> bool:
    return any(word in line for line in lines for word in _RISKY)


def _guarded(lines: list[str], indent: int, failed: str) -> list[str]:
    """The lines, in which a missing value means that the rule does not fire."""
    margin = "    " * indent
    return [f"{margin}try:", *("    " + line for line in lines), f"{margin}except NO_VALUE:", f"{margin}    {failed}"]
