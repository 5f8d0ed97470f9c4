"""The layout of lines: blocks in braces, comments above and beside lines, lists of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tspec.syntax import nodes
from tspec.syntax.format_expressions import comments_above, expression, trailing
from tspec.syntax.printer import (
    EMPTY_LINE,
    HARD,
    LINE,
    Doc,
    IfBroken,
    Suffix,
    group,
    indent,
)

_AnyNode = TypeVar("_AnyNode", bound=nodes.Node)


def above(node: nodes.Node, doc: Doc, empty_lines: bool) -> Doc:
    """A line with the comments above and beside it."""
    parts: list[Doc] = []
    leading = node.trivia.leading
    for index, comment in enumerate(leading):
        if index and comment.blank_before and empty_lines:
            parts.append(HARD)
        parts += [comment.text, HARD]
    if leading and node.trivia.blank_before and empty_lines and not leading[-1].is_doc:
        parts.append(HARD)
    return (*parts, doc, *trailing(node))


def block(
    head: Doc,
    node: nodes.Node,
    lines: Sequence[_AnyNode],
    write: Callable[[_AnyNode], Doc],
    empty_lines: bool = True,
) -> Doc:
    """`head { ... }`, with each line of the block on its own line. `empty_lines`: the text's empty
    lines are kept.
    """
    opening = tuple(Suffix(comment.text) for comment in node.trivia.opening)
    body: list[Doc] = []
    for index, line in enumerate(lines):
        body.append(EMPTY_LINE if empty_lines and index and _blank_above(line) else HARD)
        body.append(above(line, write(line), empty_lines))
    for index, comment in enumerate(node.trivia.inner):
        blank = empty_lines and comment.blank_before and (index or lines)
        body += [EMPTY_LINE if blank else HARD, comment.text]
    if not body and not opening:
        return (head, " {}")
    return (head, " {", *opening, indent(*body), HARD, "}")


def _blank_above(line: nodes.Node) -> bool:
    leading = line.trivia.leading
    return leading[0].blank_before if leading else line.trivia.blank_before


def short_block(
    head: Doc, node: nodes.Node, lines: Sequence[_AnyNode], write: Callable[[_AnyNode], Doc]
) -> Doc:
    """`head { a, b }` on one line with commas, or one line each without."""
    trivia = node.trivia
    if not lines and not trivia.opening and not trivia.inner:
        return (head, " {}")
    opening = tuple(Suffix(comment.text) for comment in trivia.opening)
    body: list[Doc] = []
    for index, line in enumerate(lines):
        body += [IfBroken("", ","), LINE] if index else [LINE]
        body.append(above(line, write(line), empty_lines=False))
    body += [part for comment in trivia.inner for part in (HARD, comment.text)]
    return group(head, " {", *opening, indent(*body), LINE, "}")


def value(head: str, node: nodes.Node, written: Doc | None = None) -> Doc:
    """`head node`; below the head, further to the right, if a comment stands between.

    `written`: the node's text, if it is no expression.
    """
    if written is None:
        assert isinstance(node, nodes.Expr)
        written = (expression(node, comments=False), *trailing(node))
    if not node.trivia.leading:
        return (head, " ", written)
    return (head, indent(HARD, *comments_above(node), written))


def listed(
    parts: Sequence[_AnyNode], write: Callable[[_AnyNode], Doc], before: str = "", by: int = 2
) -> Doc:
    """`a, b, c`, with as many on each line as fit. `before`: a word before all but the first."""
    first, *rest = parts
    written: list[Doc] = [write(first), *trailing(first)]
    for part in rest:
        line = (LINE, *comments_above(part), before, write(part), *trailing(part))
        written += [",", group(indent(*line, by=by))]
    return tuple(written)


def expressions(parts: Sequence[nodes.Expr]) -> Doc:
    """Expressions, with as many on each line as fit."""
    return listed(parts, lambda part: expression(part, comments=False))


def words(parts: Sequence[nodes.Word]) -> Doc:
    """Words, with as many on each line as fit."""
    return listed(parts, lambda part: part.text)
