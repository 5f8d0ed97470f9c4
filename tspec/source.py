"""The text of one file, and places in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a text: characters `start` up to but not including `end`, counted from 0."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The stretch from the beginning of this one to the end of `other`."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)
"""The span of a node that was built by a program and stands in no text."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place as people count it: `line` and `column` begin at 1, columns count characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True)
class Source:
    """A file's path, as it is to be shown, and its whole text."""

    path: str
    text: str
    no_text_at: int | None = None
    """The first byte of the file that is no UTF-8; None for a text."""

    @classmethod
    def read(cls, path: Path | str) -> Source:
        """Read a file. Bytes that are no UTF-8 become U+FFFD; `no_text_at` tells them from such signs in a text."""
        read = Path(path).read_bytes()
        try:
            return cls(str(path), read.decode("utf-8"))
        except UnicodeDecodeError as fault:
            return cls(str(path), read.decode("utf-8", errors="replace"), fault.start)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The offset of each line's first character. Only a newline ends a line."""
        starts = [0]
        offset = self.text.find("\n")
        while offset >= 0:
            starts.append(offset + 1)
            offset = self.text.find("\n", offset + 1)
        return tuple(starts)

    def position(self, offset: int) -> Position:
        """Line and column of a character; an offset past the end is the end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line (counted from 1), without its end; empty where there is none."""
        if not 1 <= number <= len(self.line_starts):
            return ""
        start = self.line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")

    def slice(self, span: Span) -> str:
        """The text that a span covers."""
        return self.text[span.start : span.end]

    def where(self, span: Span) -> str:
        """`path:line:column` of a span's beginning."""
        return f"{self.path}:{self.position(span.start)}"
