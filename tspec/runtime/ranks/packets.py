"""The packets that ranks exchange, and their entries that are pending until they are decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tspec.runtime.absent import AbsentMembers, RankView, absent_members
from tspec.runtime.pending import Choices, PendingInstance, Ranks
from tspec.runtime.results import InstanceResult, RuleRecord
from tspec.runtime.samples import Birth
from tspec.runtime.windows import At
from tspec.values import Datum

if TYPE_CHECKING:
    from tspec.runtime.generated import GeneratedModule

T = TypeVar("T")

LATE = 2
"""Steps, or epochs, for which windows are kept after all ranks have passed them."""


@dataclass(slots=True)
class Packet:
    """The records of one rank since its last packet, given to the others in a round."""

    at: tuple[int, int]
    """Step and epoch that the rank has reached."""
    finished: bool
    entries: list[PendingInstance]
    born: list[Birth]
    """Persistent subjects that are new on this rank."""
    windows: Mapping[int, Sequence[tuple[int, tuple[Datum, ...]]]]
    places: Mapping[int, Sequence[At]]
    groups: Mapping[int, Mapping[tuple[int, int], tuple[int, ...]]]
    off: list[int]
    """Rules that a fault has switched off on this rank."""
    failed: set[tuple[int, int]]
    """(step, rule) of each violation on this rank alone."""
    held: set[tuple[int, int]]
    """(step, rule) of each rule that held on this rank alone at least once in a step."""
    closed: tuple[int, int] = (0, 0)
    """Step and epoch that close here."""
    sync: int = 0
    """The sync policy of this rank: one of `sync.LOCKSTEP`, `STAGGERED` and `INDEPENDENT`."""
    joined: bool = False
    """The rank has no more batches and takes part in the others' collectives (`torch.distributed.algorithms.Join`)."""
    running: Mapping[int, int] = field(default_factory=dict)
    """Rule -> the oldest step in which one of its calls began that has not returned."""


@dataclass(slots=True)
class _RankState:
    born: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    reached: tuple[int, int] = (0, 0)
    finished: bool = False
    joined: bool = False
    gone: bool = False
    """The rank sends no more packets, though its run has not ended."""
    windows: dict[int, list[tuple[int, tuple[Datum, ...]]]] = field(default_factory=dict)
    places: dict[int, list[At]] = field(default_factory=dict)
    off: set[int] = field(default_factory=set)
    running: Mapping[int, int] = field(default_factory=dict)
    choices: dict[tuple[int, Ranks], Choices] = field(default_factory=dict)
    """Rule and group -> the choices of the last window that the rank reported as idle."""

    def view(self) -> RankView:
        """The rank as decisions see it."""
        return RankView(
            self.born,
            self.reached,
            self.finished,
            self.windows,
            self.places,
            self.joined,
            self.running,
        )


class GatheredPackets:
    """The packets of all ranks, sorted by rule, rank and step."""

    def __init__(self, program: GeneratedModule) -> None:
        self.program = program
        self.waiting: dict[int, list[PendingInstance]] = {}
        self.groups: dict[int, dict[tuple[int, int], tuple[int, ...]]] = {}
        self.failed: dict[int, set[int]] = {}
        """Step -> rules whose check fails."""
        self.held: dict[int, set[int]] = {}
        self.counted: dict[int, int] = {}
        """The number of instances of each rule that held when the last packet was made."""
        self._ranks: dict[int, _RankState] = {}
        self._epochs: dict[int, int] = {}

    @property
    def finished(self) -> bool:
        """Every rank's run has ended."""
        return all(known.finished for known in self._ranks.values())

    def take(self, packets: Mapping[int, Packet]) -> None:
        """Add the packets of some ranks."""
        for rank, packet in packets.items():
            known = self._ranks.setdefault(rank, _RankState())
            for kind, name, step, epoch in packet.born:
                known.born[kind, name] = (step, epoch)
            known.reached, known.finished = packet.at, packet.finished
            known.joined, known.running = packet.joined, packet.running
            known.off.update(packet.off)
            for number, windows in packet.windows.items():
                known.windows.setdefault(number, []).extend(windows)
            for number, places in packet.places.items():
                known.places.setdefault(number, []).extend(places)
            for number, groups in packet.groups.items():
                self.groups.setdefault(number, {}).update(groups)
            for entry in packet.entries:
                if entry.kinds:
                    key = (entry.rule, entry.group)
                    entry.choices = entry.choices or known.choices[key]
                    known.choices[key] = entry.choices
                self.waiting.setdefault(entry.rule, []).append(entry)
            step, epoch = packet.closed
            self._epochs[step] = max(epoch, self._epochs.get(step, 0))
            for failing, rule in packet.failed:
                self.failed.setdefault(failing, set()).add(rule)
            for holding, rule in packet.held:
                self.held.setdefault(holding, set()).add(rule)

    def lose(self, ranks: Iterable[int]) -> None:
        """These ranks are gone."""
        for rank in ranks:
            self._ranks.setdefault(rank, _RankState()).gone = True

    def alone(self, rank: int) -> None:
        """The other ranks are gone."""
        self.lose([other for other in self._ranks if other != rank])

    @property
    def _alone(self) -> bool:
        return sum(not known.gone for known in self._ranks.values()) < 2

    def due(self) -> Iterator[tuple[int, list[PendingInstance]]]:
        """Take out the pending instances of each rule that every rank has passed."""
        views = self._living()
        for number in sorted(self.waiting):
            declared = self.program.rules[number]
            passed: list[PendingInstance] = []
            waiting: list[PendingInstance] = []
            for entry in self.waiting[number]:
                is_past = len(views) < 2 or _all_past(views, declared, entry.at[0])
                (passed if is_past else waiting).append(entry)
            self.waiting[number] = waiting
            if passed:
                yield number, passed
        self._forget()

    def complete(self) -> Iterator[tuple[int, list[PendingInstance]]]:
        """Take out the pending instances that every rank of their group has sent."""
        for number in sorted(self.waiting):
            by_key: dict[tuple[Datum, ...], list[PendingInstance]] = {}
            for entry in self.waiting[number]:
                by_key.setdefault((entry.group, entry.at, entry.subjects), []).append(entry)
            whole = [
                entry
                for entries in by_key.values()
                if {one.rank for one in entries} >= set(entries[0].group)
                for entry in entries
            ]
            if whole and self.program.rules[number].kind != "calls":
                kept = {id(entry) for entry in whole}
                self.waiting[number] = [e for e in self.waiting[number] if id(e) not in kept]
                yield number, whole

    def absent_members(
        self, declared: RuleRecord, entries: Sequence[PendingInstance]
    ) -> AbsentMembers:
        """The members that have no such instance. A rank that switched the rule off counts as unknown."""
        views = {rank: known.view() for rank, known in self._ranks.items()}
        found = absent_members(declared, entries, views)
        off = {
            rank: f"rank {rank} has switched it off"
            for rank in (*found.lacking, *found.unknown)
            if rank in self._ranks and declared.number in self._ranks[rank].off
        }
        lacking = tuple(rank for rank in found.lacking if rank not in off)
        return AbsentMembers(lacking, {**found.unknown, **off}) if off else found

    def note(self, result: InstanceResult) -> None:
        """An instance was decided by all."""
        if result.verdict == "violated":
            self.failed.setdefault(result.step, set()).add(result.rule)
        elif result.verdict == "holds":
            self.held.setdefault(result.step, set()).add(result.rule)

    def over(self) -> Iterator[tuple[tuple[int, int], set[int], set[int]]]:
        """For each step that is over on all ranks: (step, epoch), the rules that failed, the rules that held."""
        running = [
            known.reached[0]
            for known in self._ranks.values()
            if not (known.finished or known.joined or known.gone)
        ]
        for step in sorted(self.failed.keys() | self.held.keys()):
            if self._alone or not running or step < min(running):
                failed, held = self.failed.pop(step, set()), self.held.pop(step, set())
                yield (step, self._epochs.get(step, 0)), failed, held

    def _living(self) -> list[RankView]:
        return [known.view() for known in self._ranks.values() if not known.gone]

    def _forget(self) -> None:
        """Drop what no later decision reads. A rank that is behind may still send instances of older steps."""
        reached = [known.reached[0] - LATE for known in self._ranks.values() if not known.gone]
        oldest = min([*reached, *self.failed, *self.held], default=0)
        self._epochs = {step: epoch for step, epoch in self._epochs.items() if step >= oldest}
        views, rules = self._living(), self.program.rules
        for known in self._ranks.values():
            for number, windows in known.windows.items():
                _drop_past(windows, views, rules[number])
            for number, places in known.places.items():
                _drop_past(places, views, rules[number])


def _drop_past(held: list[tuple[int, T]], views: Sequence[RankView], declared: RuleRecord) -> None:
    """Drop from the front what lies `LATE` units behind all ranks. Each begins with its step, epoch or run, ascending."""
    past = 0
    for one in held:
        if not _all_past(views, declared, one[0] + LATE):
            break
        past += 1
    del held[:past]


def _all_past(views: Sequence[RankView], declared: RuleRecord, unit: int) -> bool:
    """True if none of these ranks sends anything more about a step, epoch or run."""
    for view in views:  # noqa: SIM110 (at each step, and faster than a generator)
        if not view.is_past(declared, unit):
            return False
    return True
