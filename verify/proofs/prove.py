"""Proves one rule, or finds where it is wrong: every instance in every shape, in one encoding after another."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

import z3  # type: ignore[import-untyped] # has no types

from ...engine import ops
from ...engine.language.syntax import Apply, Chain, Instance, Rule, Var, VarKind
from ...engine.language.terms import walk
from ...engine.language.types import TypeConflict
from .counterexample import confirmed
from .exact import Unsupported
from .formula_parts import functions
from .goals import REAL_FLAGS, Encoding, Goal, goal
from .shapes import Shape, parts_of, shapes
from .sides import Impossible
from .solver import LIMIT, Case, Outcome, all_values, ask
from .verdicts import RuleVerdict, Verdict

SAMPLES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 64, 100, -1, -2, -3, -4, -7, -12, 0)
MOST_SAMPLED = 60


class Answer(Enum):
    """What is known of one instance in one shape."""

    PROVED = "proved"
    SAMPLED = "proved for sampled constants"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    UNSUPPORTED = "has no meaning for the solver"


@dataclass(slots=True)
class Findings:
    """The answers for all instances and shapes of a rule."""

    answers: list[tuple[Answer, Shape, str, int]] = field(default_factory=list)  # int: which instance
    open_functions: set[str] = field(default_factory=set)

    def having(self, *answers: Answer) -> list[tuple[Answer, Shape, str, int]]:
        return [one for one in self.answers if one[0] in answers]


def prove(rule: Rule) -> RuleVerdict:
    """The verdict on a rule."""
    start = time.process_time()
    found = Findings()
    for number, instance in enumerate(rule.instances):
        for answer, shape, detail in _answers(rule, instance, found):
            found.answers.append((answer, shape, detail, number))
            if answer is Answer.REFUTED:
                break
        if found.having(Answer.REFUTED):
            break
    scalar = all(parts_of(instance).is_scalar for instance in rule.instances)
    verdict, detail = _verdict(rule, found, scalar)
    return RuleVerdict(rule.id, verdict, detail, len(found.answers), round(time.process_time() - start, 2), scalar)


def _answers(rule: Rule, instance: Instance, found: Findings) -> Iterator[tuple[Answer, Shape, str]]:
    try:
        every = list(shapes(rule, instance))
    except TypeConflict as conflict:
        yield Answer.UNSUPPORTED, Shape(), str(conflict)
        return
    if _takes_extremum(instance):  # of the zeros in a row, any may be the result
        every = [replace(shape, flags=shape.flags | {"nsz"}) for shape in every]
    hopeless: set[str] = set()  # kinds of types of which a smaller one was already undecided
    for shape in every:
        if shape.root.scalar.kind in hopeless and len(shape.types) == 0:
            yield Answer.UNDECIDED, shape, "like a smaller type"
            continue
        try:
            answer = _decide(instance, shape, found)
        except Unsupported as problem:
            yield Answer.UNSUPPORTED, shape, str(problem)
            continue
        except Impossible:
            continue
        except (ArithmeticError, ValueError, TypeError, AssertionError, z3.Z3Exception) as problem:
            yield Answer.UNSUPPORTED, shape, f"a form without a meaning for the solver ({problem})"
            continue
        if answer is not None:
            if answer[0] is Answer.UNDECIDED:
                hopeless.add(shape.root.scalar.kind)
            yield answer[0], shape, answer[1]


def _takes_extremum(instance: Instance) -> bool:
    """Whether the rule is about the maximum or minimum of many terms."""
    reducers = {value for _, value in instance.bindings}
    many = any(isinstance(part, Apply) and part.op in (ops.REDUCE, ops.FOLD_LANES) for part in walk(instance.left))
    return many and (not reducers or bool(reducers & {ops.MAX, ops.MIN}))


def _decide(instance: Instance, shape: Shape, found: Findings) -> tuple[Answer, str] | None:
    """The answer for one shape; None where the rule does not fire in it."""
    last = _special_case(instance, shape)
    if last is not None:
        return Answer.REFUTED, last
    for encoding, as_integers, limit in _encodings():
        if as_integers and (answer := _for_every_constant(instance, shape)) is not None:
            return answer
        question = goal(instance, shape, encoding)
        if question is None:
            return None
        found.open_functions |= question.untold
        if question.trivial:
            return Answer.PROVED, ""
        if len(_FLOAT_ARITHMETIC.findall(question.text)) > MOST_FLOAT_ARITHMETIC:
            raise Unsupported("more float arithmetic than the solver can take")
        if not _worth_trying(question, encoding, as_integers, limit):
            continue
        free = question.has_choices and encoding.shared
        outcome, case = ask(question.text, question.leaves, as_integers=as_integers, limit=limit)
        if outcome is Outcome.NONE:
            return Answer.PROVED, ""
        if outcome is Outcome.FOUND:
            shown = None if free else confirmed(instance, shape, case)
            if shown is not None:
                return Answer.REFUTED, shown
            last = "a case that the solver found is none in the reference semantics"
    return _sampled(instance, shape) or (Answer.UNDECIDED, last or "the limit of resources was reached")


def _special_case(instance: Instance, shape: Shape) -> str | None:
    """Of a rule that may round differently: a NaN or the sign of a zero that it changes all the same."""
    if not shape.flags & REAL_FLAGS:
        return None
    question = goal(instance, shape, Encoding(special=True))
    if question is None or question.trivial:
        return None
    outcome, case = ask(question.text, question.leaves)
    return confirmed(instance, shape, case) if outcome is Outcome.FOUND else None


def _encodings() -> Iterable[tuple[Encoding, bool, int]]:
    """The encodings in the order in which they are tried; bit-vectors as integers; the limit."""
    return (
        (Encoding(), False, LIMIT // 2),
        (Encoding(), True, LIMIT),
        (Encoding(shared=False), False, LIMIT),
        (Encoding(wide=True), False, LIMIT),
        (Encoding(native=True), False, LIMIT),
        (Encoding(), False, 8 * LIMIT),
    )


MOST_FLOAT_ARITHMETIC = 8
_FLOAT_ARITHMETIC = re.compile(r"fp\.(add|sub|mul|div|fma|sqrt|rem)\b")
"""As bits these are so large that no limit of the solver's is reached while it makes them."""

_MIXED = re.compile("bv2int|bv_to_int|int2bv|int_to_bv")
"""Integers beside bit-vectors: these are hard unless the bit-vectors become integers too."""


def _worth_trying(question: Goal, encoding: Encoding, as_integers: bool, limit: int = LIMIT) -> bool:
    kinds = {dtype.kind for dtype in question.leaves.values()}
    if encoding == Encoding() and not as_integers and limit <= LIMIT and _MIXED.search(question.text):
        return False
    if as_integers:
        return bool(kinds & {"sint", "uint"}) and "float" not in kinds
    if not encoding.shared:
        return question.has_choices
    if encoding.wide:
        return "index" not in kinds and bool(kinds & {"sint", "uint"})
    return not encoding.native or "index" in kinds


# --- sampled constants -----------------------------------------------------------------------------------------------


def _constants(instance: Instance, shape: Shape) -> list[str]:
    """The names of whole constants."""
    consts = [part for part in walk(instance.left) if isinstance(part, Var) and part.kind is VarKind.CONST]
    kinds = ("index", "sint", "uint")
    return sorted({one.name for one in consts if shape.names[one.name].scalar.kind in kinds})


def _for_every_constant(instance: Instance, shape: Shape) -> tuple[Answer, str] | None:
    """Where the guard leaves a single constant few values, such as powers of two: with each of them."""
    names = _constants(instance, shape)
    wraps = len(names) == 1 and shape.names[names[0]].is_int
    question = goal(instance, shape, Encoding()) if wraps else None
    if question is None or names[0] not in question.leaves:
        return None
    every = all_values(question.premise, names[0], question.leaves[names[0]])
    found = _with_constants(instance, shape, names, [(value,) for value in every]) if every else None
    return (Answer.PROVED, "") if found is not None and found[0] is Answer.SAMPLED else found


def _sampled(instance: Instance, shape: Shape) -> tuple[Answer, str] | None:
    """With numbers for the constants: what is then linear can be decided."""
    names = _constants(instance, shape)
    return _with_constants(instance, shape, names, _sample_values(len(names))) if names else None


def _with_constants(
    instance: Instance, shape: Shape, names: list[str], samples: Iterable[tuple[int, ...]]
) -> tuple[Answer, str] | None:
    tried = 0
    for values in samples:
        fixed = tuple(zip(names, values, strict=True))
        question = goal(instance, shape, Encoding(fixed=fixed))
        if question is None or question.trivial:
            tried += question is not None
            continue
        outcome, case = ask(question.text, question.leaves)
        tried += outcome is Outcome.NONE
        if outcome is Outcome.FOUND:
            shown = confirmed(instance, shape, Case({**case.values, **dict(fixed)}, case.memory, case.sizes))
            if shown is not None:
                return Answer.REFUTED, shown
        if outcome is not Outcome.NONE:
            return None
    return (Answer.SAMPLED, f"{tried} values of {', '.join(names)}") if tried else None


def _sample_values(count: int) -> Iterator[tuple[int, ...]]:
    """Tuples of sample values, evenly taken: each value occurs beside others."""
    size = len(SAMPLES)
    for number in range(MOST_SAMPLED):
        yield tuple(SAMPLES[(number * (position + 1) + number // size * position) % size] for position in range(count))


# --- the verdict -----------------------------------------------------------------------------------------------------


def _verdict(rule: Rule, found: Findings, scalar: bool) -> tuple[Verdict, str]:
    refuted = found.having(Answer.REFUTED)
    if refuted and not found.open_functions:
        return Verdict.REFUTED, refuted[0][2]
    good = found.having(Answer.PROVED, Answer.SAMPLED)
    bad = found.having(Answer.UNDECIDED, Answer.UNSUPPORTED, Answer.REFUTED)
    if bad and rule.because is not None:
        return Verdict.TRUSTED, rule.because
    if refuted:
        return Verdict.UNDECIDED, f"`{min(found.open_functions)}` has no meaning for the solver; say it with `means`"
    if not good:
        if not bad:
            return Verdict.UNDECIDED, "in no shape that was tried does the rule fire"
        return Verdict.UNDECIDED, bad[0][2]
    proven = {(number, shape.root.scalar.kind) for _, shape, _, number in good}
    unproved = {(number, shape.root.scalar.kind) for _, shape, _, number in bad} - proven
    if unproved or found.having(Answer.UNSUPPORTED):
        return Verdict.UNDECIDED, f"{bad[0][2]} ({bad[0][1]})"
    if found.having(Answer.SAMPLED):
        return Verdict.SAMPLED, found.having(Answer.SAMPLED)[0][2]
    open_types = sorted({shape.root.scalar.name for _, shape, _, _ in bad})
    if not scalar:
        return Verdict.BOUNDED, _bounds(rule) + (f"; undecided for {', '.join(open_types)}" if open_types else "")
    whole = {name for name in open_types if not name.startswith("float")}
    if whole:
        return Verdict.BOUNDED, f"undecided for {', '.join(sorted(whole))}"
    if _has_open_shares(rule):
        return Verdict.BOUNDED, "two terms in each share of a chain"
    return Verdict.PROVED, f"undecided for {', '.join(open_types)}" if open_types else ""


def _bounds(rule: Rule) -> str:
    parts = [parts_of(instance) for instance in rule.instances]
    said = []
    if any(one.has_lanes for one in parts):
        said.append("up to 4 lanes")
    if any(one.ranges or one.range_packs for one in parts):
        said.append("up to 3 steps of a loop")
    if any(one.packs or one.range_packs for one in parts):
        said.append("up to 3 further operands")
    return ", ".join(said) or "loads and stores of any number of elements"


_CLOSED = frozenset({"divides", "aligned", "constant", "varies", "uses"})
"""What holds of a sum if it holds of its terms: a proof for two terms of a share is one for any number of them."""


def _has_open_shares(rule: Rule) -> bool:
    shares = [
        share
        for instance in rule.instances
        for part in walk(instance.left)
        if isinstance(part, Chain)
        for share in part.shares
    ]
    return any(function.name not in _CLOSED for share in shares for function in functions(share.guard))
