"""One entry of the vocabulary, and the one that a user means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

EntryKind = Literal[
    "context value", "group", "entity", "field", "event", "collection", "feature", "fold",
    "function", "keyword",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A name, what it means, and a rule's clauses in which it stands, on one line."""

    kind: EntryKind
    name: str
    """Of a field, without what has it: `grad`."""
    meaning: str
    """Empty where the declaration has no `///`."""
    example: str
    type: str = ""
    owner: str = ""
    """Of a field: the entity or event."""
    module: str = ""
    """What declares it; empty for words of the language."""
    other_name: str = ""
    """Of an entity: its plural."""
    callables: tuple[str, ...] = ()
    """Of an event: what is called."""
    action: str = "warn"
    """What the example does after `else`."""

    @property
    def qualified(self) -> str:
        """`parameter.grad`; of what is no field, its name."""
        return f"{self.owner}.{self.name}" if self.owner else self.name

    @property
    def text(self) -> str:
        """A file with the example as its rule, in canonical form but for long lines."""
        uses = f"use {self.module or 'std.torch'}\n\n"
        body = "".join(f"  {line}\n" for line in clauses(self.example))
        return f"edition 2026\n\nmodule checks\n\n{uses}invariant example {{\n{body}  else {self.action}\n}}\n"


_CLAUSES = ("for", "across", "each", "before", "after", "during", "when", "expect")


def clauses(example: str) -> tuple[str, ...]:
    """The clauses of an example, one a line. What follows `expect` is one clause."""
    lines: list[list[str]] = []
    claims = False
    for word in example.split():
        if word in _CLAUSES and not claims:
            lines.append([])
        claims = claims or word == "expect"
        lines[-1].append(word)
    return tuple(" ".join(line) for line in lines)


def named(name: str, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The entries that a name means: by qualified name or plural, else fields of that name."""
    every = tuple(entries)
    exact = tuple(each for each in every if name in (each.qualified, each.other_name))
    return exact or tuple(each for each in every if each.name == name)
