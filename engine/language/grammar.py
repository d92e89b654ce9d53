"""The parser made from `grammar.lark`, and its errors in the language's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import resources

from lark import Lark, Token, Tree, UnexpectedInput, UnexpectedToken
from lark.lexer import PatternStr

from .diagnostics import Report
from .syntax import Span

Node = Tree[Token]

STARTS = (
    "module_statement", "use_statement", "names_statement", "family_statement", "extern_statement", "group_statement",
    "rule_statement", "pipeline_statement", "view_statement",
    "extend_statement", "replace_statement", "disable_statement", "insert_statement", "expression_statement", "given_statement",
)  # fmt: skip


@lru_cache(maxsize=1)
def lark() -> Lark:
    """The parser, made once."""
    return build()


def build(debug: bool = False, strict: bool = False) -> Lark:
    """A new parser. With `debug` lark logs every conflict that it resolves, with `strict` it refuses them."""
    text = resources.files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        text, parser="lalr", start=list(STARTS), propagate_positions=True, maybe_placeholders=True,
        debug=debug, strict=strict,
    )  # fmt: skip


def nodes(tree: Node) -> list[Node]:
    """The parts of a tree that are trees themselves."""
    return [child for child in tree.children if child is not None and not isinstance(child, Token)]


def first_token(tree: Node) -> Token:
    """The word that a tree begins with."""
    token = tree.children[0]
    assert isinstance(token, Token)
    return token


Place = Callable[[int, int], Span]
"""From two positions in the parsed text to a place in a file."""


def parse(
    text: str,
    start: str,
    place: Place,
    report: Report,
    after: str = "the end of the text",
) -> Node | None:
    """The tree of `text`, or None with a finding in `report`. `after` says what follows the text."""
    try:
        tree = lark().parse(text, start=start)
    except UnexpectedInput as problem:
        _report(problem, text, start, place, report, after)
        return None
    deep = _too_deep(tree, lists_lean=start == "expression_statement")
    if deep is not None:
        report.error("E001", f"this is nested more than {DEPTH} deep", place(deep.meta.start_pos, deep.meta.end_pos))
        return None
    return tree


DEPTH = 120
"""How deep the text may nest; what reads the trees recurses."""


def _too_deep(tree: Node, lists_lean: bool) -> Node | None:
    """A part nested deeper than DEPTH. With `lists_lean` a long sum `a + b + c + …` is one level."""
    stack = [(tree, 0)]
    while stack:
        here, depth = stack.pop()
        if depth > DEPTH:
            return here
        for position, part in enumerate(nodes(here)):
            leans = lists_lean and here.data == part.data == "infix" and position == 0
            stack.append((part, depth + (not leans)))
    return None


def _report(problem: UnexpectedInput, text: str, start: str, place: Place, report: Report, after: str) -> None:
    token = getattr(problem, "token", None)
    at = problem.pos_in_stream if token is None or token.type != "$END" else len(text)
    assert at is not None
    found = _word_at(text, at)
    span = place(at, at + max(len(found), 1))
    if found.startswith('"') and not (len(found) > 1 and found.endswith('"')):
        report.error(
            "E001",
            "this string does not end on its line",
            span,
            'write the closing `"`',
        )
        return
    expected = _expected(text, start)
    if found == "}" and expected == {"$END"}:
        report.error("E003", "this `}` closes nothing", span)
        return
    shown = f"`{found}`" if found else after
    hint = _hint(found, expected) or _HINTS.get(text[max(at - 1, 0) : at] + found)
    report.error("E001", f"expected {_in_words(expected)}, found {shown}", span, hint)


def _expected(text: str, start: str) -> frozenset[str]:
    """The tokens that could have stood where the error is.

    When the error is raised, the parser has already reduced what stands before, in the hope that the token fits; so the
    text is read again up to the token before it.
    """
    tokens: list[Token] = []
    try:
        tokens.extend(lark().parse_interactive(text, start).iter_parse())
    except UnexpectedToken as problem:
        if tokens and problem.token is tokens[-1]:
            tokens.pop()
    except UnexpectedInput:
        pass  # what stands there is no token
    parser = lark().parse_interactive(text, start)
    for token in tokens:
        parser.feed_token(token)
    accepts: Callable[[], set[str]] = parser.accepts
    return frozenset(accepts())


def _word_at(text: str, at: int) -> str:
    """What stands at a position: a word, a string, a sign."""
    match = re.compile(r'"[^"\n]*"?|\w+(?:\.\d+)?|=>|==|[<>]=|\.\.+|&&|\|\||->|\S|$').match(text, at)
    return match.group() if match else ""


def _hint(found: str, expected: frozenset[str]) -> str | None:
    if expected & {"NAME", "KEBAB"} and "LPAR" not in expected and _is_reserved(found):
        return f"`{found}` is a word of the language and cannot be a name"
    if found == "=" and "COMPARE" in expected:
        return "`==` compares"
    if found in ("<", ">", "<=", ">=", "==", "!=") and "STAR" in expected:
        return "comparisons do not chain: write `a < b and b < c`, or `b in a..c`"
    return _HINTS.get(found)


def _is_reserved(word: str) -> bool:
    return word.isidentifier() and re.fullmatch(lark().get_terminal("NAME").pattern.value, word) is None


_HINTS = {
    "&&": "write `and`",
    "||": "write `or`",
    "!": "write `not`, or `!=`",
    "->": "a rule is written `left => right`",
    "=": "a rule is written `left => right`",
    "**": "multiply, or name an operator",
    ";": "statements and clauses need no `;`; it only separates the stages of a pipeline",
    "'": 'strings stand in double quotes: `"…"`',
}

# --- what is expected, in words --------------------------------------------------------------------------------------

_GROUPS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    ("a term", frozenset({"NAME", "LPAR", "VEC", "LBRACE"}), frozenset({
        "NAME", "INT", "FLOAT", "WORD_VALUE", "LPAR", "VEC", "LBRACE", "MINUS", "TILDE", "UNDERSCORE", "AND", "OR",
        "NOT", "ELLIPSIS"})),
    ("a formula", frozenset({"NAME", "LPAR", "STRING", "NOT"}), frozenset({
        "NAME", "INT", "FLOAT", "WORD_VALUE", "LPAR", "MINUS", "TILDE", "STRING", "NOT"})),
    ("a value", frozenset({"NAME", "LPAR", "STRING"}), frozenset({
        "NAME", "INT", "FLOAT", "WORD_VALUE", "LPAR", "MINUS", "TILDE", "STRING", "LBRACE"})),
    ("an operator's name", frozenset({"NAME", "AND", "OR", "NOT"}), frozenset({"NAME", "AND", "OR", "NOT"})),
    ("a number", frozenset({"INT", "MINUS"}), frozenset({"INT", "MINUS"})),
    ("a clause", frozenset({"WHEN", "ON", "TEST"}), frozenset({
        "LET", "WHEN", "ON", "ORDERED", "DECREASES", "BECAUSE", "TEST", "KEEP"})),
    ("an operator", frozenset({"STAR", "PLUS"}), frozenset({
        "STAR", "PLUS", "MINUS", "SLASHES", "SHIFT", "AMPERSAND", "CARET", "BAR", "COMPARE", "AND", "OR", "IN", "AT",
        "LPAR", "LBRACE", "LSQB", "DOT"})),
)  # fmt: skip
"""A phrase, the tokens that must all be expected for it, and the tokens that it then stands for."""

_PHRASES = {
    "NAME": "a name", "KEBAB": "a name", "INT": "a number", "FLOAT": "a number", "STRING": "a string",
    "WORD_VALUE": "a value", "COMPARE": "a comparison", "SLASHES": "an operator", "SHIFT": "an operator",
    "$END": "the end of the statement", "LBRACE": "`{`", "RBRACE": "`}`", "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`",
}  # fmt: skip


def _in_words(expected: Iterable[str]) -> str:
    """The expected tokens as the language calls them, signs first: "`=>` or a clause"."""
    left = set(expected)
    phrases = []
    for phrase, needed, covered in _GROUPS:
        if needed <= left:
            phrases.append(phrase)
            left -= covered
    signs = sorted({_phrase(token) for token in left})
    if len(signs) + len(phrases) > 1 and "the end of the statement" in signs:
        signs.remove("the end of the statement")
    words = signs + phrases
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _phrase(token: str) -> str:
    if token in _PHRASES:
        return _PHRASES[token]
    pattern = lark().get_terminal(token).pattern
    return f"`{pattern.value}`" if isinstance(pattern, PatternStr) else token.lower()
