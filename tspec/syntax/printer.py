"""Lays out text in lines of a width: documents of strings, possible line breaks and groups.

After Philip Wadler's "A prettier printer", with the comments at line ends that Prettier added:
a group is set on one line if it fits, else all of its own line breaks are taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Line:
    """A place where a line may end; `flat` stands there if it does not. `hard`: it does end."""

    flat: str = " "
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Indent:
    """Lines that begin inside of `body` are indented by this number of columns."""

    body: Doc
    by: int = 2


@dataclass(frozen=True, slots=True)
class BreakGroup:
    """On one line if it fits. `width`: the columns it takes then, or infinity."""

    body: Doc
    width: float


@dataclass(frozen=True, slots=True)
class Suffix:
    """A comment that stands at the end of the line, whatever else comes there."""

    text: str


@dataclass(frozen=True, slots=True)
class IfBroken:
    """One text if the group around is broken, another if it is on one line."""

    broken: str
    flat: str = ""


Doc: TypeAlias = "str | tuple[Doc, ...] | Line | Indent | BreakGroup | Suffix | IfBroken"

LINE = Line()
SOFT = Line("")
HARD = Line("", hard=True)
EMPTY_LINE = (HARD, HARD)


def group(*parts: Doc) -> Doc:
    """Parts that go on one line together, if they fit."""
    return BreakGroup(parts, _width(parts))


def indent(*parts: Doc, by: int = 2) -> Indent:
    return Indent(parts, by)


def join(separator: Doc, parts: Iterable[Doc]) -> Doc:
    """Parts with a separator between each two."""
    joined: list[Doc] = []
    for part in parts:
        if joined:
            joined.append(separator)
        joined.append(part)
    return tuple(joined)


def _width(doc: Doc) -> float:
    """The columns of a document on one line, or infinity if it cannot stand on one."""
    if isinstance(doc, str):
        return len(doc)
    if isinstance(doc, tuple):
        return sum(map(_width, doc))
    if isinstance(doc, BreakGroup):
        return doc.width
    if isinstance(doc, Indent):
        return _width(doc.body)
    if isinstance(doc, Line):
        return float("inf") if doc.hard else len(doc.flat)
    return len(doc.flat) if isinstance(doc, IfBroken) else float("inf")


def render(doc: Doc, width: int) -> str:
    """The text of a document, in lines of at most `width` columns where that is possible."""
    page = _Page(width)
    page.set(doc)
    return page.text()


@dataclass(frozen=True, slots=True)
class _Piece:
    indent: int
    broken: bool
    doc: Doc


@dataclass(slots=True)
class _Page:
    """The lines set so far, and comments that wait for the end of the current one."""

    width: int
    lines: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    column: int = 0
    waiting: list[str] = field(default_factory=list)

    def set(self, doc: Doc) -> None:
        stack = [_Piece(0, True, doc)]
        while stack:
            piece = stack.pop()
            doc = piece.doc
            if isinstance(doc, str):
                self.current.append(doc)
                self.column += len(doc)
            elif isinstance(doc, tuple):
                stack += [_Piece(piece.indent, piece.broken, part) for part in reversed(doc)]
            elif isinstance(doc, BreakGroup):
                flat = not self.waiting and self._fits(doc.width, stack)
                stack.append(_Piece(piece.indent, not flat, doc.body))
            elif isinstance(doc, Indent):
                stack.append(_Piece(piece.indent + doc.by, piece.broken, doc.body))
            elif isinstance(doc, Line):
                if doc.hard or piece.broken or self.waiting:
                    self._end_line(piece.indent)
                else:
                    self.current.append(doc.flat)
                    self.column += len(doc.flat)
            elif isinstance(doc, Suffix):
                self.waiting.append(doc.text)
            else:
                text = doc.broken if piece.broken else doc.flat
                self.current.append(text)
                self.column += len(text)

    def _fits(self, width: float, stack: list[_Piece]) -> bool:
        """True if `width` columns, and the text that must follow on the same line, fit."""
        room = self.width - self.column - width
        for piece in reversed(stack):
            if room < 0:
                return False
            taken, ends = _until_line(piece.doc, piece.broken)
            room -= taken
            if ends:
                break
        return room >= 0

    def _end_line(self, indent: int) -> None:
        line = "".join(self.current).rstrip()
        for comment in self.waiting[:1]:
            line = f"{line} {comment}" if line else " " * indent + comment
        for comment in self.waiting[1:]:
            self.lines.append(line)
            line = " " * indent + comment
        self.waiting.clear()
        self.lines.append(line)
        self.current = [" " * indent]
        self.column = indent

    def text(self) -> str:
        self._end_line(0)
        return "\n".join(self.lines)


def _until_line(doc: Doc, broken: bool) -> tuple[float, bool]:
    """The columns of a document up to the possible end of its first line, and whether the line can
    end there.
    """
    if isinstance(doc, str):
        return len(doc), False
    if isinstance(doc, Line):
        return (0, True) if broken or doc.hard else (len(doc.flat), False)
    if isinstance(doc, tuple):
        taken = 0.0
        for part in doc:
            width, ends = _until_line(part, broken)
            taken += width
            if ends:
                return taken, True
        return taken, False
    if isinstance(doc, (Indent, BreakGroup)):
        return _until_line(doc.body, broken)
    if isinstance(doc, IfBroken):
        return len(doc.broken if broken else doc.flat), False
    return 0, False
