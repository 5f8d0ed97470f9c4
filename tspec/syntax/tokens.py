"""The lexer: tokens for the parser, and the comments beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

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
    """The span of a token."""
    assert token.start_pos is not None
    return Span(token.start_pos, token.start_pos + len(token))


@cache
def fixed() -> Mapping[str, str]:
    """The words and signs that the grammar fixes, such as `when` and `{`: terminal to text."""
    terminals = tables.load().terminals
    return {each.name: each.pattern.value for each in terminals if each.pattern.type == "str"}


@cache
def keywords() -> Mapping[str, str]:
    """The fixed words of the grammar: terminal to text."""
    return {name: text for name, text in fixed().items() if text.replace("_", "").isalpha()}


def signs() -> Mapping[str, str]:
    """The fixed signs of the grammar, such as `{`: terminal to text."""
    return {name: text for name, text in fixed().items() if name not in keywords()}
