"""The operators: one declaration each, which everything else reads.

A declaration states arity, type rule, algebraic facts, precedence and the exact meaning on constants. The folder, the
rule compiler, the interpreter, the proofs and the documentation look here; nothing else lists operators by hand
except the tables of a renderer and the transfer functions in `engine.facts`.

What stands in `src` and `arg` of each node is written beside its declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, final

from . import evaluate as ev
from .dtypes import DType, Scalar, bool_, void
from .errors import GraphError

Types = tuple[DType, ...]
TypeRule = Callable[["DType | None", Types, object], DType]
"""(the type asked for, or None; the operands' types; arg) -> the node's type. Raises GraphError."""


class AxisKind(str, Enum):
    """How the values of a range are visited."""

    LOOP = "loop"
    REDUCE = "reduce"
    UPCAST = "upcast"
    UNROLL = "unroll"  # of a reduction: its steps are combined inside the loop
    PARTIAL = "partial"  # of a reduction: its steps accumulate apart, and are combined after the loop


class ThreadKind(str, Enum):
    """Which part of the launch a `special` index counts."""

    GROUP = "group"
    LOCAL = "local"
    THREAD = "thread"


class BufferArg(NamedTuple):
    """A kernel's buffer argument: its position, and its size in elements (None: symbolic, unchecked).

    `image`: the height and width in texels of four elements, where the device holds it as a 2-D image. `scratch`: no
    caller passes it; the parts of a kernel hand over in it what they found.
    """

    slot: int
    size: int | None
    image: tuple[int, int] | None = None
    scratch: bool = False


class VarArg(NamedTuple):
    """A symbolic variable: an int32 argument of the kernel with both bounds included."""

    name: str
    low: int
    high: int


class Narrowed(NamedTuple):
    """The arg of a variable that stands for `node` where more is known of it: bounds, and the value modulo `modulus`."""

    node: Any
    low: int | float
    high: int | float
    modulus: int
    remainder: int


class RangeArg(NamedTuple):
    """A loop variable: `axis` is its number, unique in a kernel, and its bit in `facts.ranges`."""

    axis: int
    kind: AxisKind


class SpecialArg(NamedTuple):
    """A hardware index: which part of the launch, and the hardware dimension 0, 1, 2."""

    kind: ThreadKind
    dim: int


@final
@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operator. Compared by identity."""

    name: str
    arity: int | None  # None: any number
    typing: TypeRule
    evaluate: ev.Evaluator | None = None
    symbol: str | None = None  # infix, in rules and in printed expressions
    precedence: int = 0  # of the symbol; higher binds tighter
    commutative: bool = False
    associative: bool = False  # exactly on bool and ints; on floats only under `reassoc`
    idempotent: bool = False
    identity: Callable[[DType], Scalar] | None = None  # e with op(x, e) == x
    zero: Callable[[DType], Scalar] | None = None  # z with op(x, z) == z, on bool and ints
    negated: str | None = None  # the comparison that holds exactly where this one does not (ints, index, bool)
    mirrored: str | None = None  # the comparison with its operands exchanged
    elementwise: bool = False  # lane k of the result depends on lane k of the operands alone

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Op], tuple[str]]:
        return by_name, (self.name,)


OPS: dict[str, Op] = {}
"""Every operator by its name in rules."""


def by_name(name: str) -> Op:
    return OPS[name]


def _declare(op: Op) -> Op:
    OPS[op.name] = op
    return op


# --- type rules ------------------------------------------------------------------------------------------------------


def _fail(problem: str) -> GraphError:
    return GraphError(problem)


def _listed(types: Types) -> str:
    return ", ".join(t.name for t in types)


def _same(allowed: str) -> TypeRule:
    """All operands and the result have one type, whose kind is among `allowed`."""
    kinds = frozenset(allowed.split())

    def rule(asked: DType | None, types: Types, arg: object) -> DType:
        first = types[0]
        for other in types:
            if other is not first:
                raise _fail(f"operands must have one type, got {_listed(types)}")
        if first.kind not in kinds:
            raise _fail(f"operands must be {' or '.join(allowed.split())}, got {first}")
        return first

    return rule


def _comparison(asked: DType | None, types: Types, arg: object) -> DType:
    a, b = types
    if a is not b or a.kind in ("void", "pointer"):
        raise _fail(f"can only compare two values of one type, got {_listed(types)}")
    return bool_.vec(a.lanes)


def _where(asked: DType | None, types: Types, arg: object) -> DType:
    condition, a, b = types
    if condition.kind != "bool" or condition.lanes != a.lanes:
        raise _fail(f"the condition must be bool with as many lanes as the branches, got {_listed(types)}")
    if a is not b or a.kind in ("void", "pointer"):
        raise _fail(f"the branches must have one type, got {_listed(types)}")
    return a


def _assume(asked: DType | None, types: Types, arg: object) -> DType:
    condition, value = types
    if condition.kind != "bool" or condition.lanes != 1:
        raise _fail(f"the condition must be one bool, got {_listed(types)}")
    return value


def _convert(asked: DType | None, types: Types, arg: object) -> DType:
    (source,) = types
    if asked is None or asked.kind in ("void", "pointer") or source.kind in ("void", "pointer"):
        raise _fail(f"cannot convert {source} to {asked}")
    if asked.lanes != source.lanes:
        raise _fail(f"a conversion keeps the number of lanes, got {source} to {asked}")
    return asked


def _bitcast(asked: DType | None, types: Types, arg: object) -> DType:
    asked = _convert(asked, types, arg)
    if asked.bits != types[0].bits or "index" in (asked.kind, types[0].kind):
        raise _fail(f"a bitcast keeps the width, got {types[0]} to {asked}")
    return asked


def _asked(*kinds: str) -> TypeRule:
    """A leaf, or an op whose type the maker chooses among `kinds`."""

    def rule(asked: DType | None, types: Types, arg: object) -> DType:
        if asked is None or asked.kind not in kinds:
            raise _fail(f"needs a type that is {' or '.join(kinds)}, got {asked}")
        return asked

    return rule


def _counts(asked: DType | None, types: Types, arg: object) -> DType:
    """A range or a hardware index: one bound, of the type that it counts in."""
    (end,) = types
    if end.lanes != 1 or end.kind not in ("index", "sint", "uint"):
        raise _fail(f"the end must be an index or an integer, got {end}")
    return end


def _nothing(asked: DType | None, types: Types, arg: object) -> DType:
    return void


def _vectorize(asked: DType | None, types: Types, arg: object) -> DType:
    first = types[0]
    if any(t is not first for t in types) or first.lanes != 1 or first.kind in ("void", "pointer"):
        raise _fail(f"lanes must be scalars of one type, got {_listed(types)}")
    return first.vec(len(types))


def _gep(asked: DType | None, types: Types, arg: object) -> DType:
    (vector,) = types
    if not isinstance(arg, int) or not 0 <= arg < vector.lanes:
        raise _fail(f"there is no lane {arg} in {vector}")
    return vector.scalar


def _widen(asked: DType | None, types: Types, arg: object) -> DType:
    value = types[0]
    if value.kind == "void":
        return void
    if asked is None or asked.scalar is not value.scalar or asked.lanes % value.lanes:
        raise _fail(f"cannot widen {value} to {asked}")
    return asked


def _fold_lanes(asked: DType | None, types: Types, arg: object) -> DType:
    (value,) = types
    if asked is None or asked.scalar is not value.scalar or value.lanes % asked.lanes:
        raise _fail(f"cannot combine the lanes of {value} into {asked}")
    return asked


def _load(asked: DType | None, types: Types, arg: object) -> DType:
    pointer, at = types[0], types[1]
    _check_access(pointer, at, types[2] if len(types) > 2 else None)
    if len(types) not in (2, 4):
        raise _fail("takes a buffer and an index, and for a gate also the gate and the alternative")
    assert pointer.element is not None
    lanes = asked.lanes if asked is not None and at.lanes == 1 else at.lanes
    result = pointer.element.vec(lanes)
    if len(types) == 4 and types[3] is not result:
        raise _fail(f"the alternative must have the type of the result, {result}, got {types[3]}")
    return result


def _store(asked: DType | None, types: Types, arg: object) -> DType:
    pointer, at, value = types[0], types[1], types[2]
    _check_access(pointer, at, types[3] if len(types) > 3 else None)
    if value.scalar is not pointer.element or at.lanes not in (1, value.lanes):
        raise _fail(f"cannot store {value} at {at} of {pointer}")
    return void


def _check_access(pointer: DType, at: DType, gate: DType | None) -> None:
    if pointer.element is None:
        raise _fail(f"needs a buffer, got {pointer}")
    if at.kind not in ("index", "sint", "uint"):
        raise _fail(f"the index must be an index or an integer, got {at}")
    if gate is not None and (gate.kind != "bool" or gate.lanes not in (1, at.lanes)):
        raise _fail(f"the gate must be bool, with one lane or as many as the index, got {gate}")


def _after(asked: DType | None, types: Types, arg: object) -> DType:
    return types[0]


def _reduce(asked: DType | None, types: Types, arg: object) -> DType:
    if arg not in REDUCERS:
        raise _fail(f"can reduce by {', '.join(op.name for op in REDUCERS)}, not by {arg}")
    return types[0]


def _group_reduce(asked: DType | None, types: Types, arg: object) -> DType:
    if types[1].element is not types[0].scalar or types[1].space != "local":
        raise _fail(f"needs a group's memory of {types[0].scalar}, got {types[1]}")
    return _reduce(asked, types, arg)


def _phi(asked: DType | None, types: Types, arg: object) -> DType:
    accumulator, new = types
    if accumulator is not new:
        raise _fail(f"the new value must have the accumulator's type, got {_listed(types)}")
    return accumulator


# --- arithmetic ------------------------------------------------------------------------------------------------------

NUMBERS = "bool sint uint index float"
INTEGERS = "sint uint index"
BITS = "bool sint uint index"


def _one(dtype: DType) -> Scalar:
    return dtype.canonical(1)


def _nought(dtype: DType) -> Scalar:
    return dtype.canonical(0)


def _add_identity(dtype: DType) -> Scalar:
    return -0.0 if dtype.is_float else dtype.canonical(0)


def _ones(dtype: DType) -> Scalar:
    return True if dtype.kind == "bool" else dtype.canonical(-1)


def _lowest(dtype: DType) -> Scalar:
    return bool(dtype.lowest) if dtype.kind == "bool" else dtype.lowest


def _highest(dtype: DType) -> Scalar:
    return bool(dtype.highest) if dtype.kind == "bool" else dtype.highest


def _unary(name: str, kinds: str, evaluate: ev.Evaluator) -> Op:
    return _declare(Op(name, 1, _same(kinds), evaluate, elementwise=True))


NEG = _unary("neg", NUMBERS, ev.neg)
NOT = _unary("not", BITS, ev.not_)
RECIP = _unary("recip", "float", ev.recip)
EXP2 = _unary("exp2", "float", ev.exp2)
LOG2 = _unary("log2", "float", ev.log2)
SIN = _unary("sin", "float", ev.sin)
SQRT = _unary("sqrt", "float", ev.sqrt)
FLOOR = _unary("floor", "float", ev.floor)
CEIL = _unary("ceil", "float", ev.ceil)
TRUNC = _unary("trunc", "float", ev.trunc)
ROUND = _unary("round", "float", ev.round_)

ADD = _declare(Op("add", 2, _same(NUMBERS), ev.add, "+", 9, commutative=True, associative=True,
                  identity=_add_identity, elementwise=True))  # fmt: skip
SUB = _declare(Op("sub", 2, _same("sint uint index float"), ev.sub, "-", 9, elementwise=True))
MUL = _declare(Op("mul", 2, _same(NUMBERS), ev.mul, "*", 10, commutative=True, associative=True,
                  identity=_one, zero=_nought, elementwise=True))  # fmt: skip
DIV = _declare(Op("div", 2, _same("float"), ev.div, "/", 10, elementwise=True))
FLOORDIV = _declare(Op("floordiv", 2, _same(INTEGERS), ev.floordiv, "//", 10, elementwise=True))
FLOORMOD = _declare(Op("floormod", 2, _same(INTEGERS), ev.floormod, "%", 10, elementwise=True))
TRUNCDIV = _declare(Op("truncdiv", 2, _same(INTEGERS), ev.truncdiv, elementwise=True))
TRUNCMOD = _declare(Op("truncmod", 2, _same(INTEGERS), ev.truncmod, elementwise=True))
MAX = _declare(Op("max", 2, _same(NUMBERS), ev.maximum, commutative=True, associative=True, idempotent=True,
                  identity=_lowest, zero=_highest, elementwise=True))  # fmt: skip
MIN = _declare(Op("min", 2, _same(NUMBERS), ev.minimum, commutative=True, associative=True, idempotent=True,
                  identity=_highest, zero=_lowest, elementwise=True))  # fmt: skip
AND = _declare(Op("and", 2, _same(BITS), ev.and_, "&", 7, commutative=True, associative=True, idempotent=True,
                  identity=_ones, zero=_nought, elementwise=True))  # fmt: skip
OR = _declare(Op("or", 2, _same(BITS), ev.or_, "|", 5, commutative=True, associative=True, idempotent=True,
                 identity=_nought, zero=_ones, elementwise=True))  # fmt: skip
XOR = _declare(Op("xor", 2, _same(BITS), ev.xor, "^", 6, commutative=True, associative=True,
                  identity=_nought, elementwise=True))  # fmt: skip
SHL = _declare(Op("shl", 2, _same(INTEGERS), ev.shl, "<<", 8, elementwise=True))
SHR = _declare(Op("shr", 2, _same(INTEGERS), ev.shr, ">>", 8, elementwise=True))


def _compare(name: str, evaluate: ev.Evaluator, symbol: str, negated: str, mirrored: str) -> Op:
    return _declare(Op(name, 2, _comparison, evaluate, symbol, 4, commutative=name == mirrored,
                       negated=negated, mirrored=mirrored, elementwise=True))  # fmt: skip


LT = _compare("lt", ev.lt, "<", "ge", "gt")
LE = _compare("le", ev.le, "<=", "gt", "ge")
GT = _compare("gt", ev.gt, ">", "le", "lt")
GE = _compare("ge", ev.ge, ">=", "lt", "le")
EQ = _compare("eq", ev.eq, "==", "ne", "eq")
NE = _compare("ne", ev.ne, "!=", "eq", "ne")

WHERE = _declare(Op("where", 3, _where, ev.where, elementwise=True))  # condition, value if true, value if false
MULACC = _declare(Op("mulacc", 3, _same("sint uint index float"), ev.mulacc, elementwise=True))  # a * b + c
CAST = _declare(Op("cast", 1, _convert, elementwise=True))  # the node's type is the target
BITCAST = _declare(Op("bitcast", 1, _bitcast, elementwise=True))

ASSUME = _declare(Op("assume", 2, _assume))  # condition, value: the value, used only where the condition holds
UNDER = _declare(Op("under", 2, _assume))  # on the right side of rules only: the value simplified, given the condition

REDUCERS = (ADD, MUL, MAX, MIN)

TEXEL = _declare(Op("texel", 3, _same("sint index"), ev.texel))
"""(column, row, width): the index of the first of the four elements of a texel, as an image's loads take it."""

# --- leaves ----------------------------------------------------------------------------------------------------------

CONST = _declare(Op("const", 0, _asked("bool", "sint", "uint", "float", "index")))
"""arg: the canonical value. With a vector type: the same value in every lane."""
BUFFER = _declare(Op("buffer", 0, _asked("pointer")))  # arg: BufferArg
LOCAL = _declare(Op("local", 0, _asked("pointer")))  # arg: BufferArg; memory of one group, slot unique in a kernel
VAR = _declare(Op("var", 0, _asked("bool", "sint", "uint", "float", "index")))
"""arg: VarArg for an argument of the kernel; a str for a free name in a rule's test; Narrowed while a rule assumes."""
RANGE = _declare(Op("range", 1, _counts))  # src: end (exclusive, counts from 0); arg: RangeArg
SPECIAL = _declare(Op("special", 1, _counts))  # src: size; arg: SpecialArg

# --- vectors ---------------------------------------------------------------------------------------------------------

VECTORIZE = _declare(Op("vectorize", None, _vectorize))  # src: one scalar a lane
GEP = _declare(Op("gep", 1, _gep))  # arg: the lane
WIDEN = _declare(Op("widen", 2, _widen))
"""src: value, range. The value for every step of an upcast or unrolled range: lane s*w + k is lane k of a value w lanes
wide at step s. Of a store: the stores for every step. Exists only until the `expand` stage is done."""
FOLD_LANES = _declare(Op("fold_lanes", 1, _fold_lanes))
"""arg: a reducer. Lane k of the w-lane result combines lanes k, k+w, k+2w, … of the operand."""

# --- memory and order ------------------------------------------------------------------------------------------------

LOAD = _declare(
    Op("load", None, _load)
)  # src: buffer, index[, gate, alternative]; a vector type with a scalar index: consecutive
STORE = _declare(Op("store", None, _store))  # src: buffer, index, value[, gate]
BARRIER = _declare(Op("barrier", None, _nothing))  # src: the stores and values that it waits for
AFTER = _declare(Op("after", None, _after))  # src: a buffer, then barriers: the buffer as it is after them
SINK = _declare(Op("sink", None, _nothing))  # src: the stores of a kernel; its root

# --- reductions ------------------------------------------------------------------------------------------------------

REDUCE = _declare(Op("reduce", None, _reduce))  # src: value, then one or more ranges; arg: a reducer
GROUP_REDUCE = _declare(Op("group_reduce", None, _group_reduce))
"""src: value, local memory, this thread's place there, the place of a share, the range of the shares, then the ranges of
this thread's own share; arg: a reducer. A reduction that threads of a group share out; all get its result. The memory
has a place for each thread and lane. Exists until the stage `share`."""
DEFINE_ACC = _declare(Op("define_acc", None, _after))
"""src: start value, then the ranges that it accumulates over; arg: the REDUCE node that it came from, its identity."""
PHI = _declare(
    Op("phi", 2, _phi)
)  # src: define_acc, new value. Assigned in the innermost loop; outside, the final value

# --- the linear form only --------------------------------------------------------------------------------------------

ENDRANGE = _declare(Op("endrange", 1, _nothing))  # src: the range that closes
IF = _declare(Op("if", 1, _nothing))  # src: the gate; arg: how many ifs before it have the same gate, or None
ENDIF = _declare(Op("endif", 1, _nothing))  # src: the if that closes

ELEMENTWISE: tuple[Op, ...] = tuple(op for op in OPS.values() if op.elementwise)


def identity_of(op: Op, dtype: DType) -> Scalar:
    """The start value of a reduction by `op`; 0.0 rather than -0.0 for a float sum, so that an empty sum is 0."""
    assert op.identity is not None
    return 0.0 if op is ADD and dtype.is_float else op.identity(dtype.scalar)
