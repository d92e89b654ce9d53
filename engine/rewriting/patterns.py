"""Python code that matches the left side of a rule: tests from the root down, names bound at their first place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from .. import ops
from ..language.syntax import (
    Apply,
    Attr,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Lanes,
    Literal,
    Name,
    Number,
    Pack,
    Term,
    TypeName,
    Var,
    VarKind,
    Wildcard,
)
from ..ops import Op
from .formulas import attr_code, literal_code, op_name, type_name, value_code
from .scope import Binding, Scope, Sort, UnsupportedRule
from .shapes import root_operator


def variants(term: Term) -> list[Term]:
    """The pattern in every order of its commutative operators, the written one first, equal ones once."""
    found: dict[object, Term] = {}
    for variant in _orders(term):
        found.setdefault(_shape(variant), variant)
    return list(found.values())


def _orders(term: Term) -> Iterator[Term]:
    match term:
        case Apply():
            for args in product(*(list(_orders(arg)) for arg in term.args)):
                yield Apply(term.op, term.attrs, args, term.span)
                if term.op.commutative:
                    yield Apply(term.op, term.attrs, (args[1], args[0]), term.span)
        case Bind():
            for inner in _orders(term.term):
                yield Bind(term.name, inner, term.span)
        case _:
            yield term


def _shape(term: Term) -> object:
    """A key that ignores places in the file."""
    match term:
        case Apply():
            return (term.op.name, str([_attr_shape(a) for a in term.attrs]), tuple(_shape(arg) for arg in term.args))
        case Bind():
            return ("@", term.name, _shape(term.term))
        case Pack():
            return ("...", _shape(term.term))
        case Var():
            return ("var", term.name)
        case Literal():
            return ("literal", repr(term.value))
        case Wildcard():
            return "_"
        case _:
            return id(term)  # lanes are never reordered


def _attr_shape(attr: Attr) -> str:
    match attr:
        case Op():
            return attr.name
        case TypeName():
            return attr.dtype.name
        case Var() | Name():
            return attr.name
        case _:
            return repr(attr)


class PatternCode:
    """Emits the body of a matching function, line by line. Operators of the root and its operands are known to match."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.lines: list[str] = []
        self.indent = 1
        self.failed = "return None"
        self.chains: list[tuple[Chain, str]] = []  # matched last, when the other names are bound

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def require(self, condition: str) -> None:
        self.emit(f"if not ({condition}): {self.failed}")

    def match(self, term: Term, place: str, known_op: bool = False) -> None:
        """Code that matches `term` with the node in the Python variable `place`."""
        match term:
            case Var():
                self._variable(term, place, known_op)
            case Wildcard():
                pass
            case Literal():
                self._literal(term, place, known_op)
            case Bind():
                self.match(term.term, place, known_op)
                self.scope.names[term.name] = Binding(Sort.NODE, place)
            case Apply():
                self._application(term, place, known_op)
            case Lanes():
                self._lanes(term, place, known_op)
            case Compute():
                self._counter(term, place)
            case Chain():
                self.chains.append((term, place))
            case Pack() | Comprehension():
                raise UnsupportedRule(term.span, f"a {type(term).__name__.lower()} cannot be matched here")

    def _variable(self, term: Var, place: str, known_op: bool) -> None:
        bound = self.scope.names.get(term.name)
        if bound is not None and bound.sort is Sort.NUMBER:
            self.require(f"{place}.op is OP_const and {place}.arg == {bound.code}")
        elif bound is not None:
            self.require(f"{place} is {bound.code}")
        else:
            if term.kind is VarKind.CONST and not known_op:
                self.require(f"{place}.op is OP_const")
            sort = Sort.CONST if term.kind is VarKind.CONST else Sort.NODE
            self.scope.names[term.name] = Binding(sort, place)

    def _literal(self, term: Literal, place: str, known_op: bool) -> None:
        if not known_op:
            self.require(f"{place}.op is OP_const")
        value = term.value
        if value == 0:
            negative = isinstance(value, float) and str(value).startswith("-")
            self.require(f"is_{'negative' if negative else 'positive'}_zero({place}.arg)")
        elif value != value:
            self.require(f"{place}.arg != {place}.arg")
        elif isinstance(value, int) and value < 0:
            self.require(f"{place}.arg == {place}.dtype.canonical({value})")
        else:
            self.require(f"{place}.arg == {literal_code(value)}")

    def _application(self, term: Apply, place: str, known_op: bool) -> None:
        if not known_op:
            self.require(f"{place}.op is {op_name(term.op)}")
        self._attributes(term, place)
        args = term.args
        if args and isinstance(args[-1], Pack):
            if len(args) > 1:
                self.require(f"len({place}.src) >= {len(args) - 1}")
            names = self._operands(place, len(args) - 1)
            self._pack(args[-1], f"{place}.src[{len(args) - 1}:]")
            args = args[:-1]
        else:
            if term.op.arity is None:
                self.require(f"len({place}.src) == {len(args)}")
            names = self._operands(place, len(args), whole=True)
        for arg, name in sorted(zip(args, names, strict=True), key=lambda pair: _cost(pair[0], self.scope)):
            self.match(arg, name, known_op=place == "n" and len(args) <= 3 and root_operator(arg) is not None)

    def _operands(self, place: str, count: int, whole: bool = False) -> list[str]:
        names = [self.scope.python_name("s") for _ in range(count)]
        if not names:
            return names
        if whole:
            self.emit(f"{', '.join(names)}{',' if count == 1 else ''} = {place}.src")
        else:
            for position, name in enumerate(names):
                self.emit(f"{name} = {place}.src[{position}]")
        return names

    def _pack(self, pack: Pack, code: str) -> None:
        if isinstance(pack.term, Wildcard):
            return
        if not isinstance(pack.term, Var):
            raise UnsupportedRule(pack.span, "on the left `...` takes a name")
        bound = self.scope.names.get(pack.term.name)
        if bound is not None:
            self.require(f"{code} == {bound.code}")
        else:
            name = self.scope.python_name("pack")
            self.emit(f"{name} = {code}")
            self.scope.names[pack.term.name] = Binding(Sort.PACK, name)

    def _attributes(self, term: Apply, place: str) -> None:
        if term.op in (ops.CAST, ops.BITCAST):
            places = [f"{place}.dtype.scalar"]
        elif term.op in (ops.LOAD, ops.VECTORIZE):
            places = [f"{place}.dtype.lanes"]
        elif term.op is ops.FOLD_LANES:
            places = [f"{place}.arg", f"{place}.dtype.lanes"]
        else:
            places = [f"{place}.arg"]
        for attr, code in zip(term.attrs, places, strict=False):
            self._attribute(attr, code)

    def _attribute(self, attr: Attr, code: str) -> None:
        match attr:
            case Op():
                self.require(f"{code} is {op_name(attr)}")
            case TypeName():
                self.require(f"{code} is {type_name(attr.dtype)}")
            case Number():
                self.require(f"{code} == {attr.value!r}")
            case Var() | Name():
                bound = self.scope.names.get(attr.name)
                if bound is not None:
                    self.require(f"{code} == {attr_code(attr, self.scope)}")
                else:
                    name = self.scope.python_name("a")
                    self.emit(f"{name} = {code}")
                    is_type = isinstance(attr, Var) and attr.kind is VarKind.TYPE
                    self.scope.names[attr.name] = Binding(Sort.TYPE if is_type else Sort.ARG, name)
            case _:
                self.require(f"{code} == {attr_code(attr, self.scope)}")

    # --- lanes -------------------------------------------------------------------------------------------------------

    def _lanes(self, term: Lanes, place: str, known_op: bool) -> None:
        if not known_op:
            self.require(f"{place}.op is OP_vectorize")
        lanes = self.scope.python_name("lanes")
        self.emit(f"{lanes} = {place}.src")
        start = 0
        for position, element in enumerate(term.elements):
            last = position == len(term.elements) - 1
            match element:
                case Pack():
                    self._pack(element, lanes if start == 0 else f"{lanes}[{start}:]")
                    return
                case Comprehension():
                    self._comprehension(element, lanes, start, last)
                    if not last and not (position == len(term.elements) - 2 and isinstance(term.elements[-1], Pack)):
                        raise UnsupportedRule(element.span, "after `for` only a last `...rest` can be matched")
                    if not last:
                        rest = term.elements[-1]
                        assert isinstance(rest, Pack)
                        self._pack(rest, f"{lanes}[{start} + {value_code(element.high, self.scope)}:]")
                    return
                case _:
                    name = self.scope.python_name("s")
                    self.require(f"len({lanes}) == {start + 1}" if last else f"len({lanes}) > {start}")
                    self.emit(f"{name} = {lanes}[{start}]")
                    self.match(element, name)
                    start += 1

    def _comprehension(self, term: Comprehension, lanes: str, start: int, last: bool) -> None:
        """The first lane binds the names; a loop over the others compares with them."""
        count = term.high
        if isinstance(count, Name) and count.name not in self.scope.names:
            if not last:
                raise UnsupportedRule(count.span, "the number of lanes must be known where a rest follows")
            self.scope.names[count.name] = Binding(
                Sort.NUMBER, f"len({lanes})" if start == 0 else f"(len({lanes}) - {start})"
            )
        else:
            comparison = "==" if last else ">="
            self.require(f"len({lanes}) {comparison} {start} + {value_code(count, self.scope)}")
        first = self.scope.python_name("lane")
        self.emit(f"{first} = {lanes}[{start}]")
        self._lane(term, first, "0")
        other, number = self.scope.python_name("lane"), self.scope.python_name("k")
        self.emit(f"for {number} in range(1, {value_code(count, self.scope)}):")
        self.indent += 1
        self.emit(f"{other} = {lanes}[{f'{start} + ' if start else ''}{number}]")
        self._lane(term, other, number)
        self.indent -= 1

    def _lane(self, term: Comprehension, place: str, number: str) -> None:
        shadowed = self.scope.names.get(term.counter)
        self.scope.names[term.counter] = Binding(Sort.NUMBER, number)
        self._lane_term(term.term, place, term.counter, number)
        del self.scope.names[term.counter]
        if shadowed is not None:
            self.scope.names[term.counter] = shadowed

    def _lane_term(self, term: Term, place: str, counter: str, number: str) -> None:
        """Like match, but `base + k` compares constant offsets with those of the first lane."""
        if isinstance(term, Apply) and term.op is ops.ADD and _is_counter(term.args[1], counter):
            base = term.args[0]
            if not isinstance(base, Var):
                raise UnsupportedRule(base.span, "before `+ k` a plain name must stand")
            self._offset_lane(base, place, number)
        elif isinstance(term, Apply):
            self.require(f"{place}.op is {op_name(term.op)}")
            self._attributes(term, place)
            self.require(f"len({place}.src) == {len(term.args)}")
            names = self._operands(place, len(term.args), whole=True)
            for arg, name in zip(term.args, names, strict=True):
                self._lane_term(arg, name, counter, number)
        else:
            self.match(term, place)

    def _offset_lane(self, base: Var, place: str, number: str) -> None:
        if base.name not in self.scope.names:
            self.scope.names[base.name] = Binding(Sort.NODE, place)
            name = f"offset_of_{base.name}"
            self.emit(f"{name} = split_offset({place})")
        else:
            self.emit(f"root_k, offset_k = split_offset({place})")
            self.require(f"root_k is offset_of_{base.name}[0] and offset_k == offset_of_{base.name}[1] + {number}")

    def _counter(self, term: Compute, place: str) -> None:
        self.require(f"{place}.op is OP_const and {place}.arg == {value_code(term.formula, self.scope)}")


def _is_counter(term: Term, counter: str) -> bool:
    if isinstance(term, Compute):
        return isinstance(term.formula, Name) and term.formula.name == counter
    return isinstance(term, Var) and term.name == counter


def _cost(term: Term, scope: Scope) -> int:
    """Cheap and selective tests first: constants and repeated names, then operators; plain names cost nothing."""
    match term:
        case Literal():
            return 0
        case Var():
            return 0 if term.name in scope.names or term.kind is VarKind.CONST else 3
        case Wildcard():
            return 3
        case _:
            return 1
