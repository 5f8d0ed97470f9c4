"""What a live source forgets and rules still ask for: batches of open windows, and how subjects began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tspec.runtime.edges import Source
from tspec.runtime.instant import PASSING, Instant, Want


class Memory:
    """Remembers passing subjects while windows may hold them, and the first samples of fields.

    `passing` and `firsts` say which columns, with which features.
    """

    def __init__(self, passing: tuple[Want, ...], firsts: tuple[Want, ...]) -> None:
        self.passing = passing
        self.firsts = firsts
        self.first_values: dict[tuple[str, str], dict[str, Any]] = {}
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        self.births: dict[str, dict[str, int]] = {}
        self.units: dict[tuple[str, str], tuple[int, int]] = {}
        """(step, epoch) in which lasting subjects were first seen."""

    def look(self, now: Instant) -> None:
        """Take what came into being since the last look."""
        self._look_passing(now)
        for kind, name, features in self.firsts:
            known = self.first_values.setdefault((kind, name), {})
            if any(subject not in known for subject in now.subjects(kind)):
                now.want(((kind, name, features),))
                for subject, value in now.column(kind, name).items():
                    known.setdefault(subject, value)

    def _look_passing(self, now: Instant) -> None:
        for kind in {kind for kind, _, _ in self.passing}:
            born = self.births.setdefault(kind, {})
            known = getattr(now.source, "born", None)
            since: Mapping[str, int] = {} if known is None else known(kind)
            if since:  # what these are is learnt step by step: each look sees all of it
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

    def meet(self, source: Source, kinds: tuple[str, ...]) -> list[tuple[str, str]]:
        """Lasting subjects that this rank has had since the last meeting."""
        unit = (source.context.step, source.context.epoch)
        new = []
        for kind in kinds:
            for name in source.subjects(kind):
                if (kind, name) not in self.units:
                    self.units[kind, name] = unit
                    new.append((kind, name))
        return new

    def forget(self, source: Source, before: int, opened: Mapping[str, int]) -> None:
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

    # what instants ask

    def born(self, kind: str) -> Mapping[str, int]:
        """When passing subjects came into being."""
        return self.births.get(kind, {})

    def column(self, kind: str, name: str) -> Mapping[str, Any] | None:
        """The column of a passing kind as it was then; None for other kinds."""
        return self.kept.get((kind, name), {}) if kind in PASSING else None

    def first(self, kind: str, name: str) -> Mapping[str, Any]:
        """A field as it was when each subject was first seen."""
        return self.first_values.get((kind, name), {})
