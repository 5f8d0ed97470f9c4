"""The scope in which a query reads an expression: a relation of instances, and the meaning of its
columns.

Each row has its window's instants as columns: `s_at` is the start, `e_at` the end (NULL where the
recording cuts it off), `l_at` the end or the last record. `_step`, `_epoch`, `_microbatch` and
`_phase` are the context there. State at an instant is the last sample up to `_at`. `call_lo` to
`call_hi` and `sample_lo` to `sample_hi` are the places within the window (`hi` excluded).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tspec.check.columnar.facts import Facts
from tspec.check.columnar.relation import Relation
from tspec.check.columnar.shapes import Cell
from tspec.resolve.program.rules import Duration, Expr, Window

CONTEXT = ("step", "epoch", "microbatch", "phase")
MOMENTS = ("s", "e", "l")


@dataclass(frozen=True, slots=True)
class Frame:
    """At which of the window's instants names are read; `first`: fields as first sampled."""

    when: Literal["s", "e", "l"] = "e"
    first: bool = False

    def column(self, name: str) -> str:
        """The column of the instant's place or context."""
        return f"{self.when}_{name}"


@dataclass(frozen=True, slots=True)
class Element:
    """The value of a variable over a list: the item at a place of the collection."""

    collection: Expr
    place: str


@dataclass(frozen=True, slots=True)
class HistoryColumns:
    """Columns for looks at other instances: `key` of the same rank, group and subjects, `number` its order."""

    key: str
    number: str
    rank_first: str
    """Orders the instances of a rank. `first` of a call variable refers to the first of them."""
    every: Duration | None


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """Columns for folds over members: `key` of the instance, `first_other` the first member without it, or NULL."""

    key: str
    first_other: str
    ranks: str
    """The group's ranks, a list."""
    have: str
    lacking: str
    lack_rank: str
    unknown: str
    why_unknown: str
    """Counts of the members that have it, lack it, cannot be known; which one lacks it, and why not known."""


@dataclass(slots=True)
class QueryScope:
    """A relation and the meaning of its columns. `outer`: the windows, before subjects were chosen."""

    facts: Facts
    relation: Relation
    window: Window
    variables: Mapping[str, Cell | Element]
    outer: QueryScope | None = None
    history: HistoryColumns | None = None
    group: GroupColumns | None = None
    memo: dict[Hashable, Cell] = field(default_factory=dict)

    @property
    def instant(self) -> bool:
        """The window has no extent."""
        return self.window.kind in ("before", "after")


@dataclass(frozen=True, slots=True)
class Instances:
    """A scope whose rows are a rule's instances, on each rank that has them.

    `windows` is the table of windows; `held` are the columns that choices of subjects added to it.
    `labels` are SQL of the subjects' parts of the key, and `kinds` their kinds: `subject` (a hash),
    `call` (the window's), `nth call`, `place` of a batch (numbers shown as #n) or `item` (a
    number). `place` is SQL of the second part of `at`, and `ranks` of the group's ranks. `no_group`
    is a column that is true where there is no group.
    """

    scope: QueryScope
    windows: str
    held: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    place: str = "at1"
    ranks: str = ""
    no_group: str = "false"
