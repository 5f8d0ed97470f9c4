"""Diagnostics: what tspec finds in a spec, and its presentation to a person."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tspec.printable import visible
from tspec.source import Source, Span

Severity = Literal["error", "warning"]

WIDTH = 80
"""The columns to which `render` wraps."""


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that has to do with a finding, such as the first of two declarations.

    `source` is the file of the place, or None for the finding's own file.
    """

    span: Span
    message: str
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a spec.

    `code` is `TSnnnn` and has a page in `tspec/codes`. `message` is one sentence without a full
    stop, names in backticks. `hint` says what to do next ("did you mean `optimizer.step`?").
    """

    code: str
    message: str
    span: Span
    source: Source
    related: tuple[Related, ...] = ()
    hint: str | None = None
    severity: Severity = "error"


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """`did you mean ...?` with the candidate nearest to a word, or None if none is near."""
    names = sorted(set(candidates) - {word})
    lowered = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.65)
    return f"did you mean `{lowered[near[0]]}`?" if near else None


def no_text(source: Source, byte: int) -> Diagnostic:
    """The diagnostic of a file that is no UTF-8, with the number of the faulty byte, from 0. It has
    no place to show.
    """
    message = f"cannot read `{source.path}`: it is no UTF-8 text (byte {byte})"
    return Diagnostic("TS0103", message, Span(0, 0), Source(source.path, ""))


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings by file, place and code, without repetitions."""
    seen: dict[tuple[str, Span, str, str], Diagnostic] = {}
    for found in diagnostics:
        seen.setdefault((found.source.path, found.span, found.code, found.message), found)
    return tuple(seen[key] for key in sorted(seen))


def render(diagnostic: Diagnostic) -> str:
    """A finding as text of at most 80 columns, without a newline at the end.

    First the code and the message, then the guilty line with a caret under the word, then the
    related places, then the hint. A file that cannot be read has no place: its message names it.
    """
    places = [_SourcePlace(diagnostic.source, diagnostic.span, "")]
    if not diagnostic.source.text and f"`{diagnostic.source.path}`" in diagnostic.message:
        places = []
    places += [
        _SourcePlace(other.source or diagnostic.source, other.span, other.message)
        for other in diagnostic.related
    ]
    gutter = max((len(str(place.line_number)) for place in places), default=1)
    lines = _wrap(f"{diagnostic.severity}[{diagnostic.code}]: ", diagnostic.message)
    for index, place in enumerate(places):
        arrow = "-->" if index == 0 else ":::"
        lines.append(f"{' ' * gutter}{arrow} {visible(place.where)}")
        lines += _excerpt(place, gutter, "^" if index == 0 else "-")
    if diagnostic.hint:
        lines += _wrap(f"{' ' * gutter} = ", diagnostic.hint)
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _SourcePlace:
    source: Source
    span: Span
    note: str

    @property
    def line_number(self) -> int:
        return self.source.position(self.span.start).line

    @property
    def where(self) -> str:
        return self.source.where(self.span)


def _wrap(prefix: str, text: str) -> list[str]:
    return textwrap.wrap(
        visible(text.replace("\n", " ")),
        WIDTH,
        initial_indent=prefix,
        subsequent_indent=" " * len(prefix),
        break_on_hyphens=False,
    ) or [prefix.rstrip()]


def _of_one_column(text: str) -> str:
    """A line of a file in which each character takes one column, so that the caret stands below the
    right one.

    A character that cannot be printed becomes a replacement sign, not an escape.
    """
    return "".join(
        c if c.isprintable() else " " if c in "\t\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _excerpt(place: _SourcePlace, gutter: int, mark: str) -> list[str]:
    position = place.source.position(place.span.start)
    text = _of_one_column(place.source.line(position.line))
    column = position.column - 1
    last = place.source.position(max(place.span.end - 1, place.span.start))
    end = last.column if last.line == position.line else len(text)
    text, column, end = _window(text, column, max(end, column + 1), WIDTH - gutter - 3)
    margin = " " * gutter
    carets = f"{margin} | {' ' * column}{mark * (end - column)}"
    lines = [f"{margin} |", f"{position.line:>{gutter}} | {text}".rstrip()]
    if not place.note:
        return [*lines, carets]
    if len(carets) + 1 + len(place.note) <= WIDTH:
        return [*lines, f"{carets} {visible(place.note)}"]
    return [*lines, carets, *_wrap(f"{margin} | ", place.note)]


def _window(text: str, column: int, end: int, room: int) -> tuple[str, int, int]:
    """The part of a long line around its marked columns, and where the mark lies in it."""
    if len(text) <= room and column < room:
        return text, column, min(end, max(room, column + 1))
    begin = max(0, min(column - room // 3, len(text) - room))
    cut = text[begin : begin + room]
    if begin > 0:
        cut = "…" + cut[1:]
    if begin + room < len(text):
        cut = cut[:-1] + "…"
    return cut, column - begin, min(max(end - begin, column - begin + 1), room)


def with_article(word: object) -> str:
    """`a step`, `an epoch`, as messages say it."""
    return f"an {word}" if str(word)[0] in "aeio" else f"a {word}"
