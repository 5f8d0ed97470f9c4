"""The joint decisions of a job's ranks from the values that each has read, and the common action:
warn, skip, stop, raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from tspec.builtin.actions import ACTIONS, ENDING, strongest
from tspec.due import history
from tspec.runtime.actions import JobStopped, RuleViolated
from tspec.runtime.edges import SkipCall, StateSource
from tspec.runtime.grouping import connect_groups, instances, split_idle
from tspec.runtime.joint import RuleHistory, decide_alone, decide_group
from tspec.runtime.messages.findings import FindingsWriter
from tspec.runtime.pending import PendingInstance, named
from tspec.runtime.ranks.allgather import AllGather, RankLost, Round
from tspec.runtime.ranks.packets import GatheredPackets, Packet
from tspec.runtime.ranks.sync import SOON, SyncPolicy
from tspec.runtime.results import InstanceResult
from tspec.runtime.samples import NewSubjects
from tspec.runtime.shards import shards
from tspec.runtime.tracking.tracker import WindowTracker


class Coordinator:
    """Decides instances with other ranks and with earlier instances, and takes actions on all ranks alike.

    `before_leaving` is called before an action is taken that ends the job (true), or that the job may catch (false).
    `warn` takes diagnostics. `leaves_out` tells whether a step between two others was left out.
    """

    def __init__(
        self,
        tracker: WindowTracker,
        findings: FindingsWriter,
        *,
        before_leaving: Callable[[bool], None],
        sync: SyncPolicy | None,
        warn: Callable[[str], None],
        leaves_out: Callable[[int, int], bool] | None = None,
    ) -> None:
        self._tracker = tracker
        self.program = program = tracker.program
        self.rules = rules = tracker.rules
        self.findings = findings
        self.packets = GatheredPackets(program)
        self.found: list[InstanceResult] = []
        """The violations since the last check of actions."""
        self.stopped = ""
        """Why a rule ends the job; empty as long as none does."""
        self._before_leaving = before_leaving
        self._warn = warn
        self._new_subjects = NewSubjects(program.kinds)
        self._checks = [history(each.responses, each.draft) for each in program.rules]
        self._held_in: dict[int, int] = {}
        """Rule -> the last finished step in which it held."""
        self._histories: dict[int, RuleHistory] = {}
        self._leaves_out = leaves_out
        self._noted: set[str] = set()
        self._sent_failures: set[tuple[int, int]] = set()
        """(step, rule) of the violations that were sent to the other ranks."""
        responses = [r for one in program.rules if not one.draft for r in one.responses]
        self.skips = any(r.action == "skip" for r in responses)
        self.meets = any(one.across for one in program.rules) or any(
            ACTIONS[r.action].acts or r.conditional for r in responses
        )
        acts = any(ACTIONS[r.action].acts for r in responses)
        self.sync = sync or SyncPolicy(AllGather(), acts, self.note)
        self.allgather = self.sync.allgather
        for rule in rules:
            rule.on_violation = self.found.append

    def note(self, message: str) -> None:
        """Warn of something once that is no fault of tspec's."""
        if message not in self._noted:
            self._noted.add(message)
            self._warn(message)

    # deciding

    def decide_alone(self, number: int) -> None:
        """Decide a rule's pending instances of this rank alone, with their histories."""
        rule, joint = self.rules[number], self.program.joints[number]
        history = self._history(number)
        for entry in rule.entries:
            entry.subjects = named(entry.subjects, entry.at)
        entries = [
            entry
            for entry in rule.entries
            if not rule.declared.once or rule.is_new(entry.group, entry.subjects)
        ]
        rule.entries.clear()
        if not entries:
            return
        decided = decide_alone(joint, entries, history)
        for place, (verdict, reason) in enumerate(decided.verdicts):
            if verdict == "violated" or rule.observer is not None:
                rule.enter(decided.result(place))
            else:
                rule.counts[verdict] += 1
                if reason:
                    rule.reasons[reason] += 1

    def _history(self, number: int) -> RuleHistory:
        known = self._histories.get(number)
        if known is None:
            known = self._histories[number] = RuleHistory(leaves_out=self._leaves_out)
        return known

    def step_opens(self, source: StateSource, at: tuple[int, int]) -> None:
        """Exchange packets at the opening of a step, decide complete instances, and take the
        actions that are due.
        """
        packet = self.packet(source, at, ending=False)
        if not self.has_others():
            self._take({source.rank: [packet]}, source)
            return
        self.take_rounds(self.sync.step_opens(packet, source.staggered), source)

    def waits(self, source: StateSource) -> None:
        """The step is done here, and this rank is about to wait for another."""
        self.take_rounds(self.sync.waits(source.joined), source)

    def looks_up(self, source: StateSource) -> None:
        """Take the rounds that are over by now."""
        if self.has_others():
            self.take_rounds(self.sync.over(), source)

    def run_ends(self, source: StateSource, at: tuple[int, int]) -> None:
        """Exchange packets until all ranks have ended. Actions are reported and no longer taken."""
        packet = self.packet(source, at, ending=True)
        if not self.has_others():
            self._take({source.rank: [packet]}, source, ending=True)
            return
        again = self.packet(source, at, ending=True)
        self.take_rounds(self.sync.run_ends(packet, again), source, ending=True)

    def has_others(self) -> bool:
        return self.meets and self.allgather.ready()

    def take_rounds(
        self, rounds: Iterable[Round], source: StateSource, ending: bool = False
    ) -> None:
        """Take packets of rounds as they come. If a rank is lost, this one continues alone."""
        try:
            for found in rounds:
                self._take(dict(enumerate(found)), source, ending)
                if ending and (self.packets.finished or self.stopped):
                    return
        except RankLost as broken:
            step = source.context.step
            self.note(
                f"rank {source.rank}: another rank did not come to step {step} ({broken});"
                " rules across ranks are unknown from here on"
            )
            self.packets.alone(source.rank)
            self._take({source.rank: self.allgather.pending}, source, ending)

    def _take(
        self, packets_of: Mapping[int, Sequence[Packet]], source: StateSource, ending: bool = False
    ) -> None:
        """Take packets, decide what all ranks have passed, and take the actions that are due, on all ranks alike."""
        for rank, packets in packets_of.items():
            for packet in packets:
                self.packets.take({rank: packet})
                self.sync.at_least(packet.sync)
        for number, entries in self.packets.due():
            self._decide_jointly(number, entries, source.rank)
        for at, failed, held in self.packets.over():
            self._check(at, failed, held, source, ending)

    def packet(self, source: StateSource, closed: tuple[int, int], ending: bool) -> Packet:
        across = [rule for rule in self.rules if rule.declared.across]
        failed = {(result.step, result.rule) for result in self.found}
        packet = Packet(
            at=(source.context.step, source.context.epoch),
            finished=ending,
            entries=[entry for rule in across for entry in rule.entries],
            born=self._new_subjects.new(source, closed),
            windows={r.declared.number: r.windows[:] for r in across if r.windows},
            places={r.declared.number: r.places[:] for r in across if r.places},
            groups={r.declared.number: dict(r.groups) for r in across if r.groups},
            off=[r.declared.number for r in across if not r.on],
            failed=failed - self._sent_failures,
            held=self._held(closed[0]),
            closed=closed,
            sync=self.sync.mode,
            joined=source.joined,
            running=self._tracker.calls.running,
        )
        self._sent_failures |= failed
        for rule in across:
            for kept in (rule.entries, rule.windows, rule.places, rule.groups):
                kept.clear()
        return packet

    def _held(self, closed: int) -> set[tuple[int, int]]:
        """(step, rule) of each rule without `across` that held. Instances decided since the last packet count."""
        found: set[tuple[int, int]] = set()
        counted = self.packets.counted
        for number, rule in enumerate(self.rules):
            count = rule.counts["holds"]
            more = count - counted.get(number, 0)
            if not more or rule.declared.across:
                continue
            counted[number] = count
            if rule.held_before:
                found.update((step, number) for step in rule.held_before)
                more -= sum(rule.held_before.values())
                rule.held_before.clear()
            if more:
                found.add((closed, number))
        return found

    def _decide_jointly(self, number: int, entries: Sequence[PendingInstance], rank: int) -> None:
        """Decide the instances of a rule on every rank alike; one rank tells of each."""
        rule, joint = self.rules[number], self.program.joints[number]
        history = self._history(number)
        groups = self.packets.groups.get(number, {})
        if rule.declared.connected:
            connect_groups(entries, history.groups)
        idle, entries = split_idle(entries)
        for window in idle:
            if rank == window.group[0]:
                rule.count_idle(window)
        for each in instances(joint.declared, entries, groups):
            first = each[0]
            if rule.declared.once and not rule.is_new(first.group, first.subjects):
                continue
            alone = bool(first.no_group)
            lacking = None if alone else self.packets.absent_members(joint.declared, each)
            result = decide_group(joint, each, lacking, history)
            self.packets.note(result)
            if rank == min(entry.rank for entry in each):
                rule.enter(result)

    def decide_rest(
        self, rounds: Iterable[Round], gone: Iterable[int], source: StateSource
    ) -> None:
        """Decide the remaining instances after all ranks have ended, some of them before their run
        did.
        """
        for found in rounds:
            self._take(dict(enumerate(found)), source, ending=True)
        self.packets.lose(gone)
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

        If the run ends anyway, the action is only reported.
        """
        actions = {
            n: self._checks[n].add(n in failed, n in held, at) for n in sorted(failed | held)
        }
        due = {number for number, action in actions.items() if action}
        self.report(due, at[0], source.rank, source)
        self._held_in |= dict.fromkeys(held, at[0])
        self._sent_failures = {one for one in self._sent_failures if one[0] > at[0]}
        if not ending:
            self._do(actions, at, source)
        elif strongest(actions.values()) in ENDING and not self.packets.finished:
            self.stopped = f"stopped in step {at[0]}"

    def report(
        self, due: set[int], step: int, rank: int, source: StateSource | None = None
    ) -> None:
        """Report the violations up to a step, for the rules with an action that is due.

        `source` knows the parameters of which this rank holds shards.
        """
        cut = partial(shards, source)
        waiting = [result for result in self.found if result.step > step]
        for result in self.found:
            if result.rule in due and result.step <= step:
                held = self._held_in.get(result.rule, 0)
                self.findings.add(self.program.rules[result.rule], result, rank, held, cut)
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
            self._before_leaving(False)
            raise RuleViolated(f"step {at[0]}: {where} is violated")
        if action == "rollback":
            self.stopped += ", which asks for a rollback: no good state is kept yet to go back to"
        self.findings.tell(f"rank {source.rank}: {self.stopped}")
        self._before_leaving(True)
        # Other ranks may be ended as soon as this rank ends, or fail without it.
        if self.has_others():
            self.allgather.part(self.packet(source, at, ending=True), SOON)
            for rule in self.rules:
                rule.idle_choices.clear()  # no rank takes the entries of this packet
        raise JobStopped

    def would_be(self, failed: set[int], at: tuple[int, int]) -> dict[int, str]:
        return {number: self._checks[number].would_be(at) for number in sorted(failed)}

    def act_at_once(self, source: StateSource) -> None:
        """Without other ranks, an action that ends the job ends it here."""
        if self.allgather.ready():
            return
        at = (source.context.step, source.context.epoch)
        actions = self.would_be({result.rule for result in self.found}, at)
        if strongest(actions.values()) in ENDING:
            self.report(set(actions), at[0], source.rank, source)
            self._do(actions, at, source)

    def before_update(self, source: StateSource) -> None:
        """All ranks agree whether this update is made."""
        at = (source.context.step, source.context.epoch)
        packet = self.packet(source, at, ending=False)
        if self.has_others():
            self.take_rounds(self.sync.before_update(packet), source)
        else:
            self.packets.take({source.rank: packet})
        for number, entries in self.packets.complete():
            self._decide_jointly(number, entries, source.rank)
        actions = self.would_be(self.packets.failed.get(at[0], set()), at)
        if strongest(actions.values()) in ENDING:
            self.report(set(actions), at[0], source.rank, source)
            self._do(actions, at, source)
        if "skip" in actions.values():
            raise SkipCall
