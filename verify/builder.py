"""Builds a graph that a left side matches, from descriptions of its atoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..engine import dtypes, ops
from ..engine.dtypes import DType
from ..engine.language.syntax import (
    Apply,
    Attr,
    Bind,
    Chain,
    Comprehension,
    Compute,
    Formula,
    Lanes,
    Literal,
    Name,
    Number,
    Operation,
    Pack,
    Term,
    TypeName,
    Var,
)
from ..engine.ops import BufferArg, Op, RangeArg, SpecialArg, ThreadKind, VarArg
from ..engine.rewriting.support import split_offset, vector
from ..engine.uop import UOp, const, make
from . import leaves
from .atoms import Atom, Pattern
from .leaves import Accumulator, Constant, Leaf, Loop, Memory, Same, Stored, Variable, Varying
from .shapes import Shape

Node = UOp | tuple[UOp, ...]


class Unbuildable(Exception):
    """No graph has this form with these types."""


class Builder:
    """The nodes of one instance. They are made when they are asked for, from `leaves`, which may be exchanged."""

    def __init__(
        self, pattern: Pattern, shape: Shape, parts: Mapping[str, tuple[Leaf, ...]], numbers: Mapping[str, object],
        raw: Sequence[int], ordered: bool, root: DType,
    ) -> None:  # fmt: skip
        self.root = root  # the type that the rule works in
        self.pattern, self.shape, self.parts, self.raw, self.ordered = pattern, shape, parts, raw, ordered
        self.fixed = dict(numbers)  # parameters
        self.nodes: dict[str, Node] = {}
        self.found: dict[str, object] = {}  # what stands in brackets, by its name
        self.binds = {part.name: part for part in _binds(pattern.left)}
        self.places = {name: number for number, name in enumerate(pattern.atoms)}
        self.swaps = 0

    def graph(self) -> UOp:
        """The whole left side."""
        return self.build(self.pattern.left, None if self.root.kind == "void" else self.root)

    def __getitem__(self, name: str) -> object:
        """What a name of a condition stands for."""
        if name in self.fixed:
            return self.fixed[name]
        if name in self.shape.types:
            return self.shape.types[name]
        if name in self.shape.lengths and name not in self.pattern.atoms:
            return self.shape.lengths[name]
        if name in self.pattern.atoms:
            return self._combined(self.pattern.atoms[name])
        if name in self.binds:
            return self.build(self.binds[name], None)
        if name not in self.found:
            self.build(self.pattern.left, None)
        return self.found[name]

    def _combined(self, atom: Atom) -> Node:
        """The node of an atom; what is left of a chain counts as one."""
        node = self.node(atom.name)
        if isinstance(node, tuple) and isinstance(atom.holder, Chain):
            return self._joined(atom.holder.op, list(node), self._chain_type(atom.holder))
        return node

    # --- atoms -------------------------------------------------------------------------------------------------------

    def node(self, name: str, want: DType | None = None) -> Node:
        """The node of an atom, of a `...xs` the tuple of its nodes."""
        found = self.nodes.get(name)
        if found is None:
            atom = self.pattern.atoms[name]
            some = tuple(self._realised(atom, k, leaf, want) for k, leaf in enumerate(self.parts[name]))
            found = self.nodes[name] = some if atom.several else some[0]
        return found

    def type_of(self, atom: Atom, want: DType | None = None) -> DType:
        dtype = self.shape.names.get(atom.name)
        if dtype is not None:
            return dtype
        if isinstance(atom.holder, Chain):
            return self._chain_type(atom.holder)
        return want if want is not None else dtypes.index

    def _chain_type(self, chain: Chain) -> DType:
        for term in chain.terms:
            dtype = self._own_type(term)
            if dtype is not None:
                return dtype
        return self.root

    def _realised(self, atom: Atom, k: int, leaf: Leaf, want: DType | None) -> UOp:
        number = 8 * self.places[atom.name] + k
        name = f"{atom.name}{k}" if atom.several else atom.name
        match leaf:
            case Loop():
                return leaves.loop(number, leaf)
            case Memory():
                return leaves.buffer(self.places[atom.name], self.type_of(atom), leaf.size)
            case Stored():
                return leaves.store(atom.name, k, leaf)
            case Accumulator():
                inner = tuple(leaves.loop(number + 1 + j, one) for j, one in enumerate(leaf.loops))
                return leaves.accumulator(name, number, self.type_of(atom, want), inner)
            case Constant():
                return const(self.type_of(atom, want), leaf.value)
            case Same():
                other = self.node(leaf.name)
                if isinstance(other, tuple) or other.dtype is not self.type_of(atom, want):
                    raise Unbuildable
                return other
            case Variable():
                return leaves.variable(name, self.type_of(atom, want), leaf)
            case Varying():
                opened = [node for term in atom.scope for node in self._opened(term)]
                loops = [node for node in opened if node.op is ops.RANGE]
                states = [node for node in opened if node.op is ops.DEFINE_ACC]
                loops += [loop for state in states for loop in state.src[1:] if loop not in loops]
                return leaves.varying(name, number, self.type_of(atom, want), leaf.form, loops, states)

    def _opened(self, term: Term) -> tuple[UOp, ...]:
        while isinstance(term, Pack):
            term = term.term
        if isinstance(term, Var) and term.name in self.pattern.atoms:
            node = self.node(term.name)
            return node if isinstance(node, tuple) else (node,)
        return (self.build(term, None),)

    # --- terms -------------------------------------------------------------------------------------------------------

    def build(self, term: Term, want: DType | None) -> UOp:
        """The node of a term; `want` is the type that must stand here, as far as that is known."""
        match term:
            case Var():
                return self._name(term, want)
            case Literal():
                return const(_needed(want), term.value)
            case Bind():
                return self.build(term.term, want)
            case Compute():
                return const(want or dtypes.index, self.number(term.formula))
            case Lanes():
                return self._vector(term, want)
            case Chain():
                return self._chain(term)
            case Apply():
                return self._apply(term, want)
        raise Unbuildable

    def _name(self, term: Var, want: DType | None) -> UOp:
        if term.name in self.fixed:
            return const(want or dtypes.index, self.number(Name(term.name, term.span)))
        node = self.node(term.name, want)
        if isinstance(node, tuple):
            raise Unbuildable
        return node

    def _apply(self, term: Apply, want: DType | None) -> UOp:
        op = term.op
        if op.elementwise:
            return self._elementwise(term, want)
        match op:
            case ops.GEP:
                return self._pick(term, want)
            case ops.LOAD | ops.STORE:
                return self._access(term, want)
            case ops.RANGE | ops.SPECIAL | ops.BUFFER | ops.LOCAL | ops.VAR:
                return self._counted(term, want)
            case ops.WIDEN:
                value, over = self.build(term.args[0], want), self.build(term.args[1], None)
                dtype = value.dtype
                wide = dtype if dtype.kind == "void" else dtype.vec(dtype.lanes * _steps(over))
                return make(op, value, over, dtype=wide)
            case ops.FOLD_LANES:
                return self._fold_lanes(term, want)
            case _:
                src = self._operands(term, want)
                return make(op, *src, arg=self._argument(term, src))

    def _operands(self, term: Apply, want: DType | None) -> list[UOp]:
        """The operands, a `...xs` spread out; the first is of the wanted type, as are all of a `phi`."""
        src: list[UOp] = []
        for position, arg in enumerate(term.args):
            if isinstance(arg, Pack):
                src += self._spread(arg, None)
            else:
                own = want if position == 0 or term.op is ops.PHI else None
                src.append(self.build(arg, own if own is not None or not src else src[0].dtype))
        return src

    def _spread(self, pack: Pack, want: DType | None) -> tuple[UOp, ...]:
        if not isinstance(pack.term, Var):
            raise Unbuildable
        node = self.node(pack.term.name, want)
        return node if isinstance(node, tuple) else (node,)

    def _elementwise(self, term: Apply, want: DType | None) -> UOp:
        op = term.op
        if op in (ops.CAST, ops.BITCAST):
            operand = self.build(term.args[0], None)
            target = self._type(term.attrs[0], want) if term.attrs else _needed(want)
            return make(op, operand, dtype=target.vec(operand.dtype.lanes))
        if op is ops.WHERE:
            branches = self._alike(term.args[1:], want)
            return make(op, self.build(term.args[0], dtypes.bool_.vec(branches[0].dtype.lanes)), *branches)
        operands = self._alike(term.args, None if op.negated is not None else want)
        if op.commutative and not self.ordered and self._swapped():
            operands.reverse()
        return make(op, *operands)

    def _swapped(self) -> bool:
        self.swaps += 1
        return bool(self.raw[self.swaps % len(self.raw)] % 3 == 2)

    def _alike(self, terms: Sequence[Term], want: DType | None) -> list[UOp]:
        """Operands of one type: those that have one of their own tell the others."""
        dtype = want
        for term in terms:
            dtype = self._own_type(term) or dtype
        built: dict[int, UOp] = {}
        late = (Literal, Compute, Lanes)
        for k in sorted(range(len(terms)), key=lambda k: isinstance(terms[k], late)):
            if isinstance(terms[k], Pack):
                raise Unbuildable
            built[k] = self.build(terms[k], dtype)
            dtype = built[k].dtype
        return [built[k] for k in range(len(terms))]

    def _own_type(self, term: Term) -> DType | None:
        """The type of a term that the names in it tell."""
        match term:
            case Var():
                return self.shape.names.get(term.name)
            case Bind():
                return self._own_type(term.term)
            case Apply() if term.op.elementwise and term.op.negated is None and term.op not in _CONVERSIONS:
                parts = term.args[1:] if term.op is ops.WHERE else term.args
                return next(filter(None, map(self._own_type, parts)), None)
            case _:
                return None

    def _pick(self, term: Apply, want: DType | None) -> UOp:
        vector_ = self.build(term.args[0], want)
        if vector_.dtype.lanes < 2:
            raise Unbuildable
        return make(ops.GEP, vector_, arg=self._bracket(term.attrs, 0, vector_.dtype.lanes))

    def _fold_lanes(self, term: Apply, want: DType | None) -> UOp:
        value = self.build(term.args[0], want)
        lanes = value.dtype.lanes
        divisors = [n for n in range(1, lanes + 1) if lanes % n == 0]
        kept = self._bracket(term.attrs, 1, len(divisors))
        if len(term.attrs) < 2 or isinstance(term.attrs[1], Var):
            kept = divisors[kept]
            self.found[_attr_name(term.attrs, 1)] = kept
        return make(ops.FOLD_LANES, value, dtype=value.dtype.vec(kept), arg=self._reducer(term.attrs))

    # --- vectors and chains ------------------------------------------------------------------------------------------

    def _vector(self, term: Lanes, want: DType | None) -> UOp:
        lane = want.scalar if want is not None else self._lane_type(term)
        nodes: list[UOp] = []
        for element in term.elements:
            match element:
                case Pack():
                    nodes += self._spread(element, lane)
                case Comprehension():
                    nodes += self._comprehension(element, lane)
                case _:
                    nodes.append(self.build(element, lane))
            if nodes:
                lane = nodes[0].dtype
        if len(nodes) < 2 or len(nodes) > 16:
            raise Unbuildable
        return vector(tuple(nodes))

    def _lane_type(self, term: Lanes) -> DType | None:
        return next(filter(None, (self._own_type(element) for element in term.elements)), None)

    def _comprehension(self, term: Comprehension, want: DType | None) -> list[UOp]:
        built = []
        for k in range(int(self.number(term.low)), int(self.number(term.high))):
            self.fixed[term.counter] = k
            built.append(self._step(term.term, want))
        self.fixed.pop(term.counter, None)
        return built

    def _step(self, term: Term, want: DType | None) -> UOp:
        """One lane of a comprehension: `base + k` is the base itself in lane 0, and offsets are added up."""
        if isinstance(term, Apply) and term.op is ops.ADD and isinstance(term.args[1], Compute):
            base, offset = self.build(term.args[0], want), int(self.number(term.args[1].formula))
            root, known = split_offset(base) if offset else (base, 0)
            if root is None:
                return const(base.dtype, known + offset)
            return make(ops.ADD, root, const(base.dtype, known + offset)) if known + offset else root
        return self.build(term, want)

    def _chain(self, term: Chain) -> UOp:
        dtype = self._chain_type(term)
        parts = [self.build(part, dtype) for part in term.terms]
        names = [*(share.name for share in term.shares), *([term.rest] if term.rest is not None else [])]
        for name in names:
            node = self.node(name.name, dtype)
            parts += node if isinstance(node, tuple) else (node,)
        start = self.raw[0] % max(1, len(parts))
        parts = [*parts[start:], *parts[:start]]
        if self.raw[1] % 4 == 3 and len(parts) > 2:
            return make(term.op, parts[0], self._joined(term.op, parts[1:], dtype))
        return self._joined(term.op, parts, dtype)

    def _joined(self, op: Op, parts: list[UOp], dtype: DType) -> UOp:
        if not parts:
            assert op.identity is not None
            return const(dtype, op.identity(dtype.scalar))
        result = parts[0]
        for part in parts[1:]:
            result = make(op, result, part)
        return result

    # --- memory, loops, what stands in brackets ----------------------------------------------------------------------

    def _access(self, term: Apply, want: DType | None) -> UOp:
        op, is_load = term.op, term.op is ops.LOAD
        memory = self.build(term.args[0], None)
        if memory.dtype.element is None or len(term.args) < 2 or isinstance(term.args[1], Pack):
            raise Unbuildable
        element = memory.dtype.element
        at = self.build(term.args[1], dtypes.index)
        lanes = at.dtype.lanes
        if is_load and lanes == 1:
            lanes = self._load_lanes(term, want)
        elif is_load and term.attrs:
            self._bind(term.attrs, 0, lanes)
        wants = [dtypes.bool_, element.vec(lanes)] if is_load else [element.vec(lanes), dtypes.bool_]
        src = [memory, at]
        for arg, want in zip(term.args[2:], wants, strict=False):
            if isinstance(arg, Pack):
                src += self._optional(arg, wants[len(src) - 2 :])
                break
            src.append(self.build(arg, want))
        if is_load:
            return make(op, *src, dtype=element.vec(src[3].dtype.lanes if len(src) > 3 and not term.attrs else lanes))
        return make(op, *src)

    def _optional(self, pack: Pack, wants: list[DType]) -> list[UOp]:
        """The operands that an access may have: all or none."""
        assert isinstance(pack.term, Var)
        if not self.parts[pack.term.name]:
            self.nodes[pack.term.name] = ()
            return []
        made = [make(ops.VAR, dtype=want, arg=f"{pack.term.name}{k}") for k, want in enumerate(wants)]
        self.nodes[pack.term.name] = tuple(made)
        return made

    def _load_lanes(self, term: Apply, want: DType | None) -> int:
        """How many consecutive elements are loaded at a scalar index."""
        if not term.attrs:
            return want.lanes if want is not None and want is not self.root else (1, 1, 1, 2, 4)[self.raw[2] % 5]
        if isinstance(term.attrs[0], Var) and term.attrs[0].name not in self.fixed:
            lanes = (1, 2, 4)[self.raw[2] % 3]
            self._bind(term.attrs, 0, lanes)
            return lanes
        return self._bracket(term.attrs, 0, 16)

    def _counted(self, term: Apply, want: DType | None) -> UOp:
        """A leaf that the rule takes apart: a range, a hardware index, a buffer, a variable."""
        op, place = term.op, 90 + self.raw[3] % 4
        src = [self.build(arg, dtypes.index) for arg in term.args]
        if any(end.op is ops.CAST and not end.src[0].dtype.is_int for end in src):
            raise Unbuildable  # nothing counts up to a float
        arg: object
        match op:
            case ops.RANGE:
                arg, dtype = RangeArg(place, leaves.LOOPS[self.raw[4] % 5]), None
            case ops.SPECIAL:
                arg, dtype = SpecialArg(ThreadKind.LOCAL, 0), None
            case ops.VAR:
                arg, dtype = VarArg("size", *((0, 9), (-4, 30), (1, 1))[self.raw[4] % 3]), want or dtypes.index
            case _:
                element = self._type(term.attrs[1], want) if len(term.attrs) > 1 else dtypes.float32
                arg, dtype = BufferArg(place, 16), element.ptr("local" if op is ops.LOCAL else "global")
        self._bind(term.attrs, 0, arg)
        return make(op, *src, dtype=dtype, arg=arg)

    def _argument(self, term: Apply, src: list[UOp]) -> object:
        if term.op is ops.REDUCE:
            return self._reducer(term.attrs)
        if term.op is ops.DEFINE_ACC:
            acc = leaves.accumulator("acc", 1, src[0].dtype, tuple(src[1:]), src[0])
            self._bind(term.attrs, 0, acc.arg)
            return acc.arg
        return None

    def _reducer(self, attrs: tuple[Attr, ...]) -> Op:
        if attrs and isinstance(attrs[0], Op):
            return attrs[0]
        reducer = ops.REDUCERS[self.raw[5] % 4]
        self._bind(attrs, 0, reducer)
        return reducer

    def _bind(self, attrs: tuple[Attr, ...], position: int, value: object) -> None:
        name = _attr_name(attrs, position)
        if self.found.setdefault(name, value) != value:
            raise Unbuildable

    def _bracket(self, attrs: tuple[Attr, ...], position: int, below: int) -> int:
        """A number in brackets; of a name that is bound there, any."""
        if position < len(attrs):
            attr = attrs[position]
            if isinstance(attr, Number | Name | Operation) or isinstance(attr, Var) and attr.name in self.fixed:
                formula = Name(attr.name, attr.span) if isinstance(attr, Var) else attr
                return int(self.number(formula))
        name = _attr_name(attrs, position)
        found = self.found.setdefault(name, self.raw[6] % max(1, below))
        assert isinstance(found, int)
        return found % max(1, below)

    def _type(self, attr: Attr, want: DType | None) -> DType:
        if isinstance(attr, TypeName):
            return attr.dtype.scalar
        if isinstance(attr, Var) and attr.name in self.shape.types:
            return self.shape.types[attr.name]
        return _needed(want).scalar

    def number(self, formula: Formula) -> int:
        """The value of a formula on numbers, parameters and counters."""
        match formula:
            case Number():
                return int(formula.value)
            case Name():
                value = self[formula.name]
                if isinstance(value, int):
                    return value
            case Operation() if formula.op.evaluate is not None:
                result = formula.op.evaluate(dtypes.index, *(self.number(part) for part in formula.args))
                if result is not None:
                    return int(result)
        raise Unbuildable


_CONVERSIONS = (ops.CAST, ops.BITCAST)


def _needed(dtype: DType | None) -> DType:
    if dtype is None:
        raise Unbuildable
    return dtype


def _steps(over: UOp) -> int:
    end = over.src[0].arg if over.op is ops.RANGE and over.src[0].op is ops.CONST else 0
    if not isinstance(end, int) or end < 1:
        raise Unbuildable
    return end


def _attr_name(attrs: tuple[Attr, ...], position: int) -> str:
    attr = attrs[position] if position < len(attrs) else None
    return attr.name if isinstance(attr, Var) else f"[{position}]"


def _binds(term: Term) -> list[Bind]:
    from ..engine.language.terms import walk

    return [part for part in walk(term) if isinstance(part, Bind)]
