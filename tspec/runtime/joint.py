"""Joint decisions: an instance is decided for its group from the values that each rank read of it.

Instances of a single rank that look back, or that are decided once, are decided here too, as a
group of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

from tspec.reasons import DIED, DIFFER, LACKS, NO_WINDOW, ONE_HOLDER, Verdict, of_rank
from tspec.runtime.edges import Location
from tspec.runtime.members import Leaves, Pasts
from tspec.runtime.results import InstanceResult, RuleRecord, claimed, due
from tspec.runtime.series.history import Index, SubjectHistory
from tspec.runtime.windows import At
from tspec.values import Datum, show

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


Shown = tuple[Sequence[Datum], ...]
"""Values that findings show: of each member."""


@dataclass(frozen=True, slots=True)
class JointDecision:
    """The generated function that decides a rule from the leaves of its members."""

    declared: RuleRecord
    decide: Callable[
        [Leaves, Pasts, Sequence[Index | None], Sequence[int]],
        tuple[Sequence[Datum], Sequence[Datum], Shown],
    ]
    """(leaves, pasts, indices, places in the group) of each member -> (`when` of each, `expect` of each,

    the values of each that a violated instance shows).
    """
    read: tuple[tuple[str, bool], ...] = ()
    """The texts of these values, and whether the value of each member is shown even if all are
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


@dataclass(frozen=True, slots=True)
class AbsentMembers:
    """Members without the instance: those that lack it, and those of unknown state, each with the
    reason.
    """

    lacking: tuple[int, ...] = ()
    unknown: Mapping[int, str] = field(default_factory=dict)


NOBODY = AbsentMembers()


def decide_group(
    joint: JointDecision,
    entries: Sequence[PendingInstance],
    absent: AbsentMembers | None,
    history: RuleHistory,
) -> InstanceResult:
    """The verdict on one instance, from the entries of the ranks that have it."""
    declared, head, absent = joint.declared, entries[0], absent or NOBODY
    have = {entry.rank: entry for entry in entries}
    members = sorted({*have, *absent.lacking, *absent.unknown})
    leaves = [have[rank].leaves if rank in have else None for rank in members]
    pasts = [history.past(have[rank]) if rank in have else None for rank in members]
    indices = [have[rank].index if rank in have else None for rank in members]
    places = [head.group.index(rank) for rank in members]

    names = named(head.subjects, head.at)

    def result(
        verdict: Verdict, reason: str = "", values: Mapping[str, str] | None = None
    ) -> InstanceResult:
        at = have[min(have)].location if verdict == "violated" else None
        return InstanceResult(
            head.rule, head.group, head.at, names, verdict, reason, head.step, values or {}, at
        )

    whens, expects, shown = joint.decide(leaves, pasts, indices, places)
    if head.no_group:
        return result("idle", head.no_group)
    if declared.across and len(members) == 1:
        return result("idle", ONE_HOLDER)
    here = [place for place, rank in enumerate(members) if rank in have]
    dues = [_due(declared, have[members[place]], whens[place]) for place in here]
    found = {verdict for verdict, _ in dues}
    if {"holds", "idle"} <= found:
        return result("violated", DIFFER)
    for verdict, reason in dues:
        if verdict == "unknown":
            return result(verdict, reason)
    if absent.unknown:
        return result("unknown", next(iter(absent.unknown.values())))
    if found == {"idle"}:
        return result("idle")
    of = {members[place]: place for place in here}
    if absent.lacking:
        reason = of_rank(absent.lacking[0], LACKS)
        return result("violated", reason, _values(joint, shown, of))
    verdict, reason = _all([claimed(expects[place]) for place in here])
    return result(verdict, reason, _values(joint, shown, of) if verdict == "violated" else None)


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
        values = _values(self.joint, self.shown, {entry.rank: place}) if violated else {}
        at = entry.location if violated else None
        names = named(entry.subjects, entry.at)
        return InstanceResult(
            entry.rule, entry.group, entry.at, names, verdict, reason, entry.step, values, at
        )


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


def named(subjects: Subjects, at: At) -> tuple[str, ...]:
    """Names of subjects, the window's own call by its place."""
    if None not in subjects:
        return subjects  # type: ignore[return-value]
    return tuple(f"#{at[1]}" if name is None else name for name in subjects)


def connect_groups(entries: Sequence[PendingInstance], history: RuleHistory) -> None:
    """Extend the groups of a rule over several axes to all ranks that are reached over any of them, from rank to rank.

    In a job a rank knows the groups that it is in itself, and no others.
    """
    grouped = [entry for entry in entries if not entry.no_group]
    history.groups.update((entry.rank, entry.group) for entry in grouped)
    connected: dict[int, Ranks] = {}
    for entry in grouped:
        if entry.rank not in connected:
            reached, waiting = set(entry.group), [*entry.group]
            while waiting:
                new = {*history.groups.get(waiting.pop(), ())} - reached
                reached |= new
                waiting += new
            connected |= dict.fromkeys(reached, tuple(sorted(reached)))
        entry.group = connected[entry.rank]


def split_idle(
    entries: Iterable[PendingInstance],
) -> tuple[list[PendingInstance], list[PendingInstance]]:
    """Windows that are idle for the same choices on every member, one each; everything else by instance."""
    found: dict[tuple[Ranks, At], list[PendingInstance]] = {}
    rest: list[PendingInstance] = []
    for entry in entries:
        if entry.kinds:
            found.setdefault((entry.group, entry.at), []).append(entry)
        else:
            rest.append(entry)
    alike = []
    for (group, _), members in found.items():
        if len(members) == len(group) and all(one.choices == members[0].choices for one in members):
            alike.append(members[0])
        else:
            rest += [one for entry in members for one in entry.instances()]
    return alike, rest


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


# The ranks' windows, and the members that lack an instance


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


def number_calls(
    entries: Sequence[PendingInstance], groups: Mapping[tuple[int, int], Ranks]
) -> None:
    """Number the calls that are windows of a rule across ranks, by group and step."""
    of = {(entry.rank, entry.call, entry.wanted): entry.group for entry in entries}
    for entry in entries:
        count = 0
        for call in entry.earlier:
            other = of.get((entry.rank, call, entry.wanted)) or groups.get((entry.rank, call))
            count += other in (None, entry.group)
        entry.at = (entry.at[0], count)


def instances(
    declared: RuleRecord,
    entries: Sequence[PendingInstance],
    groups: Mapping[tuple[int, int], Ranks],
) -> list[list[PendingInstance]]:
    """Entries of one rule by instance, in order of place; of `once` the first for each choice.

    `groups`: (rank, call) -> the ranks of the call's group.
    """
    if declared.kind == "calls" and declared.across:
        number_calls(entries, groups)
    found: dict[tuple[Ranks, At, Subjects], dict[int, PendingInstance]] = {}
    for entry in sorted(entries, key=lambda entry: entry.call):
        entry.subjects = named(entry.subjects, entry.at)
        found.setdefault((entry.group, entry.at, entry.subjects), {})[entry.rank] = entry
    if declared.once:
        first: dict[tuple[Ranks, Subjects], At] = {}
        for group, at, subjects in found:
            first[group, subjects] = min(at, first.get((group, subjects), at))
        found = {key: each for key, each in found.items() if first[key[0], key[2]] == key[1]}
    return [
        sorted(found[key].values(), key=lambda entry: entry.rank)
        for key in sorted(found, key=lambda key: key[1])
    ]
