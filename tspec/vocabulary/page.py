"""The vocabulary as a page of the documentation, and one name of it for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from tspec.builtin.actions import DEFAULT
from tspec.resolve.program.documentation import first_sentence
from tspec.resources import shipped
from tspec.source import Source
from tspec.vocabulary.declared import entries_of
from tspec.vocabulary.entries import EntryKind, VocabularyEntry, clauses, fields_of
from tspec.vocabulary.language import entries_of_language

WIDTH = 80
WIDEST_FIELD = 32
"""Columns of a field and its type that have a meaning beside them."""

TITLES: dict[EntryKind, str] = {
    "context value": "Context: known at every moment, on every rank",
    "group": "Groups of ranks, after `across`",
    "entity": "Entities: things with a state",
    "event": "Events: points of the program",
    "collection": "Named collections and numbers",
    "feature": "Features of a tensor",
    "fold": "Folds: one value of many",
    "function": "Functions",
    "keyword": "Words of a rule",
}

HEAD = """# Vocabulary

All that a rule can name, with an example each: `tspec explain NAME` says the same of one name. What another module than
`std.torch` declares is there after `use MODULE`. `tspec explain --vocabulary` writes this page, from the `///` in `stdlib/` and the
tables of the language.
"""


def vocabulary() -> tuple[VocabularyEntry, ...]:
    """All entries: those of the standard library, `std.torch` first, then those of the language."""
    files = sorted(shipped("stdlib").glob("*.tspec"), key=lambda f: (f.stem != "torch", f.stem))
    declared = (each for file in files for each in entries_of(Source.read(file)))
    return (*declared, *entries_of_language())


def as_markdown(entries: Iterable[VocabularyEntry]) -> str:
    """The page."""
    every = tuple(entries)
    lines = [HEAD]
    for kind, title in TITLES.items():
        lines += [f"## {title}", ""]
        rows = [each for each in every if each.kind == kind]
        lines += _table(rows)
        lines.append("")
        for row in rows if kind in ("entity", "event") else ():
            if fields := fields_of(row, every):
                lines += [f"### Fields of `{row.name}`", "", *_table(fields), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(entries: Iterable[VocabularyEntry]) -> Iterator[str]:
    """Rows of Markdown. A `|` within a cell is escaped."""
    yield "| name | meaning | example |"
    yield "|---|---|---|"
    for each in entries:
        kind = f": {each.type}" if each.type else ""
        rest = f" else {each.response}" if each.response else ""
        cells = (f"`{each.name}{kind}`", _meaning(each), f"`{each.example}{rest}`")
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def as_text(entries: Iterable[VocabularyEntry], every: Iterable[VocabularyEntry]) -> str:
    """The meaning of names, for a terminal. `every` has the fields of entities and events."""
    known = tuple(every)
    return "\n\n".join("\n".join(_of_one(each, known)) for each in entries)


def _of_one(entry: VocabularyEntry, every: tuple[VocabularyEntry, ...]) -> Iterator[str]:
    kind = f": {entry.type}" if entry.type else ""
    yield f"{entry.qualified}{kind}"
    of = f" of {entry.owner}" if entry.owner else ""
    where = f", in {entry.module}" if entry.module else ""
    also = f"; all of them are `{entry.other_name}`" if entry.other_name else ""
    yield from textwrap.wrap(f"{entry.kind}{of}{where}{also}", WIDTH, initial_indent="  ")
    if entry.meaning:
        yield ""
        yield from textwrap.wrap(entry.meaning, WIDTH)
    if entry.callables:
        yield ""
        yield "Calls of"
        yield from (f"  {each}" for each in entry.callables)
    if fields := fields_of(entry, every):
        yield ""
        yield "Fields"
        yield from _columns(fields)
    yield ""
    yield "Example"
    yield from (
        f"  {line}" for line in (*clauses(entry.example), f"else {entry.response or DEFAULT}")
    )


def _columns(fields: tuple[VocabularyEntry, ...]) -> Iterator[str]:
    """Each field and its type, and beside them the first sentence of its meaning; below them where
    they are wide.
    """
    heads = [f"  {each.name}: {each.type}" for each in fields]
    width = max((len(head) for head in heads if len(head) <= WIDEST_FIELD), default=WIDEST_FIELD)
    indent = " " * (width + 2)
    for head, each in zip(heads, fields, strict=True):
        beside = len(head) <= width
        if not beside:
            yield from textwrap.wrap(head, WIDTH, subsequent_indent="    ")
        yield from textwrap.wrap(
            _with_module(first_sentence(each.meaning), each), WIDTH, break_on_hyphens=False,
            initial_indent=head.ljust(width + 2) if beside else indent, subsequent_indent=indent,
        )  # fmt: skip


def _meaning(entry: VocabularyEntry) -> str:
    """The documentation; for an event without any, its callables. The module is added if it needs a
    `use`.
    """
    calls = ", ".join(f"`{each}`" for each in entry.callables)
    return _with_module(entry.meaning or (f"Calls of {calls}." if calls else ""), entry)


def _with_module(said: str, entry: VocabularyEntry) -> str:
    module = entry.module if entry.module not in ("", "std.torch") else ""
    return f"{said} (`use {module}`)".strip() if module else said
