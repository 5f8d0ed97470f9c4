"""Samples that a live source does not keep and rules read later: batches of open windows, first values of fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.builtin.kinds import PASSING
from tspec.runtime.columns import Want
from tspec.runtime.edges import StateSource
from tspec.runtime.instant import StateInstant
from tspec.values import Datum

Birth = tuple[str, str, int, int]
"""Kind and name of a subject, and the step and epoch in which it was first seen."""


class SampleStore:
    """Keeps transient subjects while windows may hold them, and the first samples of fields.

    `passing` and `firsts` name the columns to keep, with their features.
    """

    def __init__(self, passing: tuple[Want, ...], firsts: tuple[Want, ...]) -> None:
        self.passing = passing
        self.firsts = firsts
        self.first_values: dict[tuple[str, str], dict[str, Datum]] = {}
        self.kept: dict[tuple[str, str], dict[str, Datum]] = {}
        self.births: dict[str, dict[str, int]] = {}

    def look(self, now: StateInstant) -> None:
        """Sample the subjects that were created since the last call."""
        self.look_passing(now)
        for kind, name, features in self.firsts:
            known = self.first_values.setdefault((kind, name), {})
            if not all(map(known.__contains__, now.subjects(kind))):
                now.want((Want(kind, name, features),))
                for subject, value in now.column(kind, name).items():
                    known.setdefault(subject, value)

    def look_passing(self, now: StateInstant) -> None:
        """Sample the batches and messages that were created since the last call."""
        for kind in {kind for kind, _, _ in self.passing}:
            born = self.births.setdefault(kind, {})
            since = now.source.born(kind)
            if since:  # the source learns of these step by step, so each call sees all of them
                new = list(since)
                born.update(since)
            else:
                new = [name for name in now.source.subjects(kind) if name not in born]
                born.update(dict.fromkeys(new, now.seq))
            if not new:
                continue
            for _, name, features in (one for one in self.passing if one[0] == kind and one[1]):
                column = now.live_column(kind, name, features)
                kept = self.kept.setdefault((kind, name), {})
                kept.update({subject: column[subject] for subject in new if subject in column})

    def forget(self, source: StateSource, before: int, opened: Mapping[str, int]) -> None:
        """Drop passing subjects that came before an instant and are gone.

        `opened` is where the earliest window begins that may still hold subjects of a kind.
        """
        for kind, born in self.births.items():
            there, since = set(source.subjects(kind)), min(before, opened.get(kind, before))
            old = [name for name, at in born.items() if at < since and name not in there]
            for name in old:
                del born[name]
                for key, column in self.kept.items():
                    if key[0] == kind:
                        column.pop(name, None)

    def forget_passing(self) -> None:
        """Drop all passing subjects: no window is open."""
        self.births.clear()
        self.kept.clear()

    # queries of instants

    def born(self, kind: str) -> Mapping[str, int]:
        """The sequence number at which each passing subject was created, by name."""
        return self.births.get(kind, {})

    def column(self, kind: str, name: str) -> Mapping[str, Datum] | None:
        """The column of a passing kind as it was then; None for other kinds."""
        return self.kept.get((kind, name), {}) if kind in PASSING else None

    def first(self, kind: str, name: str) -> Mapping[str, Datum]:
        """A field as it was when each subject was first seen."""
        return self.first_values.get((kind, name), {})


class NewSubjects:
    """The persistent subjects of some kinds that are new on this rank. Packets carry them to the other ranks."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds
        self._known: set[tuple[str, str]] = set()
        self._last: dict[str, Sequence[str]] = {}

    def new(self, source: StateSource, closed: tuple[int, int]) -> list[Birth]:
        """The subjects created since the last call, with the step and epoch of each: those known to
        the source, else those that close here.
        """
        past = source.past
        units = {} if past is None else past.units
        ever = source.subjects if past is None else past.ever
        found = []
        for kind in self._kinds:
            names = ever(kind)
            if names == self._last.get(kind):
                continue
            self._last[kind] = names
            for name in names:
                if (kind, name) not in self._known:
                    self._known.add((kind, name))
                    found.append((kind, name, *units.get((kind, name), closed)))
        return found
