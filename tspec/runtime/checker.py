"""Generated hooks in a running job: faults stay inside, ranks meet at every step, and actions are taken."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from tspec.runtime.actions import Checks, RuleViolated, Stopped, strongest
from tspec.runtime.edges import Call, Context, SkipCall, Source
from tspec.runtime.exchange import Broken, Exchange, Round
from tspec.runtime.findings import Findings
from tspec.runtime.gathering import Gathering, Packet
from tspec.runtime.instant import Instant
from tspec.runtime.job import Hooks
from tspec.runtime.ledger import Outcome
from tspec.runtime.meeting import Book, Entry, evidence, instances, settle, settle_one
from tspec.runtime.memory import Memory
from tspec.runtime.pace import Pace
from tspec.runtime.program import Program
from tspec.runtime.state import RuleState
from tspec.runtime.windows import Window

UPDATES = ("optimizer.step", "update")
"""The calls that `skip` leaves out."""
ENDING = ("stop", "rollback", "raise")
ACTS = (SkipCall, Stopped, RuleViolated)


class Checker(Hooks):
    """The sink of one rank of a running job.

    `folder` takes a file of findings, written as they come, and one of counts at the end.
    """

    def __init__(
        self,
        program: Program,
        *,
        folder: Path | None = None,
        callback: Callable[[dict[str, Any]], None] | None = None,
        logging: bool = False,
    ) -> None:
        super().__init__(program, logging=logging)
        self.folder = folder
        self.rank = 0
        path = None if folder is None else folder / f"{os.getpid()}.jsonl"
        self.findings = Findings(path, callback)
        self.memory = Memory(program.passing, program.firsts)
        self.exchange = Exchange()
        self.gathering = Gathering(program)
        self.checks = [Checks(declared) for declared in program.rules]
        self.books: dict[int, Book] = {}
        self.done: set[tuple[int, tuple[str | None, ...]]] = set()
        self.found: list[Outcome] = []
        """What was violated since the last check of actions."""
        self.faults: list[str] = []
        self._noted: set[str] = set()
        self._told: set[tuple[int, int]] = set()
        """(step, rule) of what was violated, as far as the others were told."""
        self.stopped = ""
        self._structure_of: tuple[int, dict[tuple[str, str], Any]] = (0, {})
        self.silent = False
        self._looked = -1
        """The step in which new subjects were looked for; until the first, every call is an occasion."""
        responses = [r for one in program.rules if not one.draft for r in one.responses]
        self.skips = any(r.action == "skip" for r in responses)
        self.meets = any(one.across for one in program.rules) or any(
            r.action != "warn" or r.conditional for r in responses
        )
        self.pace = Pace(
            self.exchange, any(r.action != "warn" for r in responses), self._tell_person
        )
        for rule in self.rules:
            rule.on_violation = self.found.append

    def instant(self, source: Source, context: Context) -> Instant:
        """This instant; how models are built is read once in a step, and anew as long as no step has begun."""
        now = Instant(source, context, self.memory)
        if context.step != self._structure_of[0]:
            self._structure_of = (context.step, {})
        if context.step > 0:
            now.structure = self._structure_of[1]
        return now

    # the sink, with faults kept inside

    def begin(self, call: Call, source: Source) -> None:
        """A watched call begins; before an update the ranks agree whether it is skipped."""
        if self.silent:
            return
        event = call.event
        hook = self.program.begins.get(event)
        if hook is None:
            return
        if event in self.late and call.context.step == self._looked:
            self._last = call.context
            return
        try:
            if not self._started:
                self.start(source)
            if event not in self.late:
                hook(self, call, source)
            self._last = call.context
            if call.context.step != self._looked:
                if self.program.firsts:
                    self._look(source)
                self._looked = call.context.step or -1
        except Exception as fault:
            self._fault(event, fault)
        if self.skips and event in UPDATES and not _inside_update(call):
            self._before_update(source)
        elif self.found:
            self._act_at_once(source)

    def end(self, call: Call, source: Source) -> None:
        """A watched call returned."""
        if self.silent:
            return
        event = call.event
        hook = self.program.ends.get(event)
        if hook is None:
            return
        try:
            if event == "fetch":
                self._look(source)
            hook(self, call, source)
            self._last = source.context
        except Exception as fault:
            self._fault(event, fault)
        if self.found:
            self._act_at_once(source)

    def boundary(
        self, span: Literal["step", "microbatch", "epoch"], index: int, source: Source
    ) -> None:
        """A span closes; where it is a step, all ranks meet."""
        if self.silent:
            return
        self.rank = source.rank
        at = (self._last.step, self._last.epoch)
        if self.program.passing:
            self._guarded(span, lambda: self._look(source))
        self._guarded(span, lambda: super(Checker, self).boundary(span, index, source))
        if self.program.firsts or self.program.passing:
            self._guarded(span, lambda: self._look(source))
        if span == "step":
            self._guarded(span, lambda: self._step_opens(source, at))

    def finish(self, source: Source) -> None:
        """The run ended normally."""
        if self.silent:
            return
        at = (self._last.step, self._last.epoch)
        if self.program.passing:
            self._guarded("finish", lambda: self._look(source))
        self._guarded("finish", lambda: super(Checker, self).finish(source))
        self._guarded("finish", lambda: self._run_ends(source, at))

    def waits(self, source: Source) -> None:
        """The step is done here, and this rank is about to wait for a message of another."""
        if not self.silent and self.meets and self.exchange.busy:
            self._guarded("receive", lambda: self._taking(self.pace.waits(), source))

    def forked(self, source: Source, worker: int | None) -> None:
        """This process is a fork: a rank of its own, or a loader's worker, which checks nothing."""
        if worker is not None:
            self.silent = True
            return
        fork = Checker(self.program, folder=self.folder, callback=self.findings.callback)
        self.__dict__.update(fork.__dict__)
        for rule in self.rules:
            rule.on_violation = self.found.append

    def close(self) -> None:
        """The process ends: what was counted is written, beside the findings."""
        path = self.findings.path
        self.findings.close()
        self.exchange.close()
        if path is None or self.silent:
            return
        results = {
            "rank": self.rank,
            "counts": {rule.declared.name: rule.counts for rule in self.rules},
            "faults": self.faults,
            "stopped": self.stopped,
        }
        path.with_suffix(".counts.json").write_text(json.dumps(results), encoding="utf-8")

    # faults

    def _guarded(self, where: str, action: Callable[[], Any]) -> None:
        """A fault outside of any rule's own function: said once; what it concerns is not looked at again."""
        try:
            action()
        except ACTS:
            raise
        except Exception as fault:
            self._fault(where, fault)

    def _fault(self, where: str, fault: Exception) -> None:
        self._say(f"internal error at {where}: {_described(fault)} (the job goes on)")

    def run(self, function: Callable[..., None], number: int, window: Window) -> None:
        """Look at a rule in a window; a fault of its own switches it off."""
        rule = self.rules[number]
        try:
            function(rule, window)
            if not self.program.rules[number].across and rule.entries:
                self._settle_alone(number)
        except Exception as fault:
            rule.on = False
            rule.entries.clear()
            declared = rule.declared
            self._say(
                f"rule {declared.name} ({declared.file}:{declared.line}) is switched off,"
                f" its hook failed: {_described(fault)} (the job goes on)"
            )

    def _tell_person(self, message: str) -> None:
        """Something to know that is no fault of tspec's: once."""
        if message not in self._noted:
            self._noted.add(message)
            sys.stderr.write(f"tspec: {message}\n")

    def _say(self, message: str) -> None:
        if message not in self.faults:
            self.faults.append(message)
            sys.stderr.write(f"tspec: {message}\n")

    # deciding

    def _look(self, source: Source) -> None:
        if self.memory is not None:
            self.memory.look(self.instant(source, source.context))

    def _settle_alone(self, number: int) -> None:
        """Decide what one rank alone has read, with what it read before."""
        rule, joint = self.rules[number], self.program.joints[number]
        book = self.books.setdefault(number, Book())
        for entry in rule.entries:
            entry.subjects = tuple(
                f"#{entry.at[1]}" if name is None else name for name in entry.subjects
            )
            if not self._is_new(number, (entry,)):
                continue
            if rule.logging:
                rule.enter(settle(joint, (entry,), None, book))
            elif not settle_one(joint, entry, book, rule.counts):
                rule.counts["violated"] -= 1
                rule.enter(evidence(joint, entry))
        rule.entries.clear()

    def _is_new(self, number: int, entries: Sequence[Entry]) -> bool:
        """Of `once`, only the first window counts."""
        if not self.program.rules[number].once:
            return True
        entry = entries[0]
        if not self.program.rules[number].across:
            done = self.rules[number].done
            new = entry.subjects not in done
            done.add(entry.subjects)
            return new
        key = (number, (str(entry.group), *entry.subjects))
        new = key not in self.done
        self.done.add(key)
        return new

    def _step_opens(self, source: Source, at: tuple[int, int]) -> None:
        """Put together what all ranks read, and decide and do what can be."""
        packet = self._packet(source, at, ending=False)
        if not self._has_others():
            self._take({source.rank: [packet]}, source)
            return
        staggered = bool(getattr(source, "staggered", False))
        self._taking(self.pace.step_opens(packet, staggered), source)

    def _run_ends(self, source: Source, at: tuple[int, int]) -> None:
        """Tell the others, and hear what they tell until all have ended. There is nothing left to stop."""
        packet = self._packet(source, at, ending=True)
        if not self._has_others():
            self._take({source.rank: [packet]}, source, ending=True)
            return
        again = self._packet(source, at, ending=True)
        self._taking(self.pace.run_ends(packet, again), source, ending=True)

    def _has_others(self) -> bool:
        return self.meets and self.exchange.ready()

    def _taking(self, rounds: Iterable[Round], source: Source, ending: bool = False) -> None:
        """Take rounds as they come. If a rank is gone, this one goes on alone."""
        try:
            for found in rounds:
                self._take(dict(enumerate(found)), source, ending)
                if ending and (self.gathering.finished or self.stopped):
                    return
        except Broken as broken:
            step = source.context.step
            self._tell_person(
                f"rank {source.rank}: another rank did not come to step {step} ({broken});"
                " rules across ranks are unknown from here on"
            )
            self.gathering.alone(source.rank)
            self._take({source.rank: self.exchange.pending}, source, ending)

    def _take(
        self, told: Mapping[int, Sequence[Packet]], source: Source, ending: bool = False
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

    def _packet(self, source: Source, closed: tuple[int, int], ending: bool) -> Packet:
        across = [rule for rule in self.rules if rule.declared.across]
        born = [] if self.memory is None else self.memory.meet(source, self.program.kinds)
        failed = {(outcome.step, outcome.rule) for outcome in self.found}
        packet = Packet(
            at=(source.context.step, source.context.epoch),
            finished=ending,
            entries=[entry for rule in across for entry in rule.entries],
            born=born,
            windows={r.declared.number: r.windows[:] for r in across if r.windows},
            places={r.declared.number: r.places[:] for r in across if r.places},
            groups={r.declared.number: dict(r.groups) for r in across if r.groups},
            off=[r.declared.number for r in across if not r.on],
            failed=failed - self._told,
            held=[r.declared.number for r in self.rules if self._held(r)],
            closed=closed,
            pace=self.pace.pace,
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

    def _settle_together(self, number: int, entries: Sequence[Entry], rank: int) -> None:
        """Decide the instances of a rule on every rank alike; one rank tells of each."""
        joint, book = self.program.joints[number], self.books.setdefault(number, Book())
        groups = self.gathering.groups.get(number, {})
        for each in instances(joint.declared, entries, groups):
            if not self._is_new(number, each):
                continue
            alone = bool(each[0].no_group)
            lacking = None if alone else self.gathering.others(joint.declared, each)
            outcome = settle(joint, each, lacking, book)
            self.gathering.note(outcome)
            if rank == min(entry.rank for entry in each):
                self.rules[number].enter(outcome)

    # acting

    def _check(
        self, at: tuple[int, int], failed: set[int], held: set[int], source: Source, ending: bool
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
        elif strongest(list(actions.values())) in ENDING and not self.gathering.finished:
            self.stopped = f"stopped in step {at[0]}"

    def _report(self, due: set[int], step: int, rank: int) -> None:
        """Tell of what was violated up to a step, where something is due about it."""
        waiting = [outcome for outcome in self.found if outcome.step > step]
        for outcome in self.found:
            if outcome.rule in due and outcome.step <= step:
                self.findings.add(self.program.rules[outcome.rule], outcome, rank)
        self.found[:] = waiting

    def _do(self, actions: dict[int, str], at: tuple[int, int], source: Source) -> None:
        action = strongest(list(actions.values()))
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
        sys.stderr.write(f"tspec: rank {source.rank}: {self.stopped}\n")
        raise Stopped

    def _would_be(self, failed: set[int], at: tuple[int, int]) -> dict[int, str]:
        return {number: self.checks[number].would_be(at) for number in sorted(failed)}

    def _act_at_once(self, source: Source) -> None:
        """Without other ranks, what ends the job ends it here."""
        if self.exchange.ready():
            return
        at = (source.context.step, source.context.epoch)
        actions = self._would_be({outcome.rule for outcome in self.found}, at)
        if strongest(list(actions.values())) in ENDING:
            self._report(set(actions), at[0], source.rank)
            self._do(actions, at, source)

    def _before_update(self, source: Source) -> None:
        """All ranks agree whether this update is made."""
        at = (source.context.step, source.context.epoch)
        packet = self._packet(source, at, ending=False)
        if self._has_others():
            self._guarded("update", lambda: self._taking(self.pace.before_update(packet), source))
        else:
            self.gathering.take({source.rank: packet})
        for number, entries in self.gathering.complete():
            self._settle_together(number, entries, source.rank)
        actions = self._would_be(self.gathering.failed.get(at[0], set()), at)
        if strongest(list(actions.values())) in ENDING:
            self._report(set(actions), at[0], source.rank)
            self._do(actions, at, source)
        if "skip" in actions.values():
            raise SkipCall


def _inside_update(call: Call) -> bool:
    parent = call.parent
    while parent is not None:
        if parent.event in UPDATES:
            return True
        parent = parent.parent
    return False


def _described(fault: BaseException) -> str:
    """What went wrong, and in which line."""
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(fault).__name__}: {fault}{where}"
