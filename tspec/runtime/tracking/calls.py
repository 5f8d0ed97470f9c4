"""Windows that are calls: where they open and close, and which fields of a call are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tspec.runtime.calls.call import CallRecord, Kept, Pattern, ancestors
from tspec.runtime.columns import Want
from tspec.runtime.edges import StateSource, WatchedCall
from tspec.runtime.generated import Edge
from tspec.runtime.instant import StateInstant
from tspec.runtime.pending import Choices
from tspec.runtime.tracking.rules import RuleTracker, TrackedRules
from tspec.runtime.tracking.spans import SpanTracker
from tspec.runtime.windows import RuleWindow


class CallTracker(RuleTracker):
    """The windows of one rank's rules that are calls."""

    def __init__(self, tracked: TrackedRules, spans: SpanTracker) -> None:
        super().__init__(tracked)
        program = tracked.program
        self._spans = spans
        self.deferred = program.deferred
        """Events whose calls are read only when they return. Requires that every call returns."""
        self._looked_up = {
            event: {name for number, _ in found for name in program.rules[number].counts}
            for event, found in program.calls.items()
        }
        """Event -> the events whose calls are looked up in the windows that its calls are."""
        self._edges: dict[int, Edge] = {}
        """The calls that run."""
        self._resumed = 0
        """The instant from which calls are watched, after steps that were left out."""

    def begin_call(self, call: WatchedCall, source: StateSource) -> Edge:
        """A call that some rule watches begins."""
        watched = CallRecord(call, self._kept(call, source), source)
        edge = Edge(self.instant(source, call.context), watched)
        edge.microbatches = self._spans.microbatches
        self.in_forward(call, edge.now)
        self._edges[call.id] = edge
        if looked_up := self._looked_up.get(call.event):
            self.log.open(looked_up, source.seq)
        if call.event in self.program.logged:
            self.log.add(watched)
        return edge

    def end_call(self, call: WatchedCall, source: StateSource) -> Edge | None:
        """A call returned; None if its begin was not seen."""
        begun = self._edges.pop(call.id, None)
        if begun is None and call.event in self.deferred and call.begin >= self._resumed:
            begun = self._deferred_begin(call, source)
        if begun is None or begun.call is None:
            return None
        begun.call.close(source)
        edge = Edge(self.instant(source, source.context), begun.call)
        self.in_forward(call, edge.now)
        edge.places = begun.places
        edge.begun = begun
        return edge

    def _deferred_begin(self, call: WatchedCall, source: StateSource) -> Edge:
        """The begin of a call that was not read when it began."""
        now = self.instant(source, call.context)
        now.seq = call.begin
        edge = Edge(now, CallRecord(call, self._kept(call, source), source))
        edge.microbatches = self._spans.microbatches
        for pattern in self.deferred[call.event]:
            self.count(edge, pattern)
        return edge

    def _kept(self, call: WatchedCall, source: StateSource) -> Kept:
        """The fields of a call that rules read."""
        program, event = self.program, call.event
        kept = program.kept[event]
        within, lone = program.inside.get(event), program.alone.get(event)
        unopened = program.unopened.get(event)
        if unopened is not None and not self.is_open(unopened.rules):
            kept, within, lone = unopened.kept, unopened.inside, unopened.alone
        if within is not None and any(each.event == event for each in ancestors(call)):
            return within
        return lone if lone is not None and source.world < 2 else kept

    def count(self, e: Edge, pattern: Pattern) -> None:
        """Number a call among the calls of its step that match the pattern with the same values."""
        call = e.call
        assert call is not None and call.call is not None
        if pattern.deferred:
            return
        e.places[pattern.number] = self.places.position(call, pattern, e.now)

    def is_due(
        self, e: Edge, number: int, pattern: Pattern, now: StateInstant | None = None
    ) -> bool:
        """True if a rule is evaluated in the window of this call: the rule is on and due, and the
        call is outermost.

        `now` is the instant of the window's subjects, if it is not the edge's.
        """
        rule, call = self.rules[number], e.call
        if not rule.on or call is None:
            return False
        place = e.places.get(pattern.number)
        if place is not None and place.nested:
            return False
        if place is not None and rule.declared.across:
            rule.windows.append((call.step, place.key))
        if rule.settled and rule.is_settled(now or e.now, () if place is None else place.choice):
            return False
        if rule.declared.every is None or rule.declared.is_due(call.context):
            return True
        if pattern.deferred and rule.declared.across:
            rule.note(self._window(e, number, pattern))
        return False

    def idle(
        self, e: Edge, number: int, pattern: Pattern, choices: Choices, reason: str = ""
    ) -> None:
        """Count the one instance of a window as idle."""
        rule = self.rules[number]
        rule.counts["idle"] += 1
        if reason:
            rule.reasons[reason] += 1
        if rule.observer is not None:
            rule.observe_idle(self._window(e, number, pattern), choices, reason)

    def before(self, e: Edge, number: int, pattern: Pattern) -> RuleWindow:
        """The window of a rule with `before`: the instant before the call."""
        self._look(e, number)
        window = self._window(e, number, pattern)
        self.rules[number].note(window)
        return self._instant(window, e)

    def open_window(self, e: Edge, number: int, pattern: Pattern) -> RuleWindow:
        """Open a window at a call, where some value is read."""
        self._look(e, number)
        window = self._window(e, number, pattern)
        assert e.call is not None
        self.rules[number].open[e.call.id] = window
        return window

    def opened(self, e: Edge, number: int) -> bool:
        """True if a window of the rule was opened with the call."""
        return e.call is not None and e.call.id in self.rules[number].open

    def close_window(self, e: Edge, number: int, pattern: Pattern) -> RuleWindow:
        """The window of a rule that closes with the call."""
        call, begun = e.call, e.begun
        assert call is not None and begun is not None
        rule = self.rules[number]
        self._look(e, number)
        window = rule.open.pop(call.id, None) or self._window(begun, number, pattern)
        rule.note(window)
        if rule.declared.kind == "after":
            window.was = e.now
            window.begin = e.now.seq
            window.index = (call.step, e.now.context.epoch, self._spans.microbatches)
            return self._instant(window, e)
        seq = e.now.seq
        window.close(e.now, seq - 1, (window.begin + 1, seq))
        return window

    def _look(self, e: Edge, number: int) -> None:
        """Sample the batches and messages of the step so far, if a rule reads any."""
        if self.rules[number].declared.passing:
            self._look_passing(e.now.source)

    def _window(self, e: Edge, number: int, pattern: Pattern) -> RuleWindow:
        call = e.call
        assert call is not None
        place = e.places.get(pattern.number)
        window = RuleWindow(e.now, self.log, call)
        window.pattern = pattern
        window.places = e.places
        window.first = e.now.seq + 1
        if place is not None:
            window.at, window.earlier = place.at, place.earlier
        window.index = (call.step, call.context.epoch, e.microbatches)
        return window

    def _instant(self, window: RuleWindow, e: Edge) -> RuleWindow:
        window.first = self._spans.step_opened
        window.close(e.now, e.now.seq - 1, (self._spans.step_opened, e.now.seq))
        return window

    def leave(self, e: Edge) -> None:
        """Every rule on a call's return has been evaluated: drop its tensors."""
        if e.call is not None:
            e.call.leave()

    def read(self, e: Edge, number: int, wants: Sequence[Want]) -> None:
        """Something is read for `x only during …` while a window of the rule is open."""
        rule = self.rules[number]
        if rule.on and rule.open:
            e.now.want(wants)
            for window in rule.open.values():
                window.readings.append(e.now)

    # calls that run

    @property
    def running(self) -> dict[int, int]:
        """Rule across ranks -> the oldest step in which one of its calls began that still runs."""
        found: dict[int, int] = {}
        for edge in self._edges.values():
            if edge.call is None:
                continue
            for number, _ in self.program.calls.get(edge.call.event, ()):
                if self.program.rules[number].across and self.rules[number].on:
                    found[number] = min(edge.call.step, found.get(number, edge.call.step))
        return found

    def begun(self) -> Iterator[tuple[int, int]]:
        """Rules whose windows are calls that run, each with the instant at which the call began."""
        for edge in self._edges.values():
            event = "" if edge.call is None else edge.call.event
            for number, _ in self.program.calls.get(event, ()):
                yield number, edge.now.seq

    def open_running(self, now: StateInstant) -> None:
        """The recording ends here: open the windows of the calls that run, if they are not open."""
        for edge in self._edges.values():
            event = "" if edge.call is None else edge.call.event
            for number, pattern in self.program.calls.get(event, ()):
                if not self.opened(edge, number) and self.is_due(edge, number, pattern, now):
                    self.open_window(edge, number, pattern)

    def forget_running(self) -> None:
        """The calls that run are no windows any more."""
        self._edges.clear()

    def resume(self, source: StateSource) -> None:
        """The step that opens is checked again. A call that began earlier is not."""
        self._resumed = source.seq
