"""From a file's text to its tree, with all errors of the file in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lark import Token, Tree
from lark.exceptions import UnexpectedToken

from tspec.diagnostics import Diagnostic, in_order, no_text
from tspec.source import Source, Span
from tspec.syntax import nodes, order, tables
from tspec.syntax.build import DEEPEST, Builder, TooDeep
from tspec.syntax.comments import attach
from tspec.syntax.tokens import CLOSING, OPENING, Tokens, tokenize
from tspec.syntax.unexpected import ITEM_WORDS, Misfit, explain


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of parsing a file.

    `file` holds all items without syntax errors. `broken` are the names of declarations that are
    missing from it; nothing reports them as unknown.
    """

    file: nodes.File
    diagnostics: tuple[Diagnostic, ...]
    broken: frozenset[str] = frozenset()


@lru_cache(maxsize=256)
def parse(source: Source) -> Parsed:
    """Read a file. Never raises: all faults are among the diagnostics, each with its place.

    After an error, reading goes on at the next item. If nothing in a file can be read, from its
    first word on, only the first error is reported. A text that was read lately is not read anew:
    most of the time that loading takes goes into the modules that specs use.
    """
    if source.no_text_at is not None:
        return Parsed(order.arrange([]), (no_text(source, source.no_text_at),))
    tokens = tokenize(source)
    builder = Builder(source)
    items: list[nodes.Node] = []
    misfits: list[Diagnostic] = []
    broken: list[str] = []
    nothing_fits = False
    start = 0
    while start < len(tokens.words):
        read = _read(tokens.words, start)
        if read.tree is not None:
            try:
                items.append(builder.item(read.tree))
            except TooDeep as problem:
                misfits.append(_too_deep(source, problem.span))
            start = read.end
            continue
        read = _closed_before(tokens.words, start, read, source)
        misfits.append(explain(_misfit(source, tokens.words, start, read)))
        broken += _name(tokens.words[start : read.end])
        nothing_fits = nothing_fits or read.end == 0
        start = _next_item(tokens.words, start, read.end, source)
    if nothing_fits and not items:
        return Parsed(order.arrange([]), tuple(misfits[:1]))
    file = replace(order.arrange(items), span=Span(0, len(source.text)))
    misfits += builder.found
    misfits += order.check(items, source, whole=not misfits)
    return _with_comments(file, source, tokens, misfits, frozenset(broken))


def _with_comments(
    file: nodes.File,
    source: Source,
    tokens: Tokens,
    found: list[Diagnostic],
    broken: frozenset[str],
) -> Parsed:
    skipped = bool(found)
    file, lost = attach(file, tokens.comments, source)
    if not skipped:
        found = [*found, *lost]
    return Parsed(file, in_order(found), broken)


@dataclass(frozen=True, slots=True)
class _Read:
    """One item: its tree, or None and the terminals that would have fitted at token `end`.

    `ended`: the item was cut off there, because another one begins.
    """

    tree: Tree[Token] | None
    end: int
    expected: frozenset[str] = frozenset()
    ended: bool = False


def _read(words: Sequence[Token], start: int, stop: int | None = None) -> _Read:
    """Read the item that begins at a token, up to where it is complete and cannot go on."""
    stop = len(words) if stop is None else stop
    reader = tables.load().parse_interactive()
    feed = reader.parser_state.feed_token
    index = start
    try:
        for index in range(start, stop):
            feed(words[index])
        index = stop
    except UnexpectedToken:
        if index == start or not _apart(words, index):
            return _Read(None, index, _fitting(words[start:index]))
    try:
        return _Read(feed(Token("$END", ""), is_end=True), index)
    except UnexpectedToken:
        return _Read(None, index, _fitting(words[start:index]), ended=index == stop)


def _fitting(words: Sequence[Token]) -> frozenset[str]:
    """The terminals that fit after some words.

    The words are read anew, because a token that does not fit may have ended a state in which
    others would fit.
    """
    reader = tables.load().parse_interactive()
    for word in words:
        reader.feed_token(word)
    return frozenset(reader.accepts())  # type: ignore[no-untyped-call]


def _apart(words: Sequence[Token], index: int) -> bool:
    """True if a token may begin an item after a complete one: it stands on a line of its own."""
    own_line: bool = words[index].line != words[index - 1].line
    return own_line or words[index] in ITEM_WORDS


def _closed_before(words: Sequence[Token], start: int, read: _Read, source: Source) -> _Read:
    """The same failure, found earlier where a brace is missing and another item begins."""
    for index in range(start + 1, min(read.end + 1, len(words))):
        if words[index].column == 1 and _begins_item(words, index):
            cut = _read(words, start, index)
            return cut if cut.tree is None else read
    return read


def _misfit(source: Source, words: Sequence[Token], start: int, read: _Read) -> Misfit:
    token = words[read.end] if read.end < len(words) else None
    before = tuple(words[start : read.end])
    following = words[read.end + 1] if read.end + 1 < len(words) else None
    ended = read.ended or token is None
    return Misfit(source, before, token, read.expected, ended, following)


def _begins_item(words: Sequence[Token], index: int) -> bool:
    """True if a keyword and its next words look like the beginning of an item."""
    if words[index] not in ITEM_WORDS or index + 1 == len(words):
        return False
    following = words[index + 1]
    text = str(following)
    match str(words[index]):
        case "edition":
            return following.type == "INT"
        case "context":
            return text == "{"
        case "test":
            return following.type == "STRING"
        case _:
            return text[0].isalpha() or text[0] == "_"


def _next_item(words: Sequence[Token], start: int, index: int, source: Source) -> int:
    """The token at which reading goes on after an error at token `index`."""
    depth = sum((t in OPENING) - (t in CLOSING) for t in words[start:index])
    for goal in range(index, len(words)):
        token = words[goal]
        first = goal > start and token.line != words[goal - 1].line
        margin = first and token.column == 1
        if margin and (token in ITEM_WORDS or _looks_like_item(words, goal)):
            return goal
        if margin and depth <= 0 and token not in CLOSING:
            return goal
        if first and depth <= 0 and _begins_item(words, goal):
            return goal
        depth += (token in OPENING) - (token in CLOSING)
    return len(words)


def _looks_like_item(words: Sequence[Token], index: int) -> bool:
    """A misspelt keyword at the margin: two words and a brace or an equals sign."""
    three = words[index : index + 3]
    return (
        len(three) == 3 and three[0].type == "NAME" and three[1].type == "NAME" and three[2] in "{="
    )


def _name(words: Sequence[Token]) -> list[str]:
    """The name of the declaration that begins with some words, if they include it."""
    texts = [str(word) for word in words[:3] if word not in ("extend", "draft")]
    return texts[1:2] if texts and texts[0] in ITEM_WORDS else []


def _too_deep(source: Source, span: Span) -> Diagnostic:
    first = Span(span.start, min(span.end, span.start + 1))
    message = f"this is nested in more than {DEEPEST} levels"
    return Diagnostic("TS0024", message, first, source, hint="name a part of it with `let`")
