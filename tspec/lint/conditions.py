"""Conditions as written: where a part stands, and how it is left out or written in another way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tspec.lint.finding import Edit
from tspec.resolve.program.queries import conditions
from tspec.resolve.program.rules import And, Expr, Or, Rule
from tspec.resolve.program.walk import children, walk
from tspec.source import Source, Span


def expressions(rule: Rule) -> Iterator[Expr]:
    """All expressions in `when` and `expect`, patterns of events left out."""
    for condition in conditions(rule):
        for part in walk(condition):
            if isinstance(part, Expr):
                yield part


def is_written(expr: Expr) -> bool:
    """True if an expression is written in this place; an inlined `let` has the span of its name."""
    return all(part.span != expr.span for part in children(expr) if isinstance(part, Expr))


def joined(rule: Rule) -> Iterator[tuple[Expr, Expr]]:
    """Each operand of an `and` or `or`, with the whole."""
    for part in expressions(rule):
        if isinstance(part, And | Or):
            for item in part.items:
                yield part, item


def left_out(rule: Rule, span: Span) -> tuple[Edit, ...]:
    """Edits that delete a part of a condition; none if it cannot be deleted by itself."""
    when, condition = rule.spans.when, rule.spans.condition
    if when and condition and bare(rule.source, condition) == bare(rule.source, span):
        return _deletion(rule.source, Span(_line_start(rule.source, when), when.end))
    for part in expressions(rule):
        if isinstance(part, And | Or) and is_written(part):
            places = [each.span for each in part.items]
            # The links of `a < b < c` overlap: none of them can be left out by itself.
            apart = all(one.end <= other.start for one, other in pairwise(places))
            if apart and span in places:
                return _operand(rule.source, [bare(rule.source, each) for each in places], span)
    return ()


def _line_start(source: Source, span: Span) -> int:
    start = source.text.rfind("\n", 0, span.start)
    between = source.text[start + 1 : span.start]
    return start if start >= 0 and not between.strip() else span.start


def _operand(source: Source, places: list[Span], span: Span) -> tuple[Edit, ...]:
    place = places.index(bare(source, span))
    if place:
        return _deletion(source, Span(places[place - 1].end, places[place].end))
    return _deletion(source, Span(places[0].start, places[1].start))


def _deletion(source: Source, span: Span) -> tuple[Edit, ...]:
    """A deletion that would lose a comment is not made."""
    return () if "//" in source.slice(span) else (Edit(span, ""),)


def bare(source: Source, span: Span) -> Span:
    """A span with the parentheses around it that belong to it alone."""
    text = source.text
    start, end = span.start, span.end
    while True:
        left = len(text[:start].rstrip())
        right = end + len(text[end:]) - len(text[end:].lstrip())
        opens = left > 0 and text[left - 1] == "(" and not _calls(text, left - 1)
        if not (opens and right < len(text) and text[right] == ")"):
            return Span(start, end)
        start, end = left - 1, right + 1


def _calls(text: str, place: int) -> bool:
    """True if the parenthesis at `place` holds the arguments of a call."""
    before = text[:place].rstrip()
    word = before.rsplit(maxsplit=1)[-1] if before.strip() else ""
    last = before[-1:] if before else ""
    return (last.isalnum() or last in "_])") and word not in _BEFORE_A_PARENTHESIS


_BEFORE_A_PARENTHESIS = frozenset({"when", "expect", "and", "or", "not", "implies", "in", "is"})
