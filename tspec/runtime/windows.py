"""Windows of rules: the stretch of a rank's stream over which an instance is evaluated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from tspec.builtin.kinds import PASSING
from tspec.reasons import no_group
from tspec.runtime.calls.call import CallRecord, Pattern, outermost
from tspec.runtime.calls.index import CallIndex
from tspec.runtime.calls.log import CallLog
from tspec.runtime.cut_off import CutOffInstant
from tspec.runtime.edges import Location, Missing, Ref
from tspec.runtime.instant import StateInstant
from tspec.runtime.series.history import Index
from tspec.runtime.values import NOT_RECORDED
from tspec.values import Datum

At = tuple[int, int]
"""The place of a window: (step, number of the call among the matching ones of the step) or (step,
number of the micro-batch); for other spans, (number of the span, 0).
"""


@dataclass(frozen=True, slots=True)
class CallPosition:
    """The state of a call at its begin: its values of a pattern's fields, and its place in the
    step.
    """

    key: tuple[Datum, ...]
    nested: bool
    at: At
    earlier: Sequence[int] = ()
    """Earlier calls of the step that are windows too. The first `at[1]` of them count."""
    choice: Hashable = ()
    """The key in a form that has a hash."""


class RuleWindow:
    """One occurrence of a rule's window on this rank.

    Subjects are chosen at `now` and values read at `end` (the same, unless the window is cut off).
    `was` is the instant at which it opened. Calls in it begin from `first` to `last`, and transient
    subjects are created from `born[0]` to `born[1]`, all included. `index` is its place for `over`.
    """

    __slots__ = (
        "_calls",
        "_rank",
        "at",
        "begin",
        "born",
        "broken_at",
        "call",
        "cut",
        "earlier",
        "end",
        "ended_at",
        "first",
        "idle",
        "index",
        "last",
        "log",
        "now",
        "pattern",
        "places",
        "readings",
        "ungrouped",
        "was",
    )

    def __init__(self, was: StateInstant, log: CallLog, call: CallRecord | None = None) -> None:
        self.was = was
        self.now = was
        self.end = was
        self.log = log
        self.call = call
        self._calls: tuple[
            int,
            dict[tuple[frozenset[str], int], list[CallRecord]],
            dict[tuple[int, int], CallIndex],
        ] = (-1, {}, {})
        """An instant, and as of it the calls up to another one: by events, and indexed by pattern."""
        self._rank: int | None = None
        self.begin = was.seq
        self.at: At = (0, 0)
        self.index: Index = (0, 0, 0)
        self.first = self.last = was.seq
        self.born = (was.seq, was.seq)
        self.pattern: Pattern | None = None
        """The pattern of the calls that are the rule's windows, if it has such windows."""
        self.places: dict[int, CallPosition] = {}
        self.earlier: Sequence[int] = ()
        """The calls that are windows of the same rule and began before in the step."""
        self.readings: list[StateInstant] = []
        """Instants in the window at which `x only during …` read its value."""
        self.ended_at: Location | None = None
        """For a span: the line that ended it."""
        self.broken_at: CallRecord | None = None
        """The latest call that broke `A before B` or `x only during A`."""
        self.cut = False
        self.idle = False
        """The condition is known to be false, whatever the state."""
        self.ungrouped = False
        """This rank has no group for the rule's `across`: all instances are idle."""

    @property
    def rank(self) -> int:
        """The rank of the window, read once, since there is an instance for each parameter."""
        if self._rank is None:
            self._rank = self.was.source.rank
        return self._rank

    @property
    def key(self) -> Hashable:
        """The values of the call's fields that the rule's window filters; nothing for a span."""
        place = None if self.pattern is None else self.places.get(self.pattern.number)
        return () if place is None else place.choice

    @property
    def location(self) -> Location | None:
        """The line of the script that it is at."""
        return self.ended_at if self.call is None else self.call.location

    def close(self, now: StateInstant, last: int, born: tuple[int, int]) -> None:
        """The window ends at `now`."""
        self.now = self.end = now
        self.last = last
        self.born = born

    def elements(self, collection: Datum) -> list[tuple[Datum, str]]:
        """The elements of a `for` clause's collection with their names as subjects; none if it is missing."""
        return [(element, name) for name, element in self._named(collection).items()]

    def names(self, collection: Datum) -> tuple[str, ...]:
        """The names of the elements of a `for` clause's collection."""
        return tuple(self._named(collection))

    def _named(self, collection: Datum) -> dict[str, Datum]:
        found: dict[str, Datum] = {}
        for place, element in enumerate(self.now.ordered(collection)):
            if element.__class__ is Missing:
                continue
            if element.__class__ is Ref:
                name = self.subject_name(element) if element.kind in PASSING else element.name
            else:
                name = f"#{place}" if element.__class__ is CallRecord else str(place)
            found.setdefault(name, element)
        return found

    def cut_off(self, now: StateInstant) -> None:
        """The recording ends within the window: its subjects are those of the last record, and its
        values are unknown.
        """
        if self.call is None:
            self.close(now, now.seq - 1, (self.begin, now.seq - 1))
        else:
            self.close(now, now.seq - 1, (self.begin + 1, now.seq))
        self.end = CutOffInstant(now.source, now.context)
        self.cut = True

    def subjects(self, kind: str) -> tuple[str, ...]:
        """Names of the subjects of a kind; of passing ones, those that came in this window."""
        if kind in PASSING:
            return self.now.born_between(kind, *self.born)
        return self.now.subjects(kind)

    def only(self, kind: str, field: str) -> tuple[str, ...]:
        """The subject of a kind that a field of the window's call is, if it exists."""
        found = NOT_RECORDED if self.call is None else self.call.get(field)
        if found.__class__ is Ref and found.kind == kind and found.name in self.subjects(kind):
            return (found.name,)
        return ()

    def group(self, clauses: Sequence[Datum], names: str) -> tuple[tuple[int, ...], str]:
        """This rank's group over axes (names) and lists of ranks. If there is none, it is this rank
        alone, with the reason.
        """
        axes = [one for one in clauses if isinstance(one, str)]
        reached = {
            rank
            for one in clauses
            if isinstance(one, (tuple, frozenset))
            for rank in one
            if rank.__class__ is int
        }
        for axis in axes:
            reached.update(self.now.ranks(axis) or ())
        if len(clauses) > 1:
            reached = self._connected(reached, axes)
        if reached:
            reached.add(self.rank)
        if len(reached) < 2:
            return (self.rank,), no_group(names)
        return tuple(sorted(reached)), ""

    def _connected(self, reached: set[int], axes: Sequence[str]) -> set[int]:
        """All ranks reached over any of the axes, from rank to rank."""
        past = self.now.source.past
        found = {self.rank}
        waiting = list(reached)
        while waiting:
            other = waiting.pop()
            if other not in found:
                found.add(other)
                if past is not None:
                    waiting += [rank for axis in axes for rank in past.peers(other, axis)]
        return found

    def subject_name(self, subject: Ref) -> str:
        """A subject as verdicts name it: a passing one by its place in the window."""
        if subject.kind in PASSING:
            there = self.subjects(subject.kind)
            return f"#{there.index(subject.name)}" if subject.name in there else subject.name
        return subject.name

    def refs(self, kind: str, instant: StateInstant) -> Datum:
        """All subjects of a kind at an instant of this window, as values."""
        if kind in PASSING and instant.__class__ is not CutOffInstant:
            return tuple(Ref(kind, name) for name in instant.born_between(kind, *self.born))
        return instant.refs(kind)

    def place(self, pattern: Pattern, wanted: Sequence[Datum]) -> At | None:
        """(step, place in it) of the window's call among the matching ones; None if it is no window."""
        call = self.call
        assert call is not None
        if not pattern.deferred:
            known = self.places[pattern.number]
            if known.nested or not self._alike(pattern, known.key, wanted):
                return None
            self.earlier = known.earlier
            return known.at
        if not self.is_window(call, pattern, wanted):
            return None
        self.earlier = [
            other.id
            for other in self.log.of_step(pattern.events)
            if other.begin < call.begin
            and other.step == call.step
            and self.is_window(other, pattern, wanted)
        ]
        return (call.step, len(self.earlier))

    def _alike(self, pattern: Pattern, found: Sequence[Datum], wanted: Sequence[Datum]) -> bool:
        return all(map(self.now.matches, pattern.fields, found, wanted))

    def is_window(self, call: CallRecord, pattern: Pattern, wanted: Sequence[Datum]) -> bool:
        """True if a call matches, as far as known here, and no enclosing call does."""
        return self.is_one(call, pattern, wanted) and not any(
            self.is_one(outer, pattern, wanted) for outer in self.log.enclosing(call)
        )

    def is_one(self, call: CallRecord, pattern: Pattern, wanted: Sequence[Datum]) -> bool:
        """True if a call, as far as known, belongs to the pattern's events and its fields equal the
        values.
        """
        return call.event in pattern.events and self._alike(
            pattern, [call.get(name) for name in pattern.fields], wanted
        )

    def calls(self, pattern: Pattern, wanted: Sequence[Datum], instant: StateInstant) -> Datum:
        """The outermost matching calls that began in it; none at its start."""
        if instant.__class__ is CutOffInstant:
            return NOT_RECORDED
        if instant is not self.now or any(value.__class__ is Missing for value in wanted):
            return ()
        return self._outermost(pattern, wanted, self.last)

    def begun(self, pattern: Pattern, wanted: Sequence[Datum]) -> tuple[CallRecord, ...]:
        """The outermost matching calls that began in it, also if it was cut off."""
        if any(value.__class__ is Missing for value in wanted):
            return ()
        return self._outermost(pattern, wanted, self.now.seq if self.cut else self.last)

    def _outermost(
        self, pattern: Pattern, wanted: Sequence[Datum], last: int
    ) -> tuple[CallRecord, ...]:
        found = self.began(pattern.events, last)
        if not wanted:
            return outermost(found)
        indices = self._calls[2]
        index = indices.get((pattern.number, last))
        if index is None:
            index = indices[pattern.number, last] = CallIndex(found, pattern, wanted)
        return index.outermost(wanted, lambda one: self.is_one(one, pattern, wanted))

    def began(self, events: frozenset[str], last: int) -> list[CallRecord]:
        """The calls of some events that began in it, up to an instant, as they are now."""
        at = self.was.source.seq
        if at != self._calls[0]:
            self._calls = (at, {}, {})
        known = self._calls[1]
        found = known.get((events, last))
        if found is None:
            found = known[events, last] = self.log.between(self.first, last, events)
        return found

    def latest(self, pattern: Pattern, wanted: Sequence[Datum], instant: StateInstant) -> Datum:
        """The last matching call that ended in it; unknown at its start."""
        if instant is not self.now or instant.__class__ is CutOffInstant:
            return NOT_RECORDED
        for one in self.log.ended_between(self.first, self.last, pattern.events):
            if self.is_one(one, pattern, wanted):
                return one
        return NOT_RECORDED
