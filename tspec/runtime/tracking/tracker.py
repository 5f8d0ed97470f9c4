"""The edges of one rank, which open and close the windows of its rules, and what is kept from step to step."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.runtime.edges import Context, LoopSpan, StateSource, WatchedCall
from tspec.runtime.generated import Edge
from tspec.runtime.results import RuleRecord
from tspec.runtime.state import RuleState
from tspec.runtime.tracking.calls import CallTracker
from tspec.runtime.tracking.passed_over import PassedOverCalls
from tspec.runtime.tracking.rules import TrackedRules
from tspec.runtime.tracking.spans import SpanTracker
from tspec.runtime.windows import RuleWindow


class WindowTracker:
    """The windows of one rank's rules. It hands each edge to the generated hooks, with the tracker of
    their windows: of calls, of spans, or of calls that are passed over.
    """

    def __init__(self, tracked: TrackedRules) -> None:
        self.program = tracked.program
        self.rules = tracked.rules
        self.instants = tracked.instants
        self.log = tracked.log
        self.places = tracked.places
        self.postponed = tracked.postponed
        self.spans = SpanTracker(tracked)
        self.calls = CallTracker(tracked, self.spans)
        self.passed_over = PassedOverCalls(tracked)
        self.last = Context()
        """The context of the latest edge."""
        self.closing = Context()
        """The context of the latest edge before the latest boundary. An epoch, a step and a micro-batch may close at one instant."""
        self._bounded = -1
        """The instant of the latest boundary."""
        self.started = False

    @property
    def at(self) -> tuple[int, int]:
        """Step and epoch of the latest edge."""
        return (self.last.step, self.last.epoch)

    def start(self, source: StateSource) -> None:
        """The run begins; else the first edge is its beginning. A source that knows the past is asked for it."""
        self.started = True
        if source.past is not None:
            self.instants.samples = None
            if not source.past.calls_return:
                self.calls.deferred = {}
        self.spans.step_opened = source.seq
        self.last = source.context
        edge = Edge(self.instants.instant(source, source.context))
        self.spans.open("run", 0, edge, source.context)

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call begins."""
        if not self.started:
            self.start(source)
        hook = self.program.begins.get(call.event)
        if hook is not None and call.event not in self.calls.deferred:
            hook(self.calls, call, source)
        self.last = call.context

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call returned."""
        hook = self.program.ends.get(call.event)
        if hook is not None:
            hook(self.calls, call, source)
        self.last = source.context

    def boundary(self, span: LoopSpan, index: int, source: StateSource) -> None:
        """A span closes and the next one opens."""
        if not self.started:
            self.start(source)
        if span == "microbatch":
            self.spans.microbatches += 1
        if span == "step":
            self.postponed.decide(before=index - 1)
        if source.seq != self._bounded:
            self.closing, self._bounded = self.last, source.seq
        edge = Edge(self.spans.closing_instant(source, self.closing))
        self.spans.open(span, index, edge, source.context)
        if span == "step":
            self.spans.step_opened = source.seq
            self._forget(source)
        self.last = source.context

    def finish(self, source: StateSource) -> None:
        """The run ended normally: all spans close."""
        if not self.started:
            self.start(source)
        self.postponed.decide()
        self.spans.close_all(source, self.last)
        self.cut(source)

    def cut(self, source: StateSource) -> None:
        """The recording ends here: cut off the open windows."""
        self.postponed.decide()
        now = self.instants.instant(source, source.context)
        self.calls.open_running(now)
        for rule in self.rules:
            for key, window in list(rule.open.items()):
                if key == -1 and rule.declared.across:
                    rule.places.append(window.at)
                window.cut_off(now)
                rule.note(window)
                number = rule.declared.number
                self.calls.run(self.program.functions[number], number, window)
            rule.open.clear()
        self.calls.forget_running()

    # steps that are left out

    def pause(self, source: StateSource) -> None:
        """The step that has just opened is left out: cut off what else is open, and forget it."""
        kept: list[tuple[RuleState, RuleWindow]] = []
        for rule in self.rules:
            window = rule.open.get(-1)
            if window is None:
                continue
            if window.begin == source.seq:
                del rule.open[-1]
            elif rule.declared.reads_ends_only:
                kept.append((rule, rule.open.pop(-1)))
        self.cut(source)
        for rule, window in kept:
            rule.open[-1] = window
        self.log.clear()
        self.places.clear()
        self.instants.clear()

    def leave_out(self, source: StateSource) -> None:
        """Another step opens that is left out, or the run ends in one."""
        self.closing, self.last = self.last, source.context

    def resume(self, source: StateSource) -> None:
        """The step that opens is checked again. A call that began earlier is not."""
        self.calls.resume(source)

    # what is kept

    def _forget(self, source: StateSource) -> None:
        """A step begins: drop the values that no open window can read."""
        calls: dict[str, int] = {}
        passing: dict[str, int] = {}
        for declared, begin in self._opened():
            for names, opened in ((declared.counts, calls), (declared.passing, passing)):
                for name in names:
                    opened[name] = min(begin, opened.get(name, begin))
        before, samples = self.spans.step_opened, self.instants.samples
        self.log.forget(before, calls)
        if samples is not None:
            samples.forget(source, before, passing)
        self.places.forget(self.last.step)

    def _opened(self) -> Iterator[tuple[RuleRecord, int]]:
        """Rules with the begin of each of their windows that is open, or will be: the call runs."""
        for rule in self.rules:
            for window in rule.open.values():
                yield rule.declared, window.begin
        for number, begin in self.calls.begun():
            yield self.program.rules[number], begin
