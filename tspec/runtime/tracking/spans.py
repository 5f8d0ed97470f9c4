"""Windows that are spans: the run, epochs, steps and micro-batches."""

from __future__ import annotations

import math

from tspec.runtime.call_places import microbatch_place
from tspec.runtime.edges import Context, StateSource
from tspec.runtime.generated import Edge, OpenSpan
from tspec.runtime.instant import StateInstant
from tspec.runtime.tracking.rules import RuleTracker, TrackedRules
from tspec.runtime.windows import RuleWindow


class SpanTracker(RuleTracker):
    """The windows of one rank's rules that are spans."""

    def __init__(self, tracked: TrackedRules) -> None:
        super().__init__(tracked)
        self.spans: dict[str, OpenSpan] = {}
        self.step_opened = 0
        """The instant at which the step opened."""
        self.microbatches = 0
        """Micro-batches that have opened so far."""

    def closing_instant(self, source: StateSource, context: Context) -> StateInstant:
        """The current instant, in the context of the span that closes."""
        return self.instant(source, context if source.past is None else source.past.last)

    def open(self, span: str, index: int, edge: Edge, context: Context) -> None:
        """A span closes at an edge, and the one numbered `index` opens there with a context."""
        edge.span, edge.index, edge.opened = span, index, self.spans.get(span)
        edge.next = edge.now.opened(context)
        before = None if edge.opened is None else edge.opened.at
        at = microbatch_place(context.step, index, before) if span == "microbatch" else (index, 0)
        step = at[0] if span in ("step", "microbatch") else context.step
        self.spans[span] = OpenSpan(index, edge.next, at, (step, context.epoch, self.microbatches))
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
        return self.step_opened if ends else math.inf

    def close_all(self, source: StateSource, context: Context) -> None:
        """The run ended normally: all spans close."""
        for span in ("microbatch", "step", "epoch", "run"):
            if span in self.program.spans:
                edge = Edge(self.closing_instant(source, context))
                edge.span, edge.opened = span, self.spans.get(span)
                self.program.spans[span](self, edge)
        self.spans.clear()
