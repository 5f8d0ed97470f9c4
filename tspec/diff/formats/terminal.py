"""Changes as people read them in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tspec.diff.changes import ChangedPart, Changes, DeclarationChange
from tspec.diff.formats.words import heading, meaning, summary
from tspec.printable import lines, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES = {
    "removed": "bold red", "loosened": "bold red", "incomparable": "bold yellow",
    "unknown": "bold yellow", "changed": "bold yellow", "tightened": "bold green",
    "added": "bold green", "renamed": "bold cyan", "draft accepted": "bold cyan",
    "equivalent": "bold cyan", "milder action": "bold red", "other action": "bold yellow",
    "stricter action": "bold green", "made a draft": "bold red",
}  # fmt: skip


def print_changes(found: Changes, console: Console) -> None:
    """Print each change with its parts and a situation in which the versions differ; then the
    counts.
    """
    for change in found.changes:
        for line in _lines(change, console.width):
            console.print(line, soft_wrap=True, highlight=False)
        console.print()
    for line in _wrapped(summary(found), "", console.width):
        console.print(line, soft_wrap=True, highlight=False)


def _lines(change: DeclarationChange, width: int) -> Iterator[Text]:
    from rich.text import Text

    head = Text()
    said = heading(change)
    head.append(said, STYLES[said])
    name = change.name if change.what == "rule" else f"{change.what} {change.name}"
    head.append(f"  {lines(visible(name))}", "bold")
    yield head
    if change.old_name:
        yield from _wrapped(f"was {change.old_name}", "  ", width)
    where = " -> ".join(
        dict.fromkeys(each.where for each in (change.old, change.new) if each is not None)
    )
    yield from _wrapped(f"{where}: {meaning(change)}", "  ", width)
    for note in change.notes:
        yield from _wrapped(note, "  ", width)
    for part in change.parts:
        yield from _part(part, width)
    for witness in change.witnesses:
        yield from _wrapped(witness.line, "  e.g. ", width)
        if witness.given:
            yield from _wrapped(f"taken as given: {', '.join(witness.given)}", "       ", width)


def _part(part: ChangedPart, width: int) -> Iterator[Text]:
    from rich.text import Text

    yield Text(f"  {visible(part.part)}: {part.change}")
    for sign, text, style in (("-", part.old, "red"), ("+", part.new, "green")):
        if text:
            yield from _wrapped(text, f"    {sign} ", width, style)


def _wrapped(text: str, head: str, width: int, style: str = "") -> Iterator[Text]:
    import textwrap

    from rich.text import Text

    for line in textwrap.wrap(
        visible(text.replace("\n", " ")),
        max(width, 20),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
        break_long_words=False,
    ) or [head.rstrip()]:
        yield Text(lines(line), style)
