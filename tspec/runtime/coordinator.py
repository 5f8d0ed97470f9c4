"""What the ranks of a job decide together from what each has read, and do alike: warn, skip, stop, raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tspec.builtin.actions import ACTIONS, ENDING, strongest
from tspec.runtime.actions import CheckHistory, JobStopped, RuleViolated
from tspec.runtime.allgather import AllGather, RankLost, Round
from tspec.runtime.edges import SkipCall, StateSource
from tspec.runtime.findings import FindingsWriter
from tspec.runtime.generated import GeneratedModule
from tspec.runtime.joint import (
    PendingInstance,
    RuleHistory,
    instances,
    named,
    outcome_alone,
    settle,
    settle_one,
    split_idle,
)
from tspec.runtime.packets import GatheredPackets, Packet
from tspec.runtime.results import InstanceResult
from tspec.runtime.samples import NewSubjects, SampleStore
from tspec.runtime.state import RuleState
from tspec.runtime.sync import SyncPolicy
from tspec.runtime.tracker import WindowTracker


class Coordinator(WindowTracker):
    """Hooks whose instances are settled with those of other ranks, and with what was read before."""

    def __init__(
        self,
        program: GeneratedModule,
        findings: FindingsWriter,
        *,
        observer: Callable[[InstanceResult], None] | None,
        pace: SyncPolicy | None,
    ) -> None:
        super().__init__(program, observer=observer)
        self.findings = findings
        self.memory = SampleStore(program.passing, program.firsts)
        self.births = NewSubjects(program.kinds)
        self.gathering = GatheredPackets(program)
        self.checks = [CheckHistory(declared) for declared in program.rules]
        self.books: dict[int, RuleHistory] = {}
        self.found: list[InstanceResult] = []
        """What was violated since the last check of actions."""
        self._noted: set[str] = set()
        self._told: set[tuple[int, int]] = set()
        """(step, rule) of what was violated, as far as the others were told."""
        self.stopped = ""
        responses = [r for one in program.rules if not one.draft for r in one.responses]
        self.skips = any(r.action == "skip" for r in responses)
        self.meets = any(one.across for one in program.rules) or any(
            ACTIONS[r.action].acts or r.conditional for r in responses
        )
        acts = any(ACTIONS[r.action].acts for r in responses)
        self.pace = pace or SyncPolicy(AllGather(), acts, self._tell_person)
        self.exchange = self.pace.exchange
        for rule in self.rules:
            rule.on_violation = self.found.append

    def _tell_person(self, message: str) -> None:
        """Something to know that is no fault of tspec's: once."""
        if message not in self._noted:
            self._noted.add(message)
            self.findings.tell(message)

    # deciding

    def _settle_alone(self, number: int) -> None:
        """Decide what one rank alone has read, with what it read before."""
        rule, joint = self.rules[number], self.program.joints[number]
        book = self.books.setdefault(number, RuleHistory())
        for entry in rule.entries:
            entry.subjects = named(entry.subjects, entry.at)
            if rule.declared.once and not rule.is_new(entry.group, entry.subjects):
                continue
            verdict, reason, shown = settle_one(joint, entry, book)
            if verdict == "violated":
                rule.enter(outcome_alone(joint, entry, verdict, reason, shown))
                continue
            rule.counts[verdict] += 1
            if rule.observer is not None:
                rule.observer(outcome_alone(joint, entry, verdict, reason, shown))
        rule.entries.clear()

    def _step_opens(self, source: StateSource, at: tuple[int, int]) -> None:
        """Put together what all ranks read, and decide and do what can be."""
        packet = self._packet(source, at, ending=False)
        if not self._has_others():
            self._take({source.rank: [packet]}, source)
            return
        staggered = bool(getattr(source, "staggered", False))
        self._taking(self.pace.step_opens(packet, staggered), source)

    def _run_ends(self, source: StateSource, at: tuple[int, int]) -> None:
        """Tell the others, and hear what they tell until all have ended. There is nothing left to stop."""
        packet = self._packet(source, at, ending=True)
        if not self._has_others():
            self._take({source.rank: [packet]}, source, ending=True)
            return
        again = self._packet(source, at, ending=True)
        self._taking(self.pace.run_ends(packet, again), source, ending=True)

    def _has_others(self) -> bool:
        return self.meets and self.exchange.ready()

    def _taking(self, rounds: Iterable[Round], source: StateSource, ending: bool = False) -> None:
        """Take rounds as they come. If a rank is gone, this one goes on alone."""
        try:
            for found in rounds:
                self._take(dict(enumerate(found)), source, ending)
                if ending and (self.gathering.finished or self.stopped):
                    return
        except RankLost as broken:
            step = source.context.step
            self._tell_person(
                f"rank {source.rank}: another rank did not come to step {step} ({broken});"
                " rules across ranks are unknown from here on"
            )
            self.gathering.alone(source.rank)
            self._take({source.rank: self.exchange.pending}, source, ending)

    def _take(
        self, told: Mapping[int, Sequence[Packet]], source: StateSource, ending: bool = False
    ) -> None:
        """Take what ranks told: decide what all have passed, and do what is due, on all ranks alike."""
        for rank, packets in told.items():
            for packet in packets:
                self.gathering.take({rank: packet})
                self.pace.at_least(packet.pace)
        for number, entries in self.gathering.due():
            self._settle_together(number, entries, source.rank)
        for at, failed, held in self.gathering.over():
            self._check(at, failed, held, source, ending)

    def _packet(self, source: StateSource, closed: tuple[int, int], ending: bool) -> Packet:
        across = [rule for rule in self.rules if rule.declared.across]
        failed = {(outcome.step, outcome.rule) for outcome in self.found}
        packet = Packet(
            at=(source.context.step, source.context.epoch),
            finished=ending,
            entries=[entry for rule in across for entry in rule.entries],
            born=self.births.new(source, closed),
            windows={r.declared.number: r.windows[:] for r in across if r.windows},
            places={r.declared.number: r.places[:] for r in across if r.places},
            groups={r.declared.number: dict(r.groups) for r in across if r.groups},
            off=[r.declared.number for r in across if not r.on],
            failed=failed - self._told,
            held=[r.declared.number for r in self.rules if self._held(r)],
            closed=closed,
            pace=self.pace.pace,
            joined=has_joined(source),
        )
        self._told |= failed
        for rule in across:
            for kept in (rule.entries, rule.windows, rule.places, rule.groups):
                kept.clear()
        return packet

    def _held(self, rule: RuleState) -> bool:
        """Whether an instance of this rank alone held since the last packet."""
        number, count = rule.declared.number, rule.counts["holds"]
        before = self.gathering.counted.get(number, 0)
        self.gathering.counted[number] = count
        return count > before and not rule.declared.across

    def _settle_together(self, number: int, entries: Sequence[PendingInstance], rank: int) -> None:
        """Decide the instances of a rule on every rank alike; one rank tells of each."""
        rule, joint = self.rules[number], self.program.joints[number]
        book = self.books.setdefault(number, RuleHistory())
        groups = self.gathering.groups.get(number, {})
        idle, entries = split_idle(entries)
        for window in idle:
            if rank == window.group[0]:
                rule.idle_together(window)
        for each in instances(joint.declared, entries, groups):
            first = each[0]
            if rule.declared.once and not rule.is_new(first.group, first.subjects):
                continue
            alone = bool(first.no_group)
            lacking = None if alone else self.gathering.others(joint.declared, each)
            outcome = settle(joint, each, lacking, book)
            self.gathering.note(outcome)
            if rank == min(entry.rank for entry in each):
                rule.enter(outcome)

    def settle_rest(
        self, rounds: Iterable[Round], gone: Iterable[int], source: StateSource
    ) -> None:
        """All ranks have ended, some of them before their run did: decide what they told."""
        for found in rounds:
            self._take(dict(enumerate(found)), source, ending=True)
        self.gathering.lose(gone)
        self._take({}, source, ending=True)

    # acting

    def _check(
        self,
        at: tuple[int, int],
        failed: set[int],
        held: set[int],
        source: StateSource,
        ending: bool,
    ) -> None:
        """The checks of a step are over: take the strongest action that is due, on all ranks alike.

        Where the run ends anyway, there is nothing left to do but to tell.
        """
        actions = {n: self.checks[n].add(n in failed, n in held, at) for n in sorted(failed | held)}
        due = {number for number, action in actions.items() if action}
        self._report(due, at[0], source.rank)
        self._told = {one for one in self._told if one[0] > at[0]}
        if not ending:
            self._do(actions, at, source)
        elif strongest(actions.values()) in ENDING and not self.gathering.finished:
            self.stopped = f"stopped in step {at[0]}"

    def _report(self, due: set[int], step: int, rank: int) -> None:
        """Tell of what was violated up to a step, where something is due about it."""
        waiting = [outcome for outcome in self.found if outcome.step > step]
        for outcome in self.found:
            if outcome.rule in due and outcome.step <= step:
                self.findings.add(self.program.rules[outcome.rule], outcome, rank)
        self.found[:] = waiting

    def _do(self, actions: dict[int, str], at: tuple[int, int], source: StateSource) -> None:
        action = strongest(actions.values())
        if action not in ENDING:
            return
        number = next(n for n, one in actions.items() if one == action)
        declared = self.program.rules[number]
        where = f"{declared.name} ({declared.file}:{declared.line})"
        self.stopped = f"stopped in step {at[0]} by {where}"
        if action == "raise":
            raise RuleViolated(f"step {at[0]}: {where} is violated")
        if action == "rollback":
            self.stopped += ", which asks for a rollback: no good state is kept yet to go back to"
        self.findings.tell(f"rank {source.rank}: {self.stopped}")
        raise JobStopped

    def _would_be(self, failed: set[int], at: tuple[int, int]) -> dict[int, str]:
        return {number: self.checks[number].would_be(at) for number in sorted(failed)}

    def _act_at_once(self, source: StateSource) -> None:
        """Without other ranks, what ends the job ends it here."""
        if self.exchange.ready():
            return
        at = (source.context.step, source.context.epoch)
        actions = self._would_be({outcome.rule for outcome in self.found}, at)
        if strongest(actions.values()) in ENDING:
            self._report(set(actions), at[0], source.rank)
            self._do(actions, at, source)

    def _before_update(self, source: StateSource) -> None:
        """All ranks agree whether this update is made."""
        at = (source.context.step, source.context.epoch)
        packet = self._packet(source, at, ending=False)
        if self._has_others():
            self._taking(self.pace.before_update(packet), source)
        else:
            self.gathering.take({source.rank: packet})
        for number, entries in self.gathering.complete():
            self._settle_together(number, entries, source.rank)
        actions = self._would_be(self.gathering.failed.get(at[0], set()), at)
        if strongest(actions.values()) in ENDING:
            self._report(set(actions), at[0], source.rank)
            self._do(actions, at, source)
        if "skip" in actions.values():
            raise SkipCall


def has_joined(source: StateSource) -> bool:
    """The rank has no more batches, and waits for those that have."""
    return bool(getattr(source, "joined", False))
