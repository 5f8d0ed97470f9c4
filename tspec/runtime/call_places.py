"""Places within a step: of micro-batches, and of calls among those that a pattern chooses with the same values."""

from __future__ import annotations

from collections.abc import Hashable

from tspec.runtime.calls.call import CallRecord, Pattern, ancestors
from tspec.runtime.edges import WatchedCall
from tspec.runtime.instant import StateInstant
from tspec.runtime.transfers import arrived
from tspec.runtime.values import NOT_RECORDED
from tspec.runtime.windows import At, CallPosition
from tspec.values import Datum


class CallPlaces:
    """Numbers the calls that are windows, step by step."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int, tuple[Hashable, ...]], list[int]] = {}
        """(step, pattern, fields) -> the calls that are windows, in order."""

    def position(self, call: CallRecord, pattern: Pattern, now: StateInstant) -> CallPosition:
        """The position of a call that begins. A call within a matching one is no window, and has no
        number.
        """
        assert call.call is not None
        key = tuple(map(call.get, pattern.fields))
        around = [one for one in ancestors(call.call) if one.event in pattern.events]
        nested = bool(around) and any(
            all(map(now.matches, pattern.fields, key, _raw_fields(one, pattern))) for one in around
        )
        before: list[int] = []
        choice: Hashable = ()
        count = 0
        if not nested:
            choice = tuple(map(_hashable, key))
            where = (call.step, pattern.number, choice)
            before = self._calls.setdefault(where, [])
            count = len(before)
            before.append(call.id)
        return CallPosition(key, nested, (call.step, count), before, choice)

    def next(self, call: WatchedCall, pattern: Pattern) -> At:
        """The place of a call without fields."""
        step = call.context.step
        before = self._calls.setdefault((step, pattern.number, ()), [])
        before.append(call.id)
        return (step, len(before) - 1)

    def forget(self, before: int) -> None:
        """Drop the calls of steps before one."""
        self._calls = {key: value for key, value in self._calls.items() if key[0] >= before}

    def clear(self) -> None:
        """Drop all calls: steps are left out."""
        self._calls.clear()


def microbatch_place(step: int, number: int, before: At | None) -> At:
    """The place of a micro-batch: its number, or the place after the one before in its step, where that is greater."""
    if before is None or before[0] != step:
        return (step, number)
    return (step, max(number, before[1] + 1))


def _raw_fields(call: WatchedCall, pattern: Pattern) -> list[Datum]:
    return [arrived(call.fields.get(name, NOT_RECORDED)) for name in pattern.fields]


def _hashable(value: Datum) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
