"""Calls that windows read, kept as long as such a window is open."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tspec.runtime.calls import CallRecord, ancestors
from tspec.runtime.edges import Missing, Ref


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
    """The calls of one event in order of their begin. Calls of earlier steps are settled: they keep fewer fields."""

    __slots__ = ("begins", "calls", "ended", "known", "opened", "retention", "settled", "shared")

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.calls: list[CallRecord] = []
        self.begins: list[int] = []
        self.settled = 0
        """The number of settled calls, which come first."""
        self.ended = -1
        """The latest end of a settled call."""
        self.known: set[Any] = set()
        """Values of the filters that a settled call has had since the youngest window before it opened."""
        self.opened: list[int] = []
        """The instants at which windows opened that look up unsettled calls. Between two calls, one
        instant is kept.
        """
        self.shared: dict[str, Any] = {}
        """The fields of the call that was settled last."""

    def open(self, at: int) -> None:
        """A window opens: the next call is its first."""
        if self.opened and (not self.begins or self.opened[-1] > self.begins[-1]):
            self.opened.pop()
        self.opened.append(at)

    def forget(self, before: int) -> None:
        """Drop calls that began before an instant and have returned."""
        if not self.calls or self.calls[0].begin >= before:
            return
        kept = [one for one in self.calls if one.begin >= before or one.end is None]
        self.settled = sum(1 for one in self.calls[: self.settled] if one.begin >= before)
        self.calls = kept
        self.begins = [one.begin for one in kept]

    def settle(self, before: int) -> None:
        """Drop fields that no window reads, for calls that began before an instant, up to the first
        call that still runs.
        """
        retention = self.retention
        for call in self.calls[self.settled :]:
            if call.begin >= before or call.end is None:
                return
            while self.opened and self.opened[0] <= call.begin:
                self.opened.pop(0)
                self.known.clear()
            key = tuple(_key(call.get(name)) for name in retention.filters)
            new = key not in self.known
            self.known.add(key)
            values = call.settle((*retention.fields, *retention.first) if new else retention.fields)
            if _are_alike(values, self.shared):
                call.given = call.values = self.shared
            self.shared = call.values
            self.settled += 1
            self.ended = max(self.ended, call.end)
        if self.opened:
            self.opened.clear()
            self.known.clear()


_PLAIN = frozenset((bool, int, str, Missing, Ref))


def _are_alike(values: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Plain values that are the same: two calls can share them."""
    return values.keys() == others.keys() and all(
        value.__class__ in _PLAIN
        and value.__class__ is others[name].__class__
        and value == others[name]
        for name, value in values.items()
    )


def _key(value: Any) -> Any:
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
        call.within = tuple([outer.id for outer in ancestors(call.call)]) if call.call else ()
        of = self._events.get(call.event)
        if of is None:
            of = self._events[call.event] = _EventCalls(
                self._retention.get(call.event, Retention())
            )
        of.calls.append(call)
        of.begins.append(call.begin)

    def open(self, events: Iterable[str], at: int) -> None:
        """A window opens that reads calls of some events."""
        for of in self._of(events):
            of.open(at)

    def of_step(self, events: Iterable[str]) -> list[CallRecord]:
        """The calls of some events that are not settled, in order of their begin."""
        return _merged(of.calls[of.settled :] for of in self._of(events))

    def enclosing(self, call: CallRecord) -> list[CallRecord]:
        """The logged calls that enclose a call."""
        if call.call is not None:
            call.within = tuple(outer.id for outer in ancestors(call.call))
        numbers = set(call.within)
        if not numbers:
            return []
        running = call.end is None or call.call is not None
        return [
            one
            for of in self._events.values()
            for one in of.calls[of.settled if running else 0 :]
            if one.id in numbers
        ]

    def between(self, first: int, last: int, events: Iterable[str]) -> list[CallRecord]:
        """The calls of some events that began from `first` to `last`, both included."""
        return _merged(
            of.calls[bisect_left(of.begins, first) : bisect_right(of.begins, last)]
            for of in self._of(events)
        )

    def ended_between(self, first: int, last: int, events: Iterable[str]) -> list[CallRecord]:
        """The calls of some events that ended from `first` to `last`, in order of their end."""
        found = [
            one
            for of in self._of(events)
            for one in of.calls[of.settled if of.ended < first else 0 :]
            if one.end is not None and first <= one.end <= last
        ]
        return sorted(found, key=lambda one: one.end or 0)

    def forget(self, before: int, opened: Mapping[str, int]) -> None:
        """A step begins. Drop calls that returned before it, except those since the earliest open
        window.

        `before` is where the step begins. `opened` has, for each event, the begin of the earliest
        window that looks up its calls.
        """
        for event, of in self._events.items():
            of.forget(min(before, opened.get(event, before)))
            of.settle(before)

    def _of(self, events: Iterable[str]) -> list[_EventCalls]:
        return [self._events[event] for event in events if event in self._events]


def _merged(parts: Iterable[list[CallRecord]]) -> list[CallRecord]:
    found = [part for part in parts if part]
    if len(found) == 1:
        return found[0]
    return sorted((one for part in found for one in part), key=lambda one: one.begin)
