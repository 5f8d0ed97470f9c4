"""Generated hooks in a running job: faults stay inside, ranks meet at every step, and actions are taken."""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from tspec.runtime.actions import Checks, RuleViolated, Stopped, strongest
from tspec.runtime.edges import Call, Context, SkipCall, Source
from tspec.runtime.exchange import Broken, Exchange
from tspec.runtime.findings import Findings
from tspec.runtime.gathering import Gathering, Packet
from tspec.runtime.instant import Instant
from tspec.runtime.job import Hooks
from tspec.runtime.ledger import Outcome
from tspec.runtime.meeting import Book, Entry, evidence, instances, settle, settle_one
from tspec.runtime.memory import Memory
from tspec.runtime.program import Program
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
        self.stopped = ""
        self._structure_of: tuple[int, dict[tuple[str, str], Any]] = (0, {})
        self.silent = False
        self._looked = -1
        """The step in which new subjects were looked for; until the first, every call is an occasion."""
        self.skips = any(r.action == "skip" for one in program.rules for r in one.responses)
        self.meets = any(
            one.across or any(r.action != "warn" or r.conditional for r in one.responses)
            for one in program.rules
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
        self._guarded(span, lambda: super(Checker, self).boundary(span, index, source))
        if self.program.firsts or self.program.passing:
            self._guarded(span, lambda: self._look(source))
        if span == "step":
            self._guarded(span, lambda: self._meet(source, at, ending=False))
            self._check(at, source)

    def finish(self, source: Source) -> None:
        """The run ended normally."""
        if self.silent:
            return
        at = (self._last.step, self._last.epoch)
        self._guarded("finish", lambda: super(Checker, self).finish(source))
        self._guarded("finish", lambda: self._meet(source, at, ending=True))
        self._check(at, source, ending=True)

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

    def _meet(self, source: Source, at: tuple[int, int], ending: bool) -> None:
        """Put together what all ranks read, and decide what can be decided."""
        self._tell(source, at, ending)
        for number, entries in self.gathering.due(None if ending else at):
            self._settle_together(number, entries, source.rank)

    def _tell(self, source: Source, at: tuple[int, int], ending: bool) -> None:
        """Exchange what each rank has to tell; alone, only take it in."""
        mine = self._packet(source, ending)
        packets = {source.rank: mine}
        if self.meets and self.exchange.ready():
            try:
                rows = self.exchange.gather(pickle.dumps(mine, protocol=5))
                packets = dict(enumerate(map(pickle.loads, rows)))
            except Broken as broken:
                self._say(
                    f"rank {source.rank}: another rank did not come to step {at[0]} ({broken});"
                    " rules across ranks are unknown from here on"
                )
                self.gathering.alone(source.rank)
        self.gathering.take(packets)

    def _packet(self, source: Source, ending: bool) -> Packet:
        across = [rule for rule in self.rules if rule.declared.across]
        born = [] if self.memory is None else self.memory.meet(source, self.program.kinds)
        packet = Packet(
            at=(source.context.step, source.context.epoch),
            finished=ending,
            entries=[entry for rule in across for entry in rule.entries],
            born=born,
            windows={r.declared.number: r.windows[:] for r in across if r.windows},
            places={r.declared.number: r.places[:] for r in across if r.places},
            groups={r.declared.number: dict(r.groups) for r in across if r.groups},
            off=[r.declared.number for r in across if not r.on],
            failed={outcome.rule for outcome in self.found},
            held=[n for n, rule in enumerate(self.rules) if self._held(n, rule.counts["holds"])],
        )
        for rule in across:
            for kept in (rule.entries, rule.windows, rule.places, rule.groups):
                kept.clear()
        return packet

    def _held(self, number: int, count: int) -> bool:
        """Whether an instance held since the last packet."""
        before = self.gathering.counted.get(number, 0)
        self.gathering.counted[number] = count
        return count > before

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

    def _check(self, at: tuple[int, int], source: Source, ending: bool = False) -> None:
        """The checks of a step are over: take the strongest action that is due, on all ranks alike.

        Where the run ends anyway, there is nothing left to do but to tell.
        """
        failed, held = self.gathering.over()
        actions = {n: self.checks[n].add(n in failed, n in held, at) for n in sorted(failed | held)}
        self._report({number for number, action in actions.items() if action}, source.rank)
        if not ending:
            self._do(actions, at, source)

    def _report(self, due: set[int], rank: int) -> None:
        for outcome in self.found:
            if outcome.rule in due:
                self.findings.add(self.program.rules[outcome.rule], outcome, rank)
        self.found.clear()

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
            self._report(set(actions), source.rank)
            self._do(actions, at, source)

    def _before_update(self, source: Source) -> None:
        """All ranks agree whether this update is made."""
        at = (source.context.step, source.context.epoch)
        self._guarded("update", lambda: self._tell(source, at, ending=False))
        for number, entries in self.gathering.complete():
            self._settle_together(number, entries, source.rank)
        actions = self._would_be(self.gathering.failed, at)
        if strongest(list(actions.values())) in ENDING:
            self._report(set(actions), source.rank)
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
