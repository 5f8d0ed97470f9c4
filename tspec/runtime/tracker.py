"""Windows of rules: where they open and close, and with which window each rule's function runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from tspec.runtime.call_places import CallPlaces, microbatch_place
from tspec.runtime.calls.call import CallRecord, Kept, Pattern, ancestors
from tspec.runtime.calls.log import CallLog
from tspec.runtime.edges import Context, StateSource, WatchedCall
from tspec.runtime.generated import Edge, GeneratedModule, OpenSpan
from tspec.runtime.instant import StateInstant, Structure
from tspec.runtime.joint import Choices
from tspec.runtime.postponed import PostponedRules
from tspec.runtime.results import InstanceResult, RuleRecord
from tspec.runtime.samples import SampleStore
from tspec.runtime.state import RuleState
from tspec.runtime.windows import RuleWindow

Evaluation = Callable[[RuleState, RuleWindow], None]
"""The generated function of a rule."""


class WindowTracker:
    """The windows of one rank's rules. Generated hooks open and close them, and run each rule's
    function on them.

    `evaluate` runs the function of a rule on a window. `samples` keeps history for a source that
    does not.
    """

    def __init__(
        self,
        program: GeneratedModule,
        evaluate: Callable[[Evaluation, int, RuleWindow], None],
        *,
        samples: SampleStore | None,
        observer: Callable[[InstanceResult], None] | None = None,
    ) -> None:
        self.program = program
        self.deferred = program.deferred
        """Events whose calls are read only when they return. Requires that every call returns."""
        self.rules = [RuleState(declared, observer=observer) for declared in program.rules]
        self.samples = samples
        self._evaluate = evaluate
        self.log = CallLog(program.retention)
        self._looked_up = {
            event: {name for number, _ in found for name in program.rules[number].counts}
            for event, found in program.calls.items()
        }
        """Event -> the events whose calls are looked up in the windows that its calls are."""
        self.spans: dict[str, OpenSpan] = {}
        self._edges: dict[int, Edge] = {}
        """The calls that run."""
        self._places = CallPlaces()
        self._step_opened = 0
        self._microbatches = 0
        self.last = Context()
        """The context of the latest edge."""
        self.closing = Context()
        """The context of the latest edge before the latest boundary. An epoch, a step and a micro-batch may close at one instant."""
        self._bounded = -1
        """The instant of the latest boundary."""
        self._resumed = 0
        """The instant from which calls are watched, after steps that were left out."""
        self.started = False
        self._structure_of: tuple[int, Structure] = (0, {})
        """A step, and the structure of models that was read in it."""
        self._resting: dict[str, tuple[Context, bool]] = {}
        """Event -> a context, and whether no rule looks at the event's calls in it."""
        self._pass: tuple[int, StateInstant] | None = None
        """The outermost forward call that runs, and an instant in it."""
        self.postponed = PostponedRules(
            self.rules, lambda number, window: evaluate(program.functions[number], number, window)
        )

    def instant(self, source: StateSource, context: Context) -> StateInstant:
        """The current instant. The structure of models is read once in a step, and at every instant
        before the first step.
        """
        now = StateInstant(source, context, self.samples)
        if context.step != self._structure_of[0]:
            self._structure_of = (context.step, {})
        if context.step > 0:
            now.structure = self._structure_of[1]
        return now

    def look(self, source: StateSource) -> None:
        """Keep the samples of subjects created since the last call."""
        if self.samples is not None:
            self.samples.look(self.instant(source, source.context))

    # edges

    def start(self, source: StateSource) -> None:
        """The run begins; else the first edge is its beginning. A source that knows the past is asked for it."""
        self.started = True
        if source.past is not None:
            self.samples = None
            if not source.past.calls_return:
                self.deferred = {}
        self._step_opened = source.seq
        self.last = source.context
        self._open("run", 0, Edge(self.instant(source, source.context)), source.context)

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call begins."""
        if not self.started:
            self.start(source)
        hook = self.program.begins.get(call.event)
        if hook is not None and call.event not in self.deferred:
            hook(self, call, source)
        self.last = call.context

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call returned."""
        hook = self.program.ends.get(call.event)
        if hook is not None:
            hook(self, call, source)
        self.last = source.context

    def boundary(
        self, span: Literal["step", "microbatch", "epoch"], index: int, source: StateSource
    ) -> None:
        """A span closes and the next one opens."""
        if not self.started:
            self.start(source)
        if span == "microbatch":
            self._microbatches += 1
        if span == "step":
            self.postponed.decide(before=index - 1)
        if source.seq != self._bounded:
            self.closing, self._bounded = self.last, source.seq
        edge = Edge(self._closing(source, self.closing))
        self._open(span, index, edge, source.context)
        if span == "step":
            self._step_opened = source.seq
            self._forget(source)
        self.last = source.context

    def finish(self, source: StateSource) -> None:
        """The run ended normally: all spans close."""
        if not self.started:
            self.start(source)
        self.postponed.decide()
        for span in ("microbatch", "step", "epoch", "run"):
            if span in self.program.spans:
                edge = Edge(self._closing(source, self.last))
                edge.span, edge.opened = span, self.spans.get(span)
                self.program.spans[span](self, edge)
        self.spans.clear()
        self.cut(source)

    def cut(self, source: StateSource) -> None:
        """The recording ends here: cut off the open windows."""
        self.postponed.decide()
        now = self.instant(source, source.context)
        for edge in self._edges.values():
            event = "" if edge.call is None else edge.call.event
            for number, pattern in self.program.calls.get(event, ()):
                if not self.opened(edge, number) and self.is_due(edge, number, pattern, now):
                    self.open_window(edge, number, pattern)
        for rule in self.rules:
            for key, window in list(rule.open.items()):
                if key == -1 and rule.declared.across:
                    rule.places.append(window.at)
                window.cut_off(now)
                rule.note(window)
                number = rule.declared.number
                self.run(self.program.functions[number], number, window)
            rule.open.clear()
        self._edges.clear()

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
        self.log = CallLog(self.program.retention)
        self._places = CallPlaces()
        self._pass = None
        if self.samples is not None:
            self.samples.forget_passing()

    def leave_out(self, source: StateSource) -> None:
        """Another step opens that is left out, or the run ends in one."""
        self.closing, self.last = self.last, source.context

    def resume(self, source: StateSource) -> None:
        """The step that opens is checked again. A call that began earlier is not."""
        self._resumed = source.seq

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

    # spans

    def _closing(self, source: StateSource, context: Context) -> StateInstant:
        """The current instant, in the context of the span that closes."""
        return self.instant(source, context if source.past is None else source.past.last)

    def _open(self, span: str, index: int, edge: Edge, context: Context) -> None:
        edge.span, edge.index, edge.opened = span, index, self.spans.get(span)
        edge.next = edge.now.opened(context)
        before = None if edge.opened is None else edge.opened.at
        at = microbatch_place(context.step, index, before) if span == "microbatch" else (index, 0)
        step = at[0] if span in ("step", "microbatch") else context.step
        self.spans[span] = OpenSpan(index, edge.next, at, (step, context.epoch, self._microbatches))
        hook = self.program.spans.get(span)
        if hook is not None:
            hook(self, edge)

    def open_span(self, e: Edge, number: int) -> RuleWindow | None:
        """The window of a rule that opens with the span, if one does."""
        rule = self.rules[number]
        if e.next is None or not rule.on or (e.span == "step" and e.index < 1):
            return None
        if not rule.declared.is_due(e.next.context):
            return None
        opening = self.spans[e.span]
        window = RuleWindow(opening.was, self.log)
        window.at, window.index = opening.at, opening.unit
        self.log.open(rule.declared.counts, window.begin)
        rule.open[-1] = window
        return window

    def close_span(self, e: Edge, number: int) -> RuleWindow | None:
        """The window of a rule that closes with the span, if one was open.

        A span that opened with an empty step at the run's end, or in it, is no window.
        """
        rule = self.rules[number]
        window = rule.open.pop(-1, None)
        if window is None or not rule.on or window.begin >= self._dropped_from(e):
            return None
        if rule.declared.across:
            rule.places.append(window.at)
        if rule.settled and rule.is_settled(e.now, ()):
            return None
        seq = e.now.seq
        window.close(e.now, seq - 1, (window.begin, seq - 1))
        window.ended_at = e.now.source.location
        return window

    def _dropped_from(self, e: Edge) -> float:
        """The instant from which spans are no windows, since the run ends in an empty step."""
        ends = e.next is None and e.span != "run" and e.now.source.in_empty_step
        return self._step_opened if ends else math.inf

    # calls

    def begin_call(self, call: WatchedCall, source: StateSource) -> Edge:
        """A call that some rule watches begins."""
        watched = CallRecord(call, self._kept(call, source), source)
        edge = Edge(self.instant(source, call.context), watched)
        edge.microbatches = self._microbatches
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
            begun = self._begun_late(call, source)
        if begun is None or begun.call is None:
            return None
        begun.call.close(source)
        edge = Edge(self.instant(source, source.context), begun.call)
        self.in_forward(call, edge.now)
        edge.places = begun.places
        edge.begun = begun
        return edge

    def _begun_late(self, call: WatchedCall, source: StateSource) -> Edge:
        """The begin of a call that was not read when it began."""
        now = self.instant(source, call.context)
        now.seq = call.begin
        edge = Edge(now, CallRecord(call, self._kept(call, source), source))
        edge.microbatches = self._microbatches
        for pattern in self.deferred[call.event]:
            self.count(edge, pattern)
        return edge

    def _kept(self, call: WatchedCall, source: StateSource) -> Kept:
        """The fields of a call that rules read."""
        program, event = self.program, call.event
        kept = program.kept[event]
        within, lone = program.inside.get(event), program.alone.get(event)
        unopened = program.unopened.get(event)
        if unopened is not None and not any(self.rules[n].is_open for n in unopened.rules):
            kept, within, lone = unopened.kept, unopened.inside, unopened.alone
        if within is not None and any(each.event == event for each in ancestors(call)):
            return within
        return lone if lone is not None and source.world < 2 else kept

    def in_forward(self, call: WatchedCall, now: StateInstant) -> None:
        """Let the instants within one forward pass share the values without tensors."""
        outer = call if call.event == "forward" else None
        inside = False
        around = call.parent
        while around is not None:
            if around.event == "forward":
                outer, inside = around, True
            around = around.parent
        if outer is None or (inside and outer.end is not None):
            return  # a call may return after the pass that it began in
        if inside and self._pass is not None and self._pass[0] == outer.id:
            now.within(self._pass[1])
        elif inside or call.end is None:
            self._pass = (outer.id, now)

    def count(self, e: Edge, pattern: Pattern) -> None:
        """Number a call among the calls of its step that match the pattern with the same values."""
        call = e.call
        assert call is not None and call.call is not None
        if pattern.deferred:
            return
        e.places[pattern.number] = self._places.position(call, pattern, e.now)

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

    def has_group(self, e: Edge, number: int, axes: Sequence[str]) -> bool:
        """True if this rank can have a group on one of a rule's axes. Without axes, a field names
        the group.
        """
        source = e.now.source
        if source.world < 2:
            return False
        return not axes or any(len(e.now.ranks(axis) or ()) > 1 for axis in axes)

    def idle(
        self, e: Edge, number: int, pattern: Pattern, choices: Choices, reason: str = ""
    ) -> None:
        """Count the one instance of a window as idle."""
        rule = self.rules[number]
        rule.counts["idle"] += 1
        if rule.observer is not None:
            rule.observe_idle(self._window(e, number, pattern), choices, reason)

    def rests(self, call: WatchedCall) -> bool | None:
        """True if no rule looks at calls of this event before the next boundary; None if that is
        unknown so far.
        """
        known = self._resting.get(call.event)
        return known[1] if known is not None and known[0] is call.context else None

    def keep_rest(self, call: WatchedCall, rests: bool) -> None:
        """Keep whether no rule looks at calls of this event before the next boundary."""
        self._resting[call.event] = (call.context, rests)

    def idle_all(
        self,
        call: WatchedCall,
        source: StateSource,
        pattern: Pattern,
        rules: Sequence[tuple[int, Choices]],
    ) -> None:
        """Count the one instance of each rule in the window of a call that is passed over as idle."""
        at = self._places.next(call, pattern)
        for number, choices in rules:
            rule = self.rules[number]
            if not rule.on or not rule.declared.is_due(call.context):
                continue
            rule.counts["idle"] += 1
            if rule.observer is not None:
                window = RuleWindow(self.instant(source, call.context), self.log)
                window.at = at
                rule.observe_idle(window, choices, "")

    def passed(self, call: WatchedCall, now: StateInstant, pattern: Pattern) -> RuleWindow:
        """Number the window of a call that is passed over, as for one that is evaluated."""
        window = RuleWindow(now, self.log)
        window.at = self._places.next(call, pattern)
        window.idle = True
        return window

    def idle_passed(self, window: RuleWindow, number: int, choices: Choices) -> None:
        """Count the one instance of a window of a call that is passed over as idle."""
        rule = self.rules[number]
        if rule.on and rule.declared.is_due(window.now.context):
            rule.idle(window, choices)

    def run_passed(self, window: RuleWindow, number: int, function: Evaluation) -> None:
        """Have a rule count its idle instances in a window of a call that is passed over."""
        rule = self.rules[number]
        if rule.on and rule.declared.is_due(window.now.context):
            self.run(function, number, window)

    def before(self, e: Edge, number: int, pattern: Pattern) -> RuleWindow:
        """The window of a rule with `before`: the instant before the call."""
        window = self._window(e, number, pattern)
        self.rules[number].note(window)
        return self._instant(window, e)

    def open_window(self, e: Edge, number: int, pattern: Pattern) -> RuleWindow:
        """Open a window at a call, where some value is read."""
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
        window = rule.open.pop(call.id, None) or self._window(begun, number, pattern)
        rule.note(window)
        if rule.declared.kind == "after":
            window.was = e.now
            window.begin = e.now.seq
            window.index = (call.step, e.now.context.epoch, self._microbatches)
            return self._instant(window, e)
        seq = e.now.seq
        window.close(e.now, seq - 1, (window.begin + 1, seq))
        return window

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
        window.first = self._step_opened
        window.close(e.now, e.now.seq - 1, (self._step_opened, e.now.seq))
        return window

    def leave(self, e: Edge) -> None:
        """Every rule on a call's return has been evaluated: drop its tensors."""
        if e.call is not None:
            e.call.leave()

    def read(self, e: Edge, number: int, wants: Sequence[Any]) -> None:
        """Something is read for `x only during …` while a window of the rule is open."""
        rule = self.rules[number]
        if rule.on and rule.open:
            e.now.want(wants)
            for window in rule.open.values():
                window.readings.append(e.now)

    # rules

    def run(self, function: Evaluation, number: int, window: RuleWindow) -> None:
        """Evaluate a rule on a window, now or when its values have arrived from a device."""
        rule = self.rules[number]
        if rule.declared.postponed is not None and self.postponed.take(number, window):
            return
        self._evaluate(function, number, window)
        if rule.declared.once and rule.on:
            rule.settles(window)

    def _forget(self, source: StateSource) -> None:
        """A step begins: drop the values that no open window can read."""
        calls: dict[str, int] = {}
        passing: dict[str, int] = {}
        for declared, begin in self._opened():
            for names, opened in ((declared.counts, calls), (declared.passing, passing)):
                for name in names:
                    opened[name] = min(begin, opened.get(name, begin))
        self.log.forget(self._step_opened, calls)
        if self.samples is not None:
            self.samples.forget(source, self._step_opened, passing)
        self._places.forget(self.last.step)

    def _opened(self) -> Iterator[tuple[RuleRecord, int]]:
        """Rules with the begin of each of their windows that is open, or will be: the call runs."""
        for rule in self.rules:
            for window in rule.open.values():
                yield rule.declared, window.begin
        for edge in self._edges.values():
            event = "" if edge.call is None else edge.call.event
            for number, _ in self.program.calls.get(event, ()):
                yield self.program.rules[number], edge.now.seq
