"""The members of a group that lack an instance, from what each rank reports of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tspec.reasons import DIED, NO_WINDOW, of_rank
from tspec.runtime.pending import PendingInstance
from tspec.runtime.results import RuleRecord
from tspec.runtime.windows import At
from tspec.values import Datum


@dataclass(frozen=True, slots=True)
class AbsentMembers:
    """Members without the instance: those that lack it, and those of unknown state, each with the
    reason.
    """

    lacking: tuple[int, ...] = ()
    unknown: Mapping[int, str] = field(default_factory=dict)


NOBODY = AbsentMembers()


@dataclass(frozen=True, slots=True)
class RankView:
    """One rank as the others know it: the creation of its subjects, its progress, and its windows."""

    born: Mapping[tuple[str, str], tuple[int, int]]
    """(kind, name) -> (step, epoch) of the first sample."""
    reached: tuple[int, int]
    """The latest step and epoch of a record."""
    finished: bool
    windows: Mapping[int, Sequence[tuple[int, tuple[Datum, ...]]]]
    """Rule -> (step, fields) of the calls that are its windows."""
    places: Mapping[int, Sequence[At]]
    """Rule -> the places of the spans that are its windows."""
    joined: bool = False
    """The rank has no more batches. It makes no step until every rank has joined."""
    running: Mapping[int, int] = field(default_factory=dict)
    """Rule -> the oldest step in which one of its calls began that has not returned."""

    def is_past(self, declared: RuleRecord, unit: int) -> bool:
        """True if the rank sends nothing more about a step, epoch or run.

        After it has joined, its epoch and run continue, and it makes calls of the others' steps.
        A call that still runs may belong to a step that is over.
        """
        joined = self.joined and declared.span not in ("epoch", "run") and declared.kind != "calls"
        running = self.running.get(declared.number, unit + 1) <= unit
        return self.finished or joined or (_unit(declared, self.reached) > unit and not running)


def absent_members(
    declared: RuleRecord, entries: Sequence[PendingInstance], views: Mapping[int, RankView]
) -> AbsentMembers:
    """The living members that lack an instance, and the members for which this is unknown."""
    head, have = entries[0], {entry.rank for entry in entries}
    lacking: list[int] = []
    unknown: dict[int, str] = {}
    for rank in head.group:
        view = views.get(rank)
        if rank in have:
            continue
        if view is None:
            unknown[rank] = of_rank(rank, DIED)
        elif not all(_had(declared, view, subject, head.at) for subject in head.persistent):
            continue
        elif not view.is_past(declared, head.at[0]):
            unknown[rank] = of_rank(rank, DIED)
        elif head.passing:
            continue
        elif declared.kind == "calls" or _has_window(declared, view, head):
            lacking.append(rank)
        else:
            unknown[rank] = of_rank(rank, NO_WINDOW)
    return AbsentMembers(tuple(lacking), unknown)


def _unit(declared: RuleRecord, at: tuple[int, int]) -> int:
    """The step of a place; the epoch for windows that are epochs; 0 for runs."""
    if declared.span == "epoch":
        return at[1]
    return 0 if declared.span == "run" else at[0]


def _had(declared: RuleRecord, view: RankView, subject: tuple[str, str], at: At) -> bool:
    born = view.born.get(subject)
    return born is not None and _unit(declared, born) <= at[0]


def _has_window(declared: RuleRecord, view: RankView, head: PendingInstance) -> bool:
    if declared.kind == "each":
        return head.at in view.places.get(declared.number, ())
    step, place = head.at
    found = [key for at, key in view.windows.get(declared.number, ()) if at == step]
    return sum(1 for key in found if not head.wanted or key == head.wanted) > place
