"""Instances that are pending until they are decided, with the values that a rank read of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from tspec.reasons import Verdict
from tspec.runtime.edges import Location
from tspec.runtime.results import InstanceResult
from tspec.runtime.series.history import Index
from tspec.runtime.windows import At
from tspec.values import Datum

Ranks = tuple[int, ...]
Subjects = tuple[str | None, ...]
"""Names of the subjects of an instance; None for the window's own call, which is named by its place."""
Choices = tuple[tuple[str | None, ...], ...]
"""For each clause the names of its subjects: an instance has one of each."""


class SubjectChoice(NamedTuple):
    """One choice of subjects with its group, from generated code. `PendingInstance` has the same fields."""

    group: Ranks
    subjects: Subjects
    no_group: str = ""
    persistent: tuple[tuple[str, str], ...] = ()
    passing: bool = False
    wanted: tuple[Datum, ...] = ()


@dataclass(slots=True)
class PendingInstance:
    """The values that one rank read for one instance.

    `group` is its ranks; only this rank if `no_group` gives a reason.
    """

    rule: int
    rank: int
    group: Ranks
    at: At
    subjects: Subjects
    persistent: tuple[tuple[str, str], ...]
    """The subjects that outlast a step, as kind and name."""
    passing: bool
    """A subject is known by its place only: a batch, a message, an element."""
    leaves: tuple[Datum, ...] | None
    """The values read; None where the condition is false in this context."""
    index: Index
    step: int
    call: int = -1
    earlier: Sequence[int] = ()
    """The window's call, and those before it in the step that are windows too."""
    cut: bool = False
    no_group: str = ""
    wanted: tuple[Datum, ...] = ()
    """The values that the window's filters require, for these subjects."""
    location: Location | None = None
    """The line that it points at; known on its own rank only."""
    kinds: tuple[str, ...] = ()
    """For an idle window that stands for all its instances: the kinds of the subjects in `choices`."""
    choices: Choices = ()
    """The choices of such a window; empty if they equal those of the window before."""

    def result(
        self, verdict: Verdict, reason: str = "", values: Mapping[str, str] | None = None
    ) -> InstanceResult:
        """The verdict on the instance. A violated one points at its line."""
        return InstanceResult(
            rule=self.rule,
            ranks=self.group,
            at=self.at,
            subjects=named(self.subjects, self.at),
            verdict=verdict,
            reason=reason,
            step=self.step,
            values=values or {},
            location=self.location if verdict == "violated" else None,
        )

    def instances(self) -> list[PendingInstance]:
        """One pending instance for each choice of an idle window; otherwise itself."""
        if not self.kinds:
            return [self]
        return [
            replace(
                self,
                subjects=subjects,
                persistent=tuple(zip(self.kinds, named(subjects, self.at), strict=True)),
                kinds=(),
                choices=(),
            )
            for subjects in product(*self.choices)
        ]


def named(subjects: Subjects, at: At) -> tuple[str, ...]:
    """Names of subjects, the window's own call by its place."""
    if None not in subjects:
        return subjects  # type: ignore[return-value]
    return tuple(f"#{at[1]}" if name is None else name for name in subjects)
