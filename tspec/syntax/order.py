"""The order of a file's items: edition, module, uses, declarations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tspec.diagnostics import Diagnostic, Related
from tspec.source import Source, Span
from tspec.syntax import nodes
from tspec.syntax.editions import EDITIONS, NEWEST


def arrange(items: Sequence[nodes.Node]) -> nodes.File:
    """The file of some items; of a second edition or module, the first counts."""
    return nodes.File(
        next((item for item in items if isinstance(item, nodes.Edition)), None),
        next((item for item in items if isinstance(item, nodes.Module)), None),
        tuple(item for item in items if isinstance(item, nodes.Use)),
        tuple(item for item in items if isinstance(item, nodes.Declaration)),
    )


def check(items: Sequence[nodes.Node], source: Source, whole: bool) -> Iterator[Diagnostic]:
    """Errors in the order of items. `whole`: no item is missing because of an error."""
    yield from _edition(items, source, whole)
    rank = 0
    highest: nodes.Node | None = None
    for item in items:
        first = next(each for each in items if type(each) is type(item)) if _single(item) else item
        if first is not item:
            message = f"the file already has a line `{nodes.keyword(item)}`"
            yield Diagnostic("TS0011", message, item.span, source, (Related(first.span, "here"),))
        elif _rank(item) < rank and highest is not None:
            yield Diagnostic(
                "TS0011",
                f"`{nodes.keyword(item)}` stands above all {_ABOVE[_rank(item)]}",
                item.span,
                source,
                (Related(_head(highest, source), "move it above this"),),
                "a file begins with `edition`, `module` and its `use` lines, in this order",
            )
        else:
            rank, highest = (_rank(item), item) if _rank(item) > rank else (rank, highest)


def _edition(items: Sequence[nodes.Node], source: Source, whole: bool) -> Iterator[Diagnostic]:
    edition = next((item for item in items if isinstance(item, nodes.Edition)), None)
    if edition is None:
        if whole:
            place = _head(items[0], source) if items else Span(0, 0)
            yield Diagnostic(
                "TS0010",
                "the file does not say in which edition of the language it is written",
                place,
                source,
                hint=f"write `edition {NEWEST}` as the first line",
            )
    elif edition.year not in EDITIONS:
        known = " and ".join(str(year) for year in EDITIONS)
        yield Diagnostic(
            "TS0025",
            f"this tspec does not know edition {edition.year}",
            edition.span,
            source,
            hint=f"it knows {known}",
        )


_ABOVE = {
    0: "else",
    1: "`use` lines and declarations",
    2: "declarations",
}


def _rank(item: nodes.Node) -> int:
    if isinstance(item, nodes.Edition):
        return 0
    if isinstance(item, nodes.Module):
        return 1
    return 2 if isinstance(item, nodes.Use) else 3


def _single(item: nodes.Node) -> bool:
    return isinstance(item, nodes.Edition | nodes.Module)


def _head(item: nodes.Node, source: Source) -> Span:
    """The first line of an item, or the part of the item on it."""
    end = source.text.find("\n", item.span.start)
    return Span(item.span.start, min(item.span.end, end if end >= 0 else item.span.end))
