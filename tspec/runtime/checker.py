"""The checker of one rank of a job: a sink that runs generated hooks and contains their faults."""

from __future__ import annotations

import os
import secrets
import traceback
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tspec.builtin.events import FETCHES, UPDATES
from tspec.runtime.actions import ACTS
from tspec.runtime.edges import LoopSpan, StateSource, WatchedCall
from tspec.runtime.failing import BRIEF, report_failure
from tspec.runtime.generated import GeneratedModule
from tspec.runtime.messages.findings import CountsRecord, FindingRecord, FindingsWriter
from tspec.runtime.messages.say import say, warn
from tspec.runtime.ranks.allgather import Round
from tspec.runtime.ranks.collection import RankResults
from tspec.runtime.ranks.coordinator import Coordinator
from tspec.runtime.ranks.delivery import Delivery
from tspec.runtime.ranks.sync import SyncPolicy
from tspec.runtime.results import InstanceResult
from tspec.runtime.samples import SampleStore
from tspec.runtime.selection import OUT, StepSelection, StepState
from tspec.runtime.state import RuleState
from tspec.runtime.tracking.rules import Evaluation, TrackedRules
from tspec.runtime.tracking.tracker import WindowTracker
from tspec.runtime.windows import RuleWindow
from tspec.schedule import schedule_of


@dataclass(frozen=True, slots=True)
class CheckerOptions:
    """The destination of a checker's findings, the observers of its decisions, and the limits for
    waiting on other ranks.
    """

    folder: Path | None = None
    """Takes a file of findings, written as they come, and one of counts."""
    nodes: str = ""
    """Names the shared folder where ranks are on several machines.

    Then the first rank collects the findings of machines without access to it.
    """
    one_summary: bool = False
    """The first rank collects the counts of all ranks and prints one summary."""
    callback: Callable[[FindingRecord], None] | None = None
    """Called with each finding."""
    observer: Callable[[InstanceResult], None] | None = None
    """Notified of every decision; changes none.

    Joint decisions are observed on one of their ranks.
    """
    sync: SyncPolicy | None = None
    check_steps: str = ""
    """The steps in which rules are checked, such as `25/500` (`tspec.schedule`); empty for all."""
    tell: Callable[..., None] = say
    """Takes a line for a person, a finding or one of the summary, and lines of details below it."""
    warn: Callable[[str], None] = warn
    """Takes a diagnostic: something to know that is no finding."""


class Checker:
    """The sink of one rank of a running job.

    It hands every edge to a `WindowTracker`, and the values read there to a `Coordinator`. Faults
    of either are contained here. Raises ValueError if the options name no steps.
    """

    def __init__(self, program: GeneratedModule, options: CheckerOptions | None = None) -> None:
        self.program = program
        self._options = options or CheckerOptions()
        written = self._options.check_steps
        self._schedule = schedule_of(written) if written else None
        self._start_over(self._options.sync)

    def _start_over(self, sync: SyncPolicy | None = None) -> None:
        """A process begins, also by a fork: nothing is known and nothing was found."""
        options = self._options
        path = None if options.folder is None else options.folder / f"{os.getpid()}.jsonl"
        self.findings = FindingsWriter(path, options.callback, options.tell)
        self._selection = selection = StepSelection(self._schedule)
        samples = SampleStore(self.program.passing, self.program.firsts)
        self.tracker = WindowTracker(
            TrackedRules(self.program, self._evaluate, samples=samples, observer=options.observer)
        )
        self.coordinator = Coordinator(
            self.tracker,
            self.findings,
            before_leaving=self._before_leaving,
            sync=sync,
            warn=options.warn,
            leaves_out=None if self._schedule is None else selection.leaves_out,
        )
        delivery = Delivery(secrets.token_hex(8) if options.one_summary else options.nodes)
        self._results = RankResults(self.rules, self.findings, delivery, self._say)
        self.rank = 0
        self.faults: list[str] = []
        self.silent = False
        self._source: StateSource | None = None
        self._groups: dict[str, tuple[int, ...]] = {}
        """Axis -> this rank's group, as last known: a job may end its process groups before it ends."""
        self._version: object = None
        """The version of the source when groups were read."""
        self._stepped = False
        """A step has opened; at the end of the first one the job is what it will be."""
        self._compared = not (self.program.given.sizes or self.program.given.values)
        """The job was compared with the values that the rules were compiled for."""
        self._over = False
        """The run has ended, or a rule has ended it."""
        self._searched_step: int | None = None
        """The step in which new subjects were looked for; None before the first step, in which
        every call looks for them.
        """

    @property
    def rules(self) -> list[RuleState]:
        """The state of each rule, by its number."""
        return self.tracker.rules

    # the sink, with faults kept inside

    def start(self, source: StateSource) -> None:
        """The run begins; else the first edge is its beginning."""
        self.tracker.start(source)

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call begins; before an update the ranks agree whether it is skipped."""
        if self.silent or not self.watches:
            return
        event, tracker = call.event, self.tracker
        if event not in self.program.begins:
            return
        if event in tracker.calls.deferred and call.context.step == self._searched_step:
            tracker.last = call.context
            return
        try:
            tracker.begin(call, source)
            if call.context.step != self._searched_step:
                if self.program.firsts:
                    tracker.instants.look(source)
                self._searched_step = call.context.step or None
        except Exception as fault:
            self._fault(event, fault)
        coordinator = self.coordinator
        if coordinator.skips and event in UPDATES and not _inside_update(call):
            self._guarded("update", lambda: coordinator.before_update(source))
        elif coordinator.found:
            coordinator.act_at_once(source)

    @property
    def passable(self) -> Container[str]:
        """Events some of whose calls no rule reads anything of."""
        return self.program.passes

    def passes_over(self, call: WatchedCall, source: StateSource) -> bool:
        """Count a call that no rule reads.

        False if a rule may read the call, or an action is still due.
        """
        if self.silent or call.context.step != self._searched_step or self.coordinator.found:
            return False
        self.tracker.last = call.context
        return self.program.passes[call.event](self.tracker.passed_over, call, source)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call returned."""
        if self.silent or not self.watches:
            return
        event = call.event
        if event not in self.program.ends:
            return
        try:
            if event in FETCHES:
                self.tracker.instants.look(source)
            self.tracker.end(call, source)
        except Exception as fault:
            self._fault(event, fault)
        if self.coordinator.found:
            self.coordinator.act_at_once(source)

    def boundary(self, span: LoopSpan, index: int, source: StateSource) -> None:
        """A span closes; where it is a step, all ranks meet."""
        if self.silent:
            return
        self.rank, self._source = source.rank, source
        if span == "step" and source.version != self._version:
            self._guarded(span, lambda: self._look_at_groups(source))
        if span == "step" and index > 0:
            if self._stepped:
                self._guarded(span, lambda: self._compare_given(source))
            self._stepped = True
            self._step_opens(index, source)
        state = self._selection.state
        if state in OUT:
            if span == "step":
                self._guarded(span, lambda: self._leave_out(source))
            return
        tracker = self.tracker
        if self.program.passing:
            self._guarded(span, lambda: tracker.instants.look(source))
        self._guarded(span, lambda: tracker.boundary(span, index, source))
        if self.program.firsts or self.program.passing:
            self._guarded(span, lambda: tracker.instants.look(source))
        if span == "step":
            self._guarded(span, self._results.delivery.begin)
            try:
                at = (tracker.closing.step, tracker.closing.epoch)
                self._guarded(span, lambda: self.coordinator.step_opens(source, at))
            finally:
                if self.findings.is_due():
                    self._save()
        elif span == "microbatch" and state is StepState.ENDS:  # the last boundary of this instant
            self._selection.state = StepState.FIRST_LEFT_OUT
            self._guarded(span, lambda: tracker.pause(source))

    def _look_at_groups(self, source: StateSource) -> None:
        self._version = source.version
        self._groups |= source.groups()

    def _compare_given(self, source: StateSource) -> None:
        """Compare the job once with the values that the rules were compiled for."""
        if not self._compared:
            self._compared = True
            for misfit in self.program.given.misfits(source):
                self._say(misfit)

    @property
    def watches(self) -> bool:
        """Rules are checked in the step that is open."""
        return self._selection.state is StepState.CHECKED

    def _step_opens(self, step: int, source: StateSource) -> None:
        """A step opens, which may be left out."""
        before = self._selection.state
        if before is StepState.ENDS:  # the script caught what a rule raised at the boundary before
            self._guarded("step", lambda: self.tracker.pause(source))
        self._selection.opens(step, source.first_step)
        if self.watches and before is not StepState.CHECKED:
            self.tracker.resume(source)

    def _leave_out(self, source: StateSource) -> None:
        """A further step opens that is left out. What the ranks found before is decided in the first of these."""
        tracker = self.tracker
        tracker.leave_out(source)
        try:
            if self._selection.state is StepState.SECOND_LEFT_OUT:
                closing = (tracker.closing.step, tracker.closing.epoch)
                self.coordinator.step_opens(source, closing)
            else:
                self.coordinator.looks_up(source)
        finally:
            if self.findings.is_due():
                self._save()

    def finish(self, source: StateSource) -> None:
        """The run ended normally."""
        if self.silent:
            return
        self._guarded("finish", self._results.delivery.begin)
        if self._stepped:
            self._guarded("finish", lambda: self._compare_given(source))
        if not self.watches:
            self.tracker.leave_out(source)
        tracker, at = self.tracker, self.tracker.at
        if self.program.passing:
            self._guarded("finish", lambda: tracker.instants.look(source))
        self._guarded("finish", lambda: tracker.finish(source))
        self._guarded("finish", lambda: self.coordinator.run_ends(source, at))
        self._over = True

    def ends_early(self, source: StateSource) -> None:
        """A recording ends before the run does: open windows are cut off, and the other ranks get the rest."""
        self.tracker.cut(source)
        self.coordinator.step_opens(source, self.tracker.at)

    def decide_rest(
        self, rounds: Iterable[Round], gone: Iterable[int], source: StateSource
    ) -> None:
        """Decide the remaining instances after all recordings have ended.

        Recordings of ranks in `gone` ended before their run did.
        """
        self.coordinator.decide_rest(rounds, gone, source)

    def waits(self, source: StateSource) -> None:
        """The step is done here, and this rank is about to wait for another."""
        coordinator = self.coordinator
        if not self.silent and self._is_connected:
            self._guarded("wait", lambda: coordinator.waits(source))

    @property
    def _is_connected(self) -> bool:
        """True if some rule needs other ranks, and all of them are there."""
        return self.coordinator.meets and self.coordinator.allgather.connected

    def forked(self, source: StateSource, worker: int | None) -> None:
        """This process is a fork: a rank of its own, or a loader's worker, which checks nothing."""
        if worker is None:
            self._start_over()
        else:
            self.silent = True

    def close(self) -> None:
        """The process ends: write findings and counts to disk."""
        allgather = self.coordinator.allgather
        patience = allgather.timeout if self._over and not allgather.broken else BRIEF
        fails = not self._over
        if not self.silent and fails:
            self._guarded(
                "close",
                lambda: report_failure(self.tracker, self.coordinator, self._source, self.rank),
            )
        self._over = True
        allgather.close()
        if not self.silent:
            self._save()
            if self._options.one_summary:
                self._guarded("close", lambda: self._results.share_counts(patience, fails))
            else:
                self._guarded("close", lambda: self._give_files(patience))
        self.findings.close()

    def summarize(self) -> None:
        """Print the summary of the job, on the first rank.

        Another rank prints its own findings if the first one cannot.
        """
        if not self.silent:
            self._results.summarize(self.rank)

    def hurry(self) -> None:
        """Wait for nothing any more: the process is to end."""
        self._results.delivery.close()

    def _give_files(self, patience: float) -> None:
        if self._results.give_files(self.rank, patience, self.coordinator.note):
            self._save()

    def _save(self) -> None:
        counted: CountsRecord = {
            "rank": self.rank,
            "groups": self._groups,
            "counts": {rule.declared.name: rule.counts for rule in self.rules},
            "reasons": {rule.declared.name: rule.reasons for rule in self.rules if rule.reasons},
            "faults": self.faults,
            "stopped": self.coordinator.stopped,
        }
        self.findings.save(counted)

    def _before_leaving(self, ends: bool) -> None:
        """Write the counts to disk before an action ends the job, or raises an exception that the
        job may catch.
        """
        self._over |= ends
        self._save()

    # faults

    def _guarded(self, where: str, action: Callable[[], Any]) -> None:
        """Run an action of tspec's own. A fault in it is reported once, and the job continues."""
        try:
            action()
        except ACTS:
            raise
        except Exception as fault:
            self._fault(where, fault)

    def _fault(self, where: str, fault: Exception) -> None:
        self._say(f"internal error at {where}: {_described(fault)} (the job goes on)")

    def _evaluate(self, function: Evaluation, number: int, window: RuleWindow) -> None:
        """Evaluate a rule on a window; a fault of its own switches it off."""
        rule = self.rules[number]
        try:
            function(rule, window)
            if not rule.declared.across and rule.entries:
                self.coordinator.decide_alone(number)
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
            self._options.warn(message)


def _inside_update(call: WatchedCall) -> bool:
    parent = call.parent
    while parent is not None:
        if parent.event in UPDATES:
            return True
        parent = parent.parent
    return False


def _described(fault: BaseException) -> str:
    """The exception, and the line where it was raised."""
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(fault).__name__}: {fault}{where}"
