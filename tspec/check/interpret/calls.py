"""The calls that an event pattern matches: filters, outermost calls, calls in a window.

Page: "Outermost", "E.field", "What lies in a window".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tspec.check.interpret.frames import LocalInstance, Occurrence
from tspec.check.interpret.timeline import Timeline, TimelineCall
from tspec.check.interpret.values import Datum, compare, is_instance
from tspec.resolve.program.rules import EventPattern, Expr, Filter
from tspec.trace.model import Missing, Ref

Reading = Callable[[Expr], Datum]
"""Reads the value of an expression in some frame."""


@dataclass(frozen=True, slots=True)
class BoundPattern:
    """An event pattern with the values of its filters."""

    events: tuple[str, ...]
    fields: tuple[tuple[str, Datum], ...]

    def matches(self, call: TimelineCall, line: Timeline, seq: int) -> bool:
        """The call is one of the events, and its fields, as known at `seq`, equal the values."""
        if call.begin.event not in self.events:
            return False
        return all(
            filter_holds(name, call.field(name, seq), value, line, seq)
            for name, value in self.fields
        )


def wanted(pattern: EventPattern, read: Reading) -> BoundPattern:
    """Read the values of a pattern's filters."""
    return BoundPattern(pattern.events, tuple((f.field, read(f.value)) for f in pattern.filters))


def wanted_fields(filters: Sequence[Filter], read: Reading) -> tuple[tuple[str, Datum], ...]:
    """Read the values of filters."""
    return tuple((each.field, read(each.value)) for each in filters)


def filter_holds(name: str, found: Datum, value: Datum, line: Timeline, seq: int) -> bool:
    """One filter: the field equals the value; `class` is an instance of it. Missing: no match."""
    if isinstance(found, Missing) or isinstance(value, Missing):
        return False
    if name == "class":
        if isinstance(found, Ref):
            found = line.value(found.kind, found.name, "class", seq)
        return is_instance(found, value) is True
    return compare("==", found, value) is True


def merged(lists: Iterable[Sequence[TimelineCall]]) -> list[TimelineCall]:
    """Calls of several events, in order of their begin."""
    return sorted((call for each in lists for call in each), key=lambda call: call.begin.seq)


def calls_of(line: Timeline, events: Iterable[str]) -> list[TimelineCall]:
    """All calls of some events, in order of their begin."""
    return merged(line.events.get(event, []) for event in dict.fromkeys(events))


def ancestors(line: Timeline, call: TimelineCall) -> Iterable[TimelineCall]:
    """The watched calls that enclose a call, innermost first."""
    parent = call.begin.parent
    while parent is not None and parent in line.numbers:
        enclosing = line.numbers[parent]
        yield enclosing
        parent = enclosing.begin.parent


def outermost(line: Timeline, matching: Sequence[TimelineCall]) -> list[TimelineCall]:
    """The calls that no other of them encloses."""
    numbers = {call.begin.call for call in matching}
    return [
        call
        for call in matching
        if not any(outer.begin.call in numbers for outer in ancestors(line, call))
    ]


def calls_in_window(local: LocalInstance, want: Sequence[BoundPattern]) -> list[TimelineCall]:
    """The outermost of the matching calls that begin in the window, in order.

    Fields are read at the call's end, of a call that outlasts the window at its begin.
    """
    line, window = local.line, local.window
    limit = window.close.seq if window.close is not None else line.seqs[-1]
    low = line.step_opening(window.open.seq) if window.instant else window.open.seq
    events = dict.fromkeys(event for each in want for event in each.events)
    matching = [
        call
        for call in merged(line.calls_between(event, low, limit) for event in events)
        if window.holds_call(line, call.begin.seq)
        and any(each.matches(call, line, limit) for each in want)
    ]
    return outermost(line, matching)


def last_call(local: LocalInstance, want: BoundPattern) -> TimelineCall | None:
    """The last matching call that ended in the window."""
    ended = [
        (call.end.seq, call)
        for call in calls_of(local.line, want.events)
        if call.end is not None
        and local.window.holds_call(local.line, call.end.seq)
        and want.matches(call, local.line, call.end.seq)
    ]
    return max(ended, key=lambda pair: pair[0])[1] if ended else None


def is_window(line: Timeline, window: Occurrence, call: TimelineCall, want: BoundPattern) -> bool:
    """The call matches, and no call that encloses it does, as far as known when it is decided."""
    return _matches_as_window(line, window, call, want) and not any(
        _matches_as_window(line, window, outer, want) for outer in ancestors(line, call)
    )


def _matches_as_window(
    line: Timeline, window: Occurrence, call: TimelineCall, want: BoundPattern
) -> bool:
    if window.kind == "before":
        return want.matches(call, line, call.begin.seq)
    limit = window.close.seq if window.close is not None else line.seqs[-1]
    return want.matches(call, line, limit)


def earlier_in_step(
    line: Timeline, window: Occurrence, call: TimelineCall, want: BoundPattern
) -> list[TimelineCall]:
    """The other windows of the same kind that began before it in the same step."""
    step = call.begin.context.step
    return [
        other
        for other in merged(
            line.steps.get((event, step), []) for event in dict.fromkeys(want.events)
        )
        if other.begin.seq < call.begin.seq and is_window(line, window, other, want)
    ]
