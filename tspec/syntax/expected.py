"""The terminals that fit at a place, in words that people use."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.syntax.clauses import KEYWORDS
from tspec.syntax.tokens import fixed, keywords

_OPERATORS = frozenset({"+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=", "(", "[", "."})
_WORD_OPERATORS = frozenset({"and", "or", "not", "implies", "in", "is"})
_NAMES = {
    "INT": "a number",
    "QUANTITY": "a number with a unit, such as `10 steps`",
    "STRING": 'a text, such as `"name"`',
    "$END": "the end of the declaration",
}
_CLAUSES = frozenset(word for words in KEYWORDS.values() for word in words)
_MOST = 8


def texts(expected: Iterable[str]) -> list[str]:
    """The fixed words and signs among some terminals, in alphabetical order."""
    return sorted(fixed()[terminal] for terminal in expected if terminal in fixed())


def describe(expected: frozenset[str]) -> str:
    """`` a name, `,` or `}` ``: the tokens that would fit, kinds before single words."""
    kinds: list[str] = []
    words = set(texts(expected))
    if {"NAME", "FLOAT"} <= expected:
        kinds.append("an expression")
        words -= _OPERATORS | _WORD_OPERATORS | {"{", "true", "false"} | set(keywords().values())
        expected -= {"INT", "QUANTITY", "STRING"}
    elif "NAME" in expected:
        kinds.append("a name")
        words -= set(keywords().values())
    elif {"+", "and"} <= words:
        kinds.append("an operator")
        words -= _OPERATORS | _WORD_OPERATORS
    elif len(words) > 1 or "$END" in expected:
        words -= {".", "(", "["}
    if len(words & _CLAUSES) > 3:
        kinds.append("another clause")
        words -= _CLAUSES
    kinds += [name for terminal, name in _NAMES.items() if terminal in expected]
    shown = kinds + [f"`{word}`" for word in sorted(words, key=_order)]
    if len(shown) > _MOST:
        shown = [*shown[: _MOST - 1], "something else"]
    if not shown:
        return "the end of the file"
    return f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else shown[0]


def _order(word: str) -> tuple[bool, str]:
    """Words before signs."""
    return not word[0].isalpha(), word
