"""The calls of a window by the subject that a field of theirs is: a rule that loops over subjects looks each up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tspec.runtime.calls.call import CallRecord, Pattern, outermost
from tspec.runtime.edges import Ref
from tspec.values import Datum


class CallIndex:
    """The calls of a pattern's events in a window, as of one instant, and the results of searches
    among them.
    """

    __slots__ = ("_by_subject", "_calls", "_field", "_found", "_others")

    def __init__(
        self, calls: Sequence[CallRecord], pattern: Pattern, wanted: Sequence[Datum]
    ) -> None:
        """`wanted` are values of the pattern's fields.

        Calls are indexed by the first of them that is a subject.
        """
        self._calls = calls
        self._field = next(
            (place for place, each in enumerate(wanted) if each.__class__ is Ref), -1
        )
        self._by_subject: dict[Datum, list[int]] = {}
        self._others: list[int] = []
        """Calls whose field is not known yet, or is no subject."""
        self._found: dict[tuple[Datum, ...], tuple[CallRecord, ...]] = {}
        if self._field >= 0:
            name = pattern.fields[self._field]
            for place, call in enumerate(calls):
                value = call.get(name)
                is_known = value.__class__ is Ref and call.end is not None
                (self._by_subject.setdefault(value, []) if is_known else self._others).append(place)

    def outermost(
        self, wanted: Sequence[Datum], is_one: Callable[[CallRecord], bool]
    ) -> tuple[CallRecord, ...]:
        """The matching calls that no other matching call encloses."""
        if self._field < 0 or wanted[self._field].__class__ is not Ref:
            return outermost(filter(is_one, self._calls))
        key = tuple(wanted) if len(wanted) == 1 else ()
        found = self._found.get(key)
        if found is None:
            places = self._by_subject.get(wanted[self._field], [])
            if self._others:
                places = sorted((*places, *self._others))
            found = outermost(call for place in places if is_one(call := self._calls[place]))
            if key:
                self._found[key] = found
        return found
