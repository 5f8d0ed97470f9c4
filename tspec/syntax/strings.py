"""The quoted form of texts."""

from __future__ import annotations

import re

_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = {meant: f"\\{letter}" for letter, meant in _ESCAPES.items()}
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|(.))")


def unquote(text: str) -> tuple[str, int | None]:
    r"""The text that a quoted text stands for, and the offset of the first escape that does not
    exist.


    The escapes are `\"`, `\\`, `\n`, `\t`, `\r` and `\u{1F600}`; another one stands for itself.
    """
    wrong: list[int] = []

    def meaning(match: re.Match[str]) -> str:
        digits, letter = match.groups()
        if digits is not None and int(digits, 16) <= 0x10FFFF:
            return chr(int(digits, 16))
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        wrong.append(match.start())
        return match.group()

    value = _ESCAPE.sub(meaning, text[1:-1])
    return value, wrong[0] + 1 if wrong else None


def quote(value: str) -> str:
    """A text between quotes. Invisible characters, and those that change the text direction, are
    escaped.
    """
    return f'"{"".join(map(_written, value))}"'


def _written(character: str) -> str:
    if character in _WRITTEN:
        return _WRITTEN[character]
    return character if character.isprintable() else f"\\u{{{ord(character):X}}}"
