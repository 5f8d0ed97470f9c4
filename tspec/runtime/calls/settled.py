"""Calls of earlier steps, which a window of an epoch or a run still reads, as columns."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterator

from tspec.runtime.calls.call import CallRecord, SettledFields
from tspec.runtime.edges import Missing, Ref
from tspec.values import Datum


class SettledCalls:
    """The settled calls of one event, in order of their begin. Each takes some 25 bytes.

    Records are made anew for each question. Calls whose fields and line are alike share one object.
    """

    __slots__ = ("_alike", "_begins", "_ends", "_event", "_fields", "_last_end", "_within")

    def __init__(self, event: str) -> None:
        self._event = event
        self._begins = array("q")
        self._ends = array("q")
        self._fields: list[SettledFields] = []
        self._alike: dict[Hashable, SettledFields] = {}
        """Fields of plain values, by these values and the line."""
        self._within: dict[int, tuple[int, ...]] = {}
        """Begin of a call -> the begins of the calls that enclose it, if some do."""
        self._last_end = -1

    def __len__(self) -> int:
        return len(self._begins)

    def add(self, call: CallRecord, end: int, values: dict[str, Datum]) -> None:
        """A call that returned is settled, with these fields. It began after those before it."""
        self._begins.append(call.begin)
        self._ends.append(end)
        self._last_end = max(self._last_end, end)
        if call.within:
            self._within[call.begin] = call.within
        fields = SettledFields(values, call.location)
        if all(value.__class__ in _PLAIN for value in values.values()):
            items = [(name, value.__class__, value) for name, value in values.items()]
            fields = self._alike.setdefault((call.location, *items), fields)
        self._fields.append(fields)

    def forget(self, before: int) -> None:
        """Drop calls that began before an instant."""
        count = bisect_left(self._begins, before)
        if count == 0:
            return
        for begin in self._begins[:count]:
            self._within.pop(begin, None)
        del self._begins[:count], self._ends[:count], self._fields[:count]
        self._alike.clear()

    def between(self, first: int, last: int) -> list[CallRecord]:
        """The calls that began from `first` to `last`, both included."""
        places = range(bisect_left(self._begins, first), bisect_right(self._begins, last))
        return [self._record(place) for place in places]

    def ended_between(self, first: int, last: int) -> Iterator[CallRecord]:
        """The calls that ended from `first` to `last`, the last end first."""
        if self._last_end < first:
            return
        ends = self._ends
        places = [place for place, end in enumerate(ends) if first <= end <= last]
        for place in sorted(places, key=ends.__getitem__, reverse=True):
            yield self._record(place)

    def among(self, begins: Collection[int]) -> list[CallRecord]:
        """The calls that began at one of some instants."""
        places = [(bisect_left(self._begins, begin), begin) for begin in sorted(begins)]
        return [
            self._record(place)
            for place, begin in places
            if place < len(self._begins) and self._begins[place] == begin
        ]

    def _record(self, place: int) -> CallRecord:
        begin = self._begins[place]
        return CallRecord.settled(
            self._event, begin, self._ends[place], self._fields[place], self._within.get(begin, ())
        )


_PLAIN = frozenset((bool, int, str, Missing, Ref))
