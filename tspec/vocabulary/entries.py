"""One entry of the vocabulary, and the one that a user means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tspec.builtin.actions import DEFAULT

EntryKind = Literal[
    "context value", "group", "entity", "field", "event", "collection", "feature", "fold",
    "function", "keyword",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class VocabularyEntry:
    """A name, its meaning, and an example: a rule's clauses that use it, on one line."""

    kind: EntryKind
    name: str
    """A field's name without its owner: `grad`."""
    meaning: str
    """Empty where the declaration has no `///`."""
    example: str
    type: str = ""
    owner: str = ""
    """For a field: the entity or event."""
    module: str = ""
    """The module that declares it; empty for words of the language."""
    other_name: str = ""
    """For an entity: its plural."""
    callables: tuple[str, ...] = ()
    """For an event: its callables."""
    response: str = ""
    """What the example says after `else`, if that is what it shows."""

    @property
    def qualified(self) -> str:
        """`parameter.grad`; for entries other than fields, the name."""
        return f"{self.owner}.{self.name}" if self.owner else self.name

    @property
    def text(self) -> str:
        """A file with the example as its rule, in canonical form but for long lines."""
        uses = f"use {self.module or 'std.torch'}\n\n"
        body = "".join(f"  {line}\n" for line in clauses(self.example))
        return f"edition 2026\n\nmodule checks\n\n{uses}invariant example {{\n{body}  else {self.response or DEFAULT}\n}}\n"


_CLAUSES = ("for", "across", "each", "before", "after", "during", "when", "expect")


def clauses(example: str) -> tuple[str, ...]:
    """The clauses of an example, one a line. The text after `expect` is one clause."""
    lines: list[list[str]] = []
    claims = False
    for word in example.split():
        if word in _CLAUSES and not claims:
            lines.append([])
        claims = claims or word == "expect"
        lines[-1].append(word)
    return tuple(" ".join(line) for line in lines)


def named(name: str, entries: Iterable[VocabularyEntry]) -> tuple[VocabularyEntry, ...]:
    """The entries with a given name: by qualified name or plural, else fields of that name.

    `p.grad` is any field `grad`, as a rule may name its variables as it likes.
    """
    every = tuple(entries)
    exact = tuple(each for each in every if name in (each.qualified, each.other_name))
    if exact:
        return exact
    head, _, rest = name.partition(".")
    if rest and not any(_is_owner(each, head) for each in every):
        return tuple(each for each in every if each.kind == "field" and each.name == rest)
    return tuple(each for each in every if each.name == name)


def fields_of(
    entry: VocabularyEntry, entries: Iterable[VocabularyEntry]
) -> tuple[VocabularyEntry, ...]:
    """The fields of an entity or event, those that extensions add included; of others none."""
    if entry.kind not in ("entity", "event"):
        return ()
    return tuple(each for each in entries if each.kind == "field" and each.owner == entry.name)


def _is_owner(entry: VocabularyEntry, name: str) -> bool:
    """True if the name is that of an entity or event, and so of no variable. A field may share a variable's name."""
    if entry.kind == "field":
        return entry.owner == name
    return name in (entry.name, entry.other_name)
