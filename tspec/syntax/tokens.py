"""From characters to tokens: what the parser reads, and the comments beside it."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from tspec.source import Source, Span
from tspec.syntax import tables

OPENING = {"{": "}", "[": "]", "(": ")"}
CLOSING = {close: opening for opening, close in OPENING.items()}


@dataclass(frozen=True, slots=True)
class Tokens:
    """A file's tokens without its comments, and the comments, both in order.

    A token of the type `UNKNOWN` is a character that the language does not have, one of
    `OPEN_STRING` a text without its closing quote; the grammar takes neither.
    """

    words: tuple[Token, ...]
    comments: tuple[Token, ...]


def tokenize(source: Source) -> Tokens:
    """All tokens of a file. Never fails: each character that is no blank is in some token."""
    words: list[Token] = []
    comments: list[Token] = []
    for token in tables.load().lex(source.text):
        (comments if token.type == "COMMENT" else words).append(token)
    return Tokens(tuple(words), tuple(comments))


def span_of(token: Token) -> Span:
    """Where a token stands."""
    assert token.start_pos is not None
    return Span(token.start_pos, token.start_pos + len(token))


def is_keyword(token_type: str) -> bool:
    """Whether a terminal of the grammar is one fixed word, such as `WHEN`."""
    return token_type in keywords()


def keywords() -> dict[str, str]:
    """The fixed words of the grammar: terminal to text."""
    return {
        terminal.name: terminal.pattern.value
        for terminal in tables.load().terminals
        if terminal.pattern.type == "str" and terminal.pattern.value.replace("_", "").isalpha()
    }


def signs() -> dict[str, str]:
    """The fixed signs of the grammar, such as `{`: terminal to text."""
    return {
        terminal.name: terminal.pattern.value
        for terminal in tables.load().terminals
        if terminal.pattern.type == "str" and terminal.name not in keywords()
    }
