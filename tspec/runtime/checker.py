"""Generated hooks in a running job: the sink of one rank, inside of which faults stay."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from tspec.builtin.events import FETCHES, UPDATES
from tspec.runtime.actions import JobStopped, RuleViolated
from tspec.runtime.allgather import Round
from tspec.runtime.coordinator import Coordinator, has_joined
from tspec.runtime.delivery import Delivery
from tspec.runtime.edges import Context, SkipCall, StateSource, WatchedCall
from tspec.runtime.findings import FindingsWriter
from tspec.runtime.generated import GeneratedModule
from tspec.runtime.instant import StateInstant, Structure
from tspec.runtime.results import InstanceResult
from tspec.runtime.summary import summary
from tspec.runtime.sync import SOON, SyncPolicy
from tspec.runtime.windows import RuleWindow

ACTS = (SkipCall, JobStopped, RuleViolated)
BRIEF = 5.0
"""Seconds for which a rank that fails waits for what was found on other machines."""
LATE = 1.0
"""Seconds for which a rank that fails waits for what the others told before."""


class Checker(Coordinator):
    """The sink of one rank of a running job.

    `folder` takes a file of findings, written as they come, and one of counts. `nodes` names the folder where
    ranks are on several machines: then the first rank takes what was found on those that do not share it.
    `observer` is notified of every decision and changes none; of what ranks decide together, on one of them.
    `pace` says how ranks meet.
    """

    def __init__(
        self,
        program: GeneratedModule,
        *,
        folder: Path | None = None,
        nodes: str = "",
        callback: Callable[[dict[str, Any]], None] | None = None,
        observer: Callable[[InstanceResult], None] | None = None,
        pace: SyncPolicy | None = None,
    ) -> None:
        path = None if folder is None else folder / f"{os.getpid()}.jsonl"
        super().__init__(program, FindingsWriter(path, callback), observer=observer, pace=pace)
        self.folder = folder
        self.delivery = Delivery(nodes)
        self.rank = 0
        self.faults: list[str] = []
        self._structure_of: tuple[int, Structure] = (0, {})
        self.silent = False
        self._source: StateSource | None = None
        self._over = False
        """The run has ended, or a rule has ended it."""
        self._looked = -1
        """The step in which new subjects were looked for; until the first, every call is an occasion."""

    def instant(self, source: StateSource, context: Context) -> StateInstant:
        """This instant; how models are built is read once in a step, and anew as long as no step has begun."""
        now = StateInstant(source, context, self.memory)
        if context.step != self._structure_of[0]:
            self._structure_of = (context.step, {})
        if context.step > 0:
            now.structure = self._structure_of[1]
        return now

    # the sink, with faults kept inside

    def start(self, source: StateSource) -> None:
        """The run begins; a source that remembers is asked for the past itself."""
        if getattr(source, "remembers", False):
            self.memory = None
        super().start(source)

    def begin(self, call: WatchedCall, source: StateSource) -> None:
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
            self._guarded("update", lambda: self._before_update(source))
        elif self.found:
            self._act_at_once(source)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call returned."""
        if self.silent:
            return
        event = call.event
        hook = self.program.ends.get(event)
        if hook is None:
            return
        try:
            if event in FETCHES:
                self._look(source)
            hook(self, call, source)
            self._last = source.context
        except Exception as fault:
            self._fault(event, fault)
        if self.found:
            self._act_at_once(source)

    def boundary(
        self, span: Literal["step", "microbatch", "epoch"], index: int, source: StateSource
    ) -> None:
        """A span closes; where it is a step, all ranks meet."""
        if self.silent:
            return
        self.rank, self._source = source.rank, source
        at = (self._last.step, self._last.epoch)
        if self.program.passing:
            self._guarded(span, lambda: self._look(source))
        self._guarded(span, lambda: super(Checker, self).boundary(span, index, source))
        if self.program.firsts or self.program.passing:
            self._guarded(span, lambda: self._look(source))
        if span == "step":
            self._guarded(span, self.delivery.begin)
            try:
                self._guarded(span, lambda: self._step_opens(source, at))
            finally:
                if self.findings.is_due():
                    self._save()

    def finish(self, source: StateSource) -> None:
        """The run ended normally."""
        if self.silent:
            return
        self._guarded("finish", self.delivery.begin)
        at = (self._last.step, self._last.epoch)
        if self.program.passing:
            self._guarded("finish", lambda: self._look(source))
        self._guarded("finish", lambda: super(Checker, self).finish(source))
        self._guarded("finish", lambda: self._run_ends(source, at))
        self._over = True

    def ends_early(self, source: StateSource) -> None:
        """A recording ends before the run does: what is open is cut off, and the others are told the rest."""
        self.cut(source)
        self._step_opens(source, (self._last.step, self._last.epoch))

    def waits(self, source: StateSource) -> None:
        """The step is done here, and this rank is about to wait for another."""
        if not self.silent and self.meets and self.exchange.connected:
            self._guarded("wait", lambda: self._taking(self.pace.waits(has_joined(source)), source))

    def forked(self, source: StateSource, worker: int | None) -> None:
        """This process is a fork: a rank of its own, or a loader's worker, which checks nothing."""
        if worker is not None:
            self.silent = True
            return
        fork = Checker(
            self.program,
            folder=self.folder,
            nodes=self.delivery.place,
            callback=self.findings.callback,
            observer=self.observer,
        )
        self.__dict__.update(fork.__dict__)
        for rule in self.rules:
            rule.on_violation = self.found.append

    def close(self) -> None:
        """The process ends: what was found and counted is on disk then."""
        patience = self.exchange.timeout if self._over and not self.exchange.broken else BRIEF
        if not self.silent and not self._over:
            self._guarded("close", self._fails)
        self._over = True
        self.exchange.close()
        if not self.silent:
            self._save()
            self._guarded("close", lambda: self._deliver(patience))
        self.findings.close()

    def summarize(self) -> None:
        """Say what this process found. Of several ranks, those that found nothing leave it to the first to say so."""
        if self.silent or (self.rank and not self.findings.counts):
            return
        told = [(rule.declared, rule.counts) for rule in self.rules]
        rank = f"rank {self.rank}: " if self.meets and self.exchange.connected else ""
        for line in summary(told, self.findings.counts):
            self.findings.tell(f"{rank}{line}")

    def hurry(self) -> None:
        """Wait for nothing any more: the process is to end."""
        self.delivery.close()

    def _deliver(self, patience: float) -> None:
        """Give what was found here to the first rank, or take what was found on other machines."""
        path, counted = self.findings.path, self.findings.counted
        if path is None or counted is None:
            return
        if not self.delivery.is_receiver:
            why = self.delivery.give([path, counted])
            if why:
                self._tell_person(
                    f"rank {self.rank}: what it found could not be given to rank 0 ({why}): it is in {path}"
                )
            return
        lacking = []
        for rank, texts in self.delivery.take(patience):
            if texts is None:
                lacking.append(str(rank))
                continue
            other = path.with_name(f"{path.stem}-rank-{rank}.jsonl")
            other.with_suffix(".counts.json").write_text(texts[1] or "{}", encoding="utf-8")
            other.write_text(texts[0], encoding="utf-8")
        if lacking:
            self._say(
                f"what was found on rank{'s' * (len(lacking) > 1)} {', '.join(lacking)} did not come from"
                " another machine; it is in the cache folder there"
            )
            self._save()

    def _save(self) -> None:
        counted = {
            "rank": self.rank,
            "counts": {rule.declared.name: rule.counts for rule in self.rules},
            "faults": self.faults,
            "stopped": self.stopped,
        }
        self.findings.save(counted)

    def _fails(self) -> None:
        """The job ends within a step. Perhaps since another rank was stopped, of which this one has not heard yet."""
        if self._source is not None and self.exchange.connected:
            with suppress(*ACTS):
                self._taking(self._late_rounds(), self._source)
        at = (self._last.step, self._last.epoch)
        actions = self._would_be({outcome.rule for outcome in self.found}, at)
        self._report({number for number, action in actions.items() if action}, at[0], self.rank)

    def _late_rounds(self) -> Iterator[Round]:
        while True:
            found = self.exchange.collect(LATE if self.exchange.busy else 0.0)
            if found is None:
                return
            yield found

    def _do(self, actions: dict[int, str], at: tuple[int, int], source: StateSource) -> None:
        try:
            super()._do(actions, at, source)
        except RuleViolated:  # the job may catch it
            self._save()
            raise
        except JobStopped:
            # Others may be ended as soon as this rank is, or fail since it is gone.
            self._over = True
            self._save()
            if self._has_others():
                self.exchange.part(self._packet(source, at, ending=True), SOON)
            raise

    def _look(self, source: StateSource) -> None:
        if self.memory is not None:
            self.memory.look(self.instant(source, source.context))

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

    def run(self, function: Callable[..., None], number: int, window: RuleWindow) -> None:
        """Look at a rule in a window; a fault of its own switches it off."""
        rule = self.rules[number]
        try:
            function(rule, window)
            if not rule.declared.across and rule.entries:
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
            self.findings.tell(message)


def _inside_update(call: WatchedCall) -> bool:
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
