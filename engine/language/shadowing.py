"""Finds rules that can never fire, since an earlier rule of their group takes all that they match.

Only what is certain is reported: the earlier rule has no guard, always has a value, works in every type in which the
later one does, and its left side is at least as general.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..dtypes import by_name
from ..ops import UNDER, Op
from .diagnostics import Report
from .syntax import (
    Apply,
    Attr,
    Bind,
    Compute,
    Group,
    Instance,
    Literal,
    Name,
    Number,
    OnType,
    Pack,
    Rule,
    Term,
    TypeName,
    Var,
    VarKind,
    Wildcard,
)
from .terms import walk

Bound = Mapping[str, object]
"""What the names of the general pattern stand for, as keys of terms."""


def report_shadowed(group: Group, report: Report) -> None:
    """An error for each rule of the group that never fires, with the rule that takes its place."""
    for position, rule in enumerate(group.rules):
        earlier = next((other for other in group.rules[:position] if _takes_all(other, rule)), None)
        if earlier is not None:
            report.error(
                "E064",
                f"`{rule.id}` can never fire: `{earlier.id}`, which stands before it, takes all that it matches",
                rule.span,
                "put the special rule first, or take it out",
                related=("the earlier rule", earlier.span),
            )


def _takes_all(earlier: Rule, later: Rule) -> bool:
    if not _works_wherever(earlier.on, later.on):
        return False
    certain = [one for one in earlier.instances if one.when is None and not _may_lack_value(one)]
    return bool(certain) and all(
        any(_covers(one.left, instance.left, earlier.ordered) for one in certain) for instance in later.instances
    )


def _may_lack_value(instance: Instance) -> bool:
    terms = [instance.right, *(term for _, term in instance.lets)]
    return any(
        isinstance(part, Compute) or isinstance(part, Apply) and part.op is UNDER
        for term in terms
        for part in walk(term)
    )


def _works_wherever(earlier: Sequence[OnType], later: Sequence[OnType]) -> bool:
    """Whether the types of the earlier rule include those of the later one, under no more flags."""
    return not earlier or bool(later) and all(any(_includes(wide, one) for wide in earlier) for one in later)


def _includes(wide: OnType, narrow: OnType) -> bool:
    if not set(wide.flags) <= set(narrow.flags):
        return False
    if wide.name == narrow.name:
        return True
    kind = (
        narrow.name if narrow.name in ("sint", "uint", "float", "bool", "index", "int") else by_name(narrow.name).kind
    )
    return wide.name == kind or wide.name == "int" and kind in ("sint", "uint")


# --- patterns --------------------------------------------------------------------------------------------------------


def _covers(general: Term, special: Term, ordered: bool) -> bool:
    return next(_match(general, special, {}, ordered), None) is not None


def _match(general: Term, special: Term, bound: Bound, ordered: bool) -> Iterator[Bound]:
    """The ways in which the general pattern matches all that the special one does. As deep as the text of a rule."""
    while isinstance(special, Bind):
        special = special.term
    match general:
        case Wildcard():
            yield bound
        case Bind():
            for found in _match(general.term, special, bound, ordered):
                yield from _named(general.name, _key(special), found)
        case Var() if general.kind is VarKind.ANY or _is_constant(special):
            yield from _named(general.name, _key(special), bound)
        case Literal():
            if _key(general) == _key(special):
                yield bound
        case Apply() if isinstance(special, Apply) and general.op is special.op:
            yield from _applications(general, special, bound, ordered)
        case _:
            return


def _applications(general: Apply, special: Apply, bound: Bound, ordered: bool) -> Iterator[Bound]:
    if len(special.attrs) < len(general.attrs):
        return
    for attr, other in zip(general.attrs, special.attrs, strict=False):
        if isinstance(attr, Var):
            named = next(_named(attr.name, _attr_key(other), bound), None)
            if named is None:
                return
            bound = named
        elif _attr_key(attr) != _attr_key(other):
            return
    args = list(general.args)
    others = list(special.args)
    if args and isinstance(args[-1], Pack):
        pack = args.pop()
        if not (isinstance(pack, Pack) and isinstance(pack.term, Wildcard | Var)) or any(
            isinstance(other, Pack) for other in others[: len(args)]
        ):
            return
        if isinstance(pack.term, Var):
            named = next(_named(pack.term.name, tuple(map(_key, others[len(args) :])), bound), None)
            if named is None:
                return
            bound = named
        others = others[: len(args)]
    if len(args) != len(others) or any(isinstance(other, Pack) for other in others):
        return
    yield from _all(args, others, bound, ordered)
    if general.op.commutative and not ordered:
        yield from _all(args, others[::-1], bound, ordered)


def _all(args: Sequence[Term], others: Sequence[Term], bound: Bound, ordered: bool) -> Iterator[Bound]:
    if not args:
        yield bound
        return
    for found in _match(args[0], others[0], bound, ordered):
        yield from _all(args[1:], others[1:], found, ordered)


def _named(name: str, key: object, bound: Bound) -> Iterator[Bound]:
    """The same name is the same node."""
    if bound.get(name, key) == key:
        yield {**bound, name: key}


def _is_constant(term: Term) -> bool:
    return isinstance(term, Literal | Compute) or isinstance(term, Var) and term.kind is VarKind.CONST


def _key(term: Term) -> object:
    """Equal for equal terms, wherever they stand; of forms that are not looked into, only for the same one."""
    match term:
        case Var():
            return ("var", term.name)
        case Literal():
            return ("literal", repr(term.value))
        case Bind():
            return _key(term.term)
        case Pack():
            return ("...", _key(term.term))
        case Apply():
            return (term.op.name, tuple(map(_attr_key, term.attrs)), tuple(map(_key, term.args)))
        case _:
            return id(term)


def _attr_key(attr: Attr) -> object:
    match attr:
        case Op():
            return attr.name
        case TypeName():
            return attr.dtype.name
        case Var() | Name():
            return ("var", attr.name)
        case Number():
            return attr.value
        case _:
            return id(attr)
