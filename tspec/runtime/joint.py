"""Joint decisions: an instance is decided for its group from the values that each rank read of it.

Instances of a single rank that look back, or that are decided once, are decided here too, as a
group of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tspec.reasons import DIFFER, LACKS, ONE_HOLDER, Verdict, of_rank
from tspec.runtime.absent import NOBODY, AbsentMembers
from tspec.runtime.members import Leaves, Pasts
from tspec.runtime.pending import PendingInstance, Ranks, Subjects
from tspec.runtime.results import InstanceResult, RuleRecord, claimed, due
from tspec.runtime.series.history import Index, SubjectHistory
from tspec.values import Datum, show

Shown = tuple[Sequence[Datum], ...]
"""Values that findings show: of each member."""


class Decide(Protocol):
    """A generated function: the values of a rule's condition and claim on each member of a group."""

    def __call__(
        self,
        leaves: Leaves,
        pasts: Pasts,
        indices: Sequence[Index | None],
        places: Sequence[int],
        /,
    ) -> tuple[Sequence[Datum], Sequence[Datum], Shown]:
        """(`when` of each member, `expect` of each, the values that a violated instance shows).

        Each argument has an element for each member: the values that it read, its history, its
        place for `over`, and its place in the group.
        """


@dataclass(frozen=True, slots=True)
class JointDecision:
    """The generated function that decides a rule from the leaves of its members."""

    declared: RuleRecord
    decide: Decide
    read: tuple[tuple[str, bool], ...] = ()
    """The texts of the values shown, and whether the value of each member is shown even if all are
    equal.
    """


@dataclass(slots=True)
class RuleHistory:
    """The histories of one rule's instances, on every rank of the group."""

    pasts: dict[tuple[int, Ranks, Subjects], SubjectHistory] = field(default_factory=dict)
    ranks: dict[int, dict[int, Datum]] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    """The latest epoch of each rank."""
    groups: dict[int, Ranks] = field(default_factory=dict)
    """The latest group of each rank, as that rank knows it."""
    leaves_out: Callable[[int, int], bool] | None = None
    """Whether a step between two others was left out; None if all steps are checked."""
    steps: dict[int, int] = field(default_factory=dict)
    """The step of each rank's latest instance, if steps are left out."""

    def past(self, entry: PendingInstance) -> SubjectHistory:
        """The history of an instance on a rank. The first instance of an epoch drops what no window needs.

        The first one after steps that were left out starts all histories of the rank over.
        """
        if self.leaves_out is not None:
            self._pass_to(entry.rank, entry.index[0], self.leaves_out)
        if entry.index[1] > self.epochs.get(entry.rank, -1):
            self.epochs[entry.rank] = entry.index[1]
            for (rank, _, _), one in self.pasts.items():
                if rank == entry.rank:
                    one.forget(entry.index)
        key = (entry.rank, entry.group, entry.subjects)
        found = self.pasts.get(key)
        if found is None:
            found = self.pasts[key] = SubjectHistory(self.ranks.setdefault(entry.rank, {}))
        return found

    def _pass_to(self, rank: int, step: int, leaves_out: Callable[[int, int], bool]) -> None:
        before = self.steps.get(rank, step)
        self.steps[rank] = max(before, step)
        if before < step and leaves_out(before, step):
            for (other, _, _), one in self.pasts.items():
                if other == rank:
                    one.start_over()


def decide_group(
    joint: JointDecision,
    entries: Sequence[PendingInstance],
    absent: AbsentMembers | None,
    history: RuleHistory,
) -> InstanceResult:
    """The verdict on one instance, from the entries of the ranks that have it, the lowest rank first."""
    declared, head, absent = joint.declared, entries[0], absent or NOBODY
    have = {entry.rank: entry for entry in entries}
    members = sorted({*have, *absent.lacking, *absent.unknown})
    leaves = [have[rank].leaves if rank in have else None for rank in members]
    pasts = [history.past(have[rank]) if rank in have else None for rank in members]
    indices = [have[rank].index if rank in have else None for rank in members]
    places = [head.group.index(rank) for rank in members]

    whens, expects, shown = joint.decide(leaves, pasts, indices, places)
    if head.no_group:
        return head.result("idle", head.no_group)
    if declared.across and len(members) == 1:
        return head.result("idle", ONE_HOLDER)
    here = [place for place, rank in enumerate(members) if rank in have]
    dues = [_due(declared, have[members[place]], whens[place]) for place in here]
    found = {verdict for verdict, _ in dues}
    if {"holds", "idle"} <= found:
        return head.result("violated", DIFFER)
    for verdict, reason in dues:
        if verdict == "unknown":
            return head.result(verdict, reason)
    if absent.unknown:
        return head.result("unknown", next(iter(absent.unknown.values())))
    if found == {"idle"}:
        return head.result("idle")
    of = {members[place]: place for place in here}
    if absent.lacking:
        reason = of_rank(absent.lacking[0], LACKS)
        return head.result("violated", reason, _values(joint, shown, of))
    verdict, reason = _all([claimed(expects[place]) for place in here])
    values = _values(joint, shown, of) if verdict == "violated" else None
    return head.result(verdict, reason, values)


@dataclass(frozen=True, slots=True)
class DecidedAlone:
    """The verdicts on instances of one rank alone, with the reason of each unknown one."""

    joint: JointDecision
    entries: Sequence[PendingInstance]
    verdicts: Sequence[tuple[Verdict, str]]
    shown: Shown

    def result(self, place: int) -> InstanceResult:
        """The outcome of one of the instances; with values if it is violated."""
        entry, (verdict, reason) = self.entries[place], self.verdicts[place]
        violated = verdict == "violated"
        values = _values(self.joint, self.shown, {entry.rank: place}) if violated else None
        return entry.result(verdict, reason, values)


def decide_alone(
    joint: JointDecision, entries: Sequence[PendingInstance], history: RuleHistory
) -> DecidedAlone:
    """Decide instances of one rank alone, in one call: without `across`, no member reads values of
    another.
    """
    pasts = [history.past(entry) for entry in entries]
    whens, expects, shown = joint.decide(
        [entry.leaves for entry in entries],
        pasts,
        [entry.index for entry in entries],
        [0] * len(entries),
    )
    verdicts: list[tuple[Verdict, str]] = []
    for entry, when, expect in zip(entries, whens, expects, strict=True):
        if when is True and expect is True and not entry.cut and entry.leaves is not None:
            verdicts.append(("holds", ""))
            continue
        found = _due(joint.declared, entry, when)
        verdicts.append(claimed(expect) if found[0] == "holds" else found)
    return DecidedAlone(joint, entries, verdicts, shown)


def _due(declared: RuleRecord, entry: PendingInstance, when: Datum) -> tuple[Verdict, str]:
    return due(declared, entry.cut, False if entry.leaves is None else when)


def _all(found: Sequence[tuple[Verdict, str]]) -> tuple[Verdict, str]:
    """The joint verdict: violated if any member is; else unknown if any is; idle if all are; else holds."""
    for verdict in ("violated", "unknown", "holds"):
        for each in found:
            if each[0] == verdict:
                return each
    return found[0]


def _values(joint: JointDecision, shown: Shown, places: Mapping[int, int]) -> dict[str, str]:
    """The values that members read, by text; one for each member where they differ. `places`: rank -> index."""
    found: dict[str, str] = {}
    for (text, each_member), values in zip(joint.read, shown, strict=True):
        of = {rank: show(values[place]) for rank, place in places.items()}
        if len(of) == 1 or (len(set(of.values())) == 1 and not each_member):
            found[text] = next(iter(of.values()))
        else:
            found[text] = ", ".join(f"rank {rank}: {value}" for rank, value in of.items())
    return found
