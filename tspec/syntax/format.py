"""The canonical form of a file: `format_file` of a tree, `format_text` of a text."""

from __future__ import annotations

from tspec.source import Source
from tspec.syntax import nodes
from tspec.syntax.format_declarations import declaration
from tspec.syntax.format_lines import above
from tspec.syntax.parse import parse
from tspec.syntax.printer import Doc, render

WIDTH = 100
"""Columns of a line."""

ONE_LINERS = (nodes.Use, nodes.Let, nodes.Group, nodes.Event, nodes.Reject)
"""Items that may stand close to others of their kind, if they take one line."""


def format_file(file: nodes.File, width: int = WIDTH) -> str:
    """The text of a file. Comments stay where they were; reading it again gives the same tree."""
    header = [item for item in (file.edition, file.module) if item is not None]
    items: list[nodes.Node] = [*header, *file.uses, *file.declarations]
    texts: list[str] = []
    for index, item in enumerate(items):
        if index and _separate(items[index - 1], item):
            texts.append("")
        texts.append(render(_item(item), width))
    comments = file.trivia.opening + file.trivia.inner
    for index, comment in enumerate(comments):
        if comment.blank_before and (texts or index):
            texts.append("")
        texts.append(comment.text)
    return "\n".join([*texts, ""]) if texts else ""


def format_text(source: Source) -> str:
    """The canonical form of a text without errors."""
    return format_file(parse(source).file)


def _item(item: nodes.Node) -> Doc:
    return above(item, declaration(item), empty_lines=True)


def _separate(previous: nodes.Node, item: nodes.Node) -> bool:
    """True if an empty line stands between two items."""
    together = type(previous) is type(item) and isinstance(item, ONE_LINERS)
    if not together or _tall(previous) or _tall(item) or item.doc is not None:
        return True
    leading = item.trivia.leading
    return leading[0].blank_before if leading else item.trivia.blank_before


def _tall(item: nodes.Node) -> bool:
    """True if an item has a block, and so never fits on one line."""
    return isinstance(item, nodes.Event) and bool(
        item.fields or item.trivia.opening or item.trivia.inner
    )
