"""Calls that windows read, kept as long as such a window is open."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import merge

from tspec.runtime.calls.call import CallRecord, ancestors
from tspec.runtime.calls.settled import SettledCalls
from tspec.values import Datum


@dataclass(frozen=True, slots=True)
class Retention:
    """The fields of an event's calls that are kept beyond their step."""

    filters: tuple[str, ...] = ()
    """Fields that patterns filter by."""
    fields: tuple[str, ...] = ()
    """Fields that are kept of every call, `filters` among them."""
    first: tuple[str, ...] = ()
    """Fields kept of the first call among those with equal filter fields."""


class _EventCalls:
    """The calls of one event in order of their begin. Those of earlier steps are settled, and keep fewer fields."""

    __slots__ = ("begins", "calls", "known", "opened", "retention", "settled")

    def __init__(self, event: str, retention: Retention) -> None:
        self.retention = retention
        self.settled = SettledCalls(event)
        """Calls of earlier steps. They began before all others."""
        self.calls: list[CallRecord] = []
        self.begins: list[int] = []
        self.known: set[Datum] = set()
        """Values of the filters that a settled call has had since the youngest window before it opened."""
        self.opened: list[int] = []
        """The instants at which windows opened that look up unsettled calls. Between two calls, one
        instant is kept.
        """

    def open(self, at: int) -> None:
        """A window opens: the next call is its first."""
        if self.opened and (not self.begins or self.opened[-1] > self.begins[-1]):
            self.opened.pop()
        self.opened.append(at)

    def forget(self, before: int) -> None:
        """Drop calls that began before an instant and have returned."""
        self.settled.forget(before)
        if self.calls and self.calls[0].begin < before:
            self._hold([one for one in self.calls if one.begin >= before or one.end is None])

    def settle(self, before: int) -> None:
        """Keep of calls that began before an instant the fields that windows read, up to the first
        call that still runs.
        """
        retention = self.retention
        count = 0
        for call in self.calls:
            if call.begin >= before or call.end is None:
                break
            while self.opened and self.opened[0] <= call.begin:
                self.opened.pop(0)
                self.known.clear()
            key = tuple(_key(call.get(name)) for name in retention.filters)
            new = key not in self.known
            self.known.add(key)
            names = (*retention.fields, *retention.first) if new else retention.fields
            self.settled.add(call, call.end, call.recorded(names))
            count += 1
        else:
            if self.opened:
                self.opened.clear()
                self.known.clear()
        if count:
            self._hold(self.calls[count:])

    def _hold(self, calls: list[CallRecord]) -> None:
        self.calls = calls
        self.begins = [one.begin for one in calls]


def _key(value: Datum) -> Datum:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return (value.__class__, value)


class CallLog:
    """The calls of every event that some window reads."""

    __slots__ = ("_events", "_retention")

    def __init__(self, retention: Mapping[str, Retention]) -> None:
        self._retention = retention
        self._events: dict[str, _EventCalls] = {}

    def add(self, call: CallRecord) -> None:
        """A call begins."""
        call.within = self._around(call)
        of = self._events.get(call.event)
        if of is None:
            of = self._events[call.event] = _EventCalls(
                call.event, self._retention.get(call.event, Retention())
            )
        of.calls.append(call)
        of.begins.append(call.begin)

    def open(self, events: Iterable[str], at: int) -> None:
        """A window opens that reads calls of some events."""
        for of in self._of(events):
            of.open(at)

    def of_step(self, events: Iterable[str]) -> list[CallRecord]:
        """The calls of some events that are not settled, in order of their begin."""
        return _merged([of.calls for of in self._of(events)])

    def enclosing(self, call: CallRecord) -> list[CallRecord]:
        """The logged calls that enclose a call."""
        if call.call is not None:
            call.within = self._around(call)
        begins = set(call.within)
        if not begins:
            return []
        found = [one for of in self._events.values() for one in of.calls if one.begin in begins]
        if call.end is not None and call.call is None:
            found += [one for of in self._events.values() for one in of.settled.among(begins)]
        return found

    def _around(self, call: CallRecord) -> tuple[int, ...]:
        """The begins of the calls that enclose a call, of events that are logged."""
        outer = () if call.call is None else ancestors(call.call)
        return tuple([one.begin for one in outer if one.event in self._events])

    def between(self, first: int, last: int, events: Iterable[str]) -> list[CallRecord]:
        """The calls of some events that began from `first` to `last`, both included."""
        return _merged(
            [
                of.settled.between(first, last)
                + of.calls[bisect_left(of.begins, first) : bisect_right(of.begins, last)]
                for of in self._of(events)
            ]
        )

    def ended_between(self, first: int, last: int, events: Iterable[str]) -> Iterator[CallRecord]:
        """The calls of some events that ended from `first` to `last`, the last end first."""
        logged = self._of(events)
        recent = [
            one
            for of in logged
            for one in of.calls
            if one.end is not None and first <= one.end <= last
        ]
        recent.sort(key=_end, reverse=True)
        settled = (of.settled.ended_between(first, last) for of in logged)
        return merge(recent, *settled, key=_end, reverse=True)

    def forget(self, before: int, opened: Mapping[str, int]) -> None:
        """A step begins. Drop calls that returned before it, except those since the earliest open
        window.

        `before` is where the step begins. `opened` has, for each event, the begin of the earliest
        window that looks up its calls.
        """
        for event, of in self._events.items():
            of.forget(min(before, opened.get(event, before)))
            of.settle(before)

    def clear(self) -> None:
        """Drop all calls: steps are left out."""
        self._events.clear()

    def _of(self, events: Iterable[str]) -> list[_EventCalls]:
        return [self._events[event] for event in events if event in self._events]


def _end(call: CallRecord) -> int:
    return call.end or 0


def _merged(parts: Iterable[list[CallRecord]]) -> list[CallRecord]:
    found = [part for part in parts if part]
    if len(found) == 1:
        return found[0]
    return sorted((one for part in found for one in part), key=lambda one: one.begin)
