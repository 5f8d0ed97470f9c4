"""Finds the place of each key and value in a TOML text, which the standard library's reader does
not give.

The text is known to be valid TOML, so it is not checked again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tspec.source import Span

Path = tuple[str | int, ...]
"""Keys from the top, and numbers of elements of arrays."""

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_TEXT = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' r"'''.*?'{3,5}|" r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'", re.DOTALL
)
_PLAIN = re.compile(r"[^,\]}#\n]+")


@dataclass(frozen=True, slots=True)
class EntrySpans:
    """The spans of one entry: its key, and its value."""

    key: Span
    value: Span


@dataclass(slots=True)
class Scanner:
    """Reads a text from front to back; one object for each text, which ends with it."""

    text: str
    at: int = 0
    found: dict[Path, EntrySpans] = field(default_factory=dict)
    counts: dict[Path, int] = field(default_factory=dict)

    def scan(self) -> None:
        """Find all places of the text."""
        table: Path = ()
        self._skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._entry(table)
            self._skip()

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def _header(self) -> Path:
        several = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 2 if several else 1
        keys = list(self._keys())
        path: Path = ()
        for name, span in keys:
            path = (*path, name)
            self.found.setdefault(path, EntrySpans(span, span))
            if path in self.counts and (not several or name != keys[-1][0]):
                path = (*path, self.counts[path] - 1)
        self.at += 2 if several else 1
        if several:
            number = self.counts.get(path, 0)
            self.counts[path] = number + 1
            path = (*path, number)
            self.found[path] = EntrySpans(Span(start, self.at), Span(start, self.at))
        return path

    def _keys(self) -> Iterator[tuple[str, Span]]:
        """A key of one or more parts with points between them."""
        while True:
            self._skip()
            match = _KEY.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            yield _name(match[0]), Span(*match.span())
            self._skip()
            if self.text[self.at] != ".":
                return
            self.at += 1

    def _entry(self, table: Path) -> None:
        path = table
        spans = []
        for name, span in self._keys():
            path = (*path, name)
            spans.append(span)
            self.found.setdefault(path, EntrySpans(span, span))
        self.at += 1  # the equals sign
        self._skip()
        value = self._value(path)
        self.found[path] = EntrySpans(spans[0].to(spans[-1]), value)

    def _value(self, path: Path) -> Span:
        start = self.at
        sign = self.text[start]
        if sign in "\"'":
            match = _TEXT.match(self.text, start)
        elif sign in "[{":
            self._collection(path, "]" if sign == "[" else "}")
            return Span(start, self.at)
        else:
            match = _PLAIN.match(self.text, start)
        assert match is not None
        self.at = match.end()
        return Span(start, start + len(match[0].rstrip()))

    def _collection(self, path: Path, closing: str) -> None:
        self.at += 1
        number = 0
        while True:
            self._skip()
            if self.text[self.at] == closing:
                self.at += 1
                return
            if closing == "]":
                span = self._value((*path, number))
                self.found[(*path, number)] = EntrySpans(span, span)
                number += 1
            else:
                self._entry(path)
            self._skip()
            if self.text[self.at] == ",":
                self.at += 1


def _name(text: str) -> str:
    if text[0] == '"':
        read: str = tomllib.loads(f"a = {text}")["a"]
        return read
    return text[1:-1] if text[0] == "'" else text


def places(text: str) -> dict[Path, EntrySpans]:
    """The place of each key and element of a valid TOML text, by its path."""
    scanner = Scanner(text)
    scanner.scan()
    return scanner.found
