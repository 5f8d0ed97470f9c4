"""Random damage to texts, bytes and JSON values. The same generator gives the same damage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

ODD_TEXTS = (
    "", " ", "\n", "\t", "\x00", "\x1b[31m", "\ufeff", "\u202e", "\ud800", "é", "層", "🙂", "\\", '"', "'",
    "0", "-1", "1e999", "nan", "9" * 400, "[", "]", "{", "}", "=", ".", ",", "#", "../..", "/", "~", "%s", "{0}",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, -(2**200), 0.5, 1e308, [], {}, [[]], [None], {"": {}}, *ODD_TEXTS,
)  # fmt: skip


def damaged_text(text: str, chance: Random, words: Sequence[str] = ()) -> str:
    """A text after one to four edits: cut, doubled, swapped or replaced parts, and odd insertions."""
    for _ in range(chance.randint(1, 4)):
        text = chance.choice(_TEXT_EDITS)(text, chance, words)
    return text


def damaged_bytes(content: bytes, chance: Random) -> bytes:
    """Bytes after one to three edits: flipped bits, cut ends, overwritten, lost, doubled or swapped ranges."""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        content = chance.choice(_BYTE_EDITS)(content, chance)
    return content


def damaged_json(value: Any, chance: Random) -> Any:
    """A value in which one to three nodes are replaced, removed, doubled or renamed."""
    value = json.loads(json.dumps(value))
    for _ in range(chance.randint(1, 3)):
        value = _damaged_node(value, chance)
    return value


# --- texts --------------------------------------------------------------------------------------


def _span(length: int, chance: Random, most: int = 40) -> tuple[int, int]:
    start = chance.randrange(length + 1)
    return start, min(length, start + chance.randint(0, most))


def _without(text: str, chance: Random, _: Sequence[str]) -> str:
    start, end = _span(len(text), chance)
    return text[:start] + text[end:]


def _doubled(text: str, chance: Random, _: Sequence[str]) -> str:
    start, end = _span(len(text), chance, 200)
    return text[:end] + text[start:end] * chance.choice([1, 1, 1, 50]) + text[end:]


def _cut(text: str, chance: Random, _: Sequence[str]) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _inserted(text: str, chance: Random, words: Sequence[str]) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice([*words, *ODD_TEXTS]) + text[at:]


def _replaced(text: str, chance: Random, words: Sequence[str]) -> str:
    start, end = _span(len(text), chance, 12)
    return text[:start] + chance.choice([*words, *ODD_TEXTS]) + text[end:]


def _lines_swapped(text: str, chance: Random, _: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return text
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


_TEXT_EDITS = (_without, _doubled, _cut, _inserted, _inserted, _replaced, _replaced, _lines_swapped)


# --- bytes --------------------------------------------------------------------------------------


def _flipped(content: bytes, chance: Random) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 4, 40])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _range(content: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randrange(len(content) + 1)
    return start, min(len(content), start + chance.choice([1, 4, 8, 64, 512, 4096]))


def _overwritten(content: bytes, chance: Random) -> bytes:
    start, end = _range(content, chance)
    fill = chance.choice([b"\0", b"\xff", None])
    size = end - start
    return (
        content[:start] + (chance.randbytes(size) if fill is None else fill * size) + content[end:]
    )


def _lost(content: bytes, chance: Random) -> bytes:
    start, end = _range(content, chance)
    return content[:start] + content[end:]


def _again(content: bytes, chance: Random) -> bytes:
    start, end = _range(content, chance)
    at = chance.randrange(len(content) + 1)
    return content[:at] + content[start:end] + content[at:]


def _shortened(content: bytes, chance: Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _lengthened(content: bytes, chance: Random) -> bytes:
    return content + chance.choice([content, b"\0" * 64, chance.randbytes(chance.randint(1, 64))])


_BYTE_EDITS = (_flipped, _flipped, _overwritten, _lost, _again, _shortened, _lengthened)


# --- JSON ---------------------------------------------------------------------------------------


def _damaged_node(value: Any, chance: Random) -> Any:
    """One node on a random way down from the root is changed."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        kind = chance.random()
        if kind < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if kind < 0.3:
            return {chance.choice(ODD_TEXTS) if k == key else k: v for k, v in value.items()}
        return {k: _damaged_node(v, chance) if k == key else v for k, v in value.items()}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        kind = chance.random()
        if kind < 0.15:
            return value[:at] + value[at + 1 :]
        if kind < 0.3:
            return [*value, value[at]]
        return [_damaged_node(v, chance) if n == at else v for n, v in enumerate(value)]
    if isinstance(value, str) and chance.random() < 0.5:
        return chance.choice([chance.choice(ODD_TEXTS), damaged_text(value, chance)])
    return chance.choice(ODD_VALUES)
