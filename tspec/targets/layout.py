"""Breaks lines of generated Python within their brackets, so that they fit on a screen."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

WIDTH = 100
INDENT = "    "
_MARK = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?P<mark>[()\[\]{},]| for )""")
"""A string, or a mark that divides an expression outside of strings: a bracket, a comma, the word
of a comprehension.
"""
_OPENS = frozenset("([{")
_CLOSES = frozenset(")]}")


def laid_out(lines: Iterable[str], width: int = WIDTH) -> Iterator[str]:
    """The lines of a module, broken to the width. Only long literals, names and comments exceed it."""
    within = False
    for line in lines:
        quotes = line.count('"""')
        if within or quotes == 1:
            yield line
        elif line.lstrip().startswith("#"):
            yield from _comment(line, width)
        elif quotes == 2 and line.lstrip().startswith('"""') and len(line) > width:
            yield from _docstring(line, width)
        else:
            yield from _broken(line, width)
        within ^= quotes == 1


def _docstring(line: str, width: int) -> Iterator[str]:
    margin = line[: len(line) - len(line.lstrip())]
    text = line.strip().strip('"')
    yield from textwrap.wrap(
        text, width, initial_indent=f'{margin}"""', subsequent_indent=margin, break_long_words=False
    )
    yield f'{margin}"""'


def _comment(line: str, width: int) -> Iterator[str]:
    margin = line[: len(line) - len(line.lstrip())] + "# "
    yield from textwrap.wrap(
        line.lstrip().removeprefix("# "),
        width,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _broken(line: str, width: int) -> Iterator[str]:
    """A line of Python, or several that mean the same, each within the width but for long literals.

    The last bracket that holds something is opened, with one item on each line, as formatters do it.
    """
    if len(line) <= width:
        yield line
        return
    place = _last_bracket(line)
    if place is None:
        yield line
        return
    begin, end = place
    margin = line[: len(line) - len(line.lstrip())] + INDENT
    yield line[: begin + 1]
    inside = line[begin + 1 : end].strip()
    items = [inside] if _is_comprehension(inside) else _items(inside)
    # A comma after one item would make a tuple of brackets that only group.
    comma = "," if len(items) > 1 or inside.endswith(",") else ""
    for number, item in enumerate(items):
        last = number == len(items) - 1
        yield from _broken(f"{margin}{item}{comma if last else ','}", width)
    yield line[: len(line) - len(line.lstrip())] + line[end:]


def _last_bracket(line: str) -> tuple[int, int] | None:
    """The positions at which the last outermost bracket that is not empty opens and closes."""
    found, opened, depth = None, 0, 0
    for place, mark in _marks(line):
        if mark in _OPENS:
            if depth == 0:
                opened = place
            depth += 1
        elif mark in _CLOSES:
            depth -= 1
            if depth == 0 and line[opened + 1 : place].strip():
                found = (opened, place)
    return found


def _items(text: str) -> list[str]:
    """The parts of a text between commas outside of brackets and strings."""
    items, begin, depth = [], 0, 0
    for place, mark in _marks(text):
        depth += (mark in _OPENS) - (mark in _CLOSES)
        if mark == "," and depth == 0:
            items.append(text[begin:place].strip())
            begin = place + 1
    return [*items, *([text[begin:].strip()] if text[begin:].strip() else [])]


def _is_comprehension(text: str) -> bool:
    depth = 0
    for _, mark in _marks(text):
        depth += (mark in _OPENS) - (mark in _CLOSES)
        if depth == 0 and mark == " for ":
            return True
    return False


def _marks(text: str) -> Iterator[tuple[int, str]]:
    """Brackets, commas and the word of a comprehension with their places, those in strings left out."""
    for found in _MARK.finditer(text):
        if found.lastgroup is not None:
            yield found.start(), found.group()
