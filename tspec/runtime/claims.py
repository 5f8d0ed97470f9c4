"""The claims that are no conditions: `A before B`, `contains E`, `x only during A or B`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from tspec.reasons import CUT_OFF
from tspec.runtime.calls.call import CallRecord, Pattern, outermost
from tspec.runtime.cut_off import CutOffInstant
from tspec.runtime.edges import Missing
from tspec.runtime.instant import StateInstant
from tspec.runtime.results import IDLE
from tspec.runtime.values import ABSENT, NOT_RECORDED, missing_in
from tspec.runtime.windows import RuleWindow
from tspec.values import Datum

Wanted = tuple[Pattern, Sequence[Datum]]
"""A pattern, and the values that its fields are to have."""


def contains(w: RuleWindow, pattern: Pattern, wanted: Sequence[Datum]) -> Datum:
    """Some matching call began in the window."""
    if w.begun(pattern, wanted):
        return True
    return CUT_OFF if w.cut else False


def in_order(w: RuleWindow, *events: Wanted) -> Datum:
    """Each call of a later event has one of the event before it that ended before it began."""
    w.broken_at = None
    calls = [w.begun(pattern, wanted) for pattern, wanted in events]
    pairs = list(itertools.pairwise(calls))
    for firsts, seconds in pairs:
        ends = [one.end for one in firsts if one.end is not None]
        for second in seconds:
            if not any(end <= second.begin for end in ends):
                w.broken_at = second
                return False
    if w.cut:
        return CUT_OFF
    return True if any(seconds for _, seconds in pairs) else IDLE


def call_only_during(w: RuleWindow, call: Datum, *events: Wanted) -> Datum:
    """Some matching call encloses the call."""
    if w.cut:
        return CUT_OFF
    if call.__class__ is not CallRecord:
        return NOT_RECORDED
    enclosing = w.log.enclosing(call)
    return any(
        w.is_one(outer, pattern, wanted) for outer in enclosing for pattern, wanted in events
    )


def change_only_during(
    w: RuleWindow,
    readings: Sequence[StateInstant],
    read: Callable[[StateInstant], Datum],
    *events: Wanted,
) -> Datum:
    """True if `read` gives the same digest at both ends of every interval in which no matching call
    runs.
    """
    w.broken_at = None
    if w.cut or w.end.__class__ is CutOffInstant:
        return CUT_OFF
    calls, close = _running(w, events), w.end.seq
    running = [(one.begin, close if one.end is None else min(close, one.end)) for one in calls]
    instants = {one.seq: one for one in readings}
    instants[w.was.seq], instants[w.end.seq] = w.was, w.end
    edges = {seq for call in running for seq in call}
    seqs = sorted({w.was.seq, *edges, w.end.seq})
    unknown: Missing | None = None
    for start, end in itertools.pairwise(seqs):
        if any(begin <= start and end <= returned for begin, returned in running):
            continue
        outside = _differ(
            *(read(instants[seq]) if seq in instants else NOT_RECORDED for seq in (start, end))
        )
        if outside is True:
            w.broken_at = next((one for one in calls if one.begin == end), None)
            return False
        if isinstance(outside, Missing):
            unknown = unknown or outside
    return unknown or True


def _running(w: RuleWindow, events: Sequence[Wanted]) -> tuple[CallRecord, ...]:
    """The matching calls that began in the window. Of nested calls only the outermost count."""
    found: dict[int, CallRecord] = {}
    for pattern, wanted in events:
        if any(value.__class__ is Missing for value in wanted):
            continue
        for one in w.began(pattern.events, w.last):
            if w.is_one(one, pattern, wanted):
                found[one.begin] = one
    return outermost(sorted(found.values(), key=lambda one: one.begin))


def _differ(before: Datum, after: Datum) -> Datum:
    """Absent at both: no change; absent at one: a change."""
    for value in (before, after):
        if isinstance(value, Missing) and value is not ABSENT:
            return value
    if ABSENT in (before, after):
        return before is not after
    return missing_in(before) or missing_in(after) or before != after
