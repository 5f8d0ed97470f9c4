"""Generated hooks in a running job: the sink of one rank, inside of which faults stay."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from tspec.runtime.actions import RuleViolated, Stopped
from tspec.runtime.calls import UPDATES
from tspec.runtime.edges import Call, Context, SkipCall, Source
from tspec.runtime.findings import Findings
from tspec.runtime.instant import Instant
from tspec.runtime.program import Program
from tspec.runtime.together import Together
from tspec.runtime.windows import Window

ACTS = (SkipCall, Stopped, RuleViolated)


class Checker(Together):
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
        path = None if folder is None else folder / f"{os.getpid()}.jsonl"
        super().__init__(program, Findings(path, callback), logging=logging)
        self.folder = folder
        self.rank = 0
        self.faults: list[str] = []
        self._structure_of: tuple[int, dict[tuple[str, str], Any]] = (0, {})
        self.silent = False
        self._looked = -1
        """The step in which new subjects were looked for; until the first, every call is an occasion."""

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
            self._guarded("update", lambda: self._before_update(source))
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

    def _look(self, source: Source) -> None:
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
