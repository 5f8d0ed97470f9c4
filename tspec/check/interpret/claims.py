"""The claims that are no expressions: `A before B`, `contains E`, `x only during A or B`.

Page: "Claims".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tspec import reasons
from tspec.check.interpret.calls import ancestors, calls_in_window, wanted
from tspec.check.interpret.expressions import evaluate, reader
from tspec.check.interpret.folds import feature
from tspec.check.interpret.frames import EvaluationContext
from tspec.check.interpret.timeline import Moment, TimelineCall
from tspec.check.interpret.values import Datum
from tspec.reasons import Verdict
from tspec.resolve.program.rules import Contains, EventPattern, OnlyDuring, Ordered
from tspec.trace.model import Missing


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The verdict of a claim or condition on one rank, and the reason if it is unknown."""

    verdict: Verdict
    reason: str = ""


CUT_OFF = ClaimResult("unknown", reasons.CUT_OFF)


def claim(expect: Ordered | Contains | OnlyDuring, frame: EvaluationContext) -> ClaimResult:
    """Decide a claim in a frame, as far as a window that is cut off lets it."""
    cut_off = frame.local.window.close is None
    reading = EvaluationContext(frame.local.reading(), frame.instance)
    if isinstance(expect, Contains):
        if _calls(expect.event, frame, reading):
            return ClaimResult("holds")
        return CUT_OFF if cut_off else ClaimResult("violated")
    if isinstance(expect, Ordered):
        found = _ordered(expect, frame, reading)
        return CUT_OFF if cut_off and found.verdict != "violated" else found
    if cut_off:
        return CUT_OFF
    return _changes_in(expect, frame)[0] if expect.change else _call_only_in(expect, frame)


def _calls(
    event: EventPattern, frame: EvaluationContext, reading: EvaluationContext
) -> list[TimelineCall]:
    """The calls in the window; filters are read up to the last record if it is cut off."""
    return calls_in_window(frame.local, [wanted(event, reader(reading))])


def _ordered(expect: Ordered, frame: EvaluationContext, reading: EvaluationContext) -> ClaimResult:
    """Each B in the window has an A in it that has ended before B begins."""
    pairs = _pairs(expect, frame, reading)
    if _first_too_early(pairs) is not None:
        return ClaimResult("violated")
    return ClaimResult("holds" if any(seconds for _, seconds in pairs) else "idle")


def too_early(expect: Ordered, frame: EvaluationContext) -> TimelineCall | None:
    """The first call in the window that comes before the call that must precede it."""
    return _first_too_early(
        _pairs(expect, frame, EvaluationContext(frame.local.reading(), frame.instance))
    )


def changed_before(expect: OnlyDuring, frame: EvaluationContext) -> TimelineCall | None:
    """The call at whose begin the first change outside of the calls is seen; None: at the window's end."""
    return _changes_in(expect, frame)[1]


def _pairs(
    expect: Ordered, frame: EvaluationContext, reading: EvaluationContext
) -> list[tuple[list[TimelineCall], list[TimelineCall]]]:
    """The calls of each event, paired with those of the event that must follow it."""
    events = expect.events if expect.edge == "before" else tuple(reversed(expect.events))
    return list(pairwise(_calls(event, frame, reading) for event in events))


def _first_too_early(
    pairs: Sequence[tuple[list[TimelineCall], list[TimelineCall]]],
) -> TimelineCall | None:
    for firsts, seconds in pairs:
        for second in seconds:
            if not any(first.ended(second.begin.seq) for first in firsts):
                return second
    return None


def _call_only_in(expect: OnlyDuring, frame: EvaluationContext) -> ClaimResult:
    """Some call of A or B encloses the call."""
    call, moment = evaluate(expect.subject, frame), frame.moment
    if not isinstance(call, TimelineCall) or moment is None:
        return ClaimResult("unknown", Missing.NOT_RECORDED.value)
    patterns = [wanted(event, reader(frame)) for event in expect.events]
    enclosed = any(
        pattern.matches(outer, frame.local.line, moment.seq)
        for outer in ancestors(frame.local.line, call)
        for pattern in patterns
    )
    return ClaimResult("holds" if enclosed else "violated")


def _changes_in(
    expect: OnlyDuring, frame: EvaluationContext
) -> tuple[ClaimResult, TimelineCall | None]:
    """The claim holds if no two successive readings differ without a matching call running between
    them.

    Also returns the call whose begin is the later one of the first two readings that differ.
    """
    local, close = frame.local, frame.local.window.close
    assert close is not None
    patterns = [wanted(event, reader(frame)) for event in expect.events]
    calls = {call.begin.seq: call for call in calls_in_window(local, patterns)}
    running = [
        (begin, min(close.seq, call.end.seq if call.end is not None else close.seq))
        for begin, call in calls.items()
    ]
    edges = {seq for call in running for seq in call}
    instants = sorted({local.window.open.seq, *edges, close.seq})
    unknown: Missing | None = None
    for start, end in pairwise(instants):
        if any(begin <= start and end <= returned for begin, returned in running):
            continue
        outside = _differ(_digest(expect, frame, start), _digest(expect, frame, end))
        if outside is True:
            return ClaimResult("violated"), calls.get(end)
        if isinstance(outside, Missing):
            unknown = unknown or outside
    return ClaimResult("unknown", unknown.value) if unknown else ClaimResult("holds"), None


def _digest(expect: OnlyDuring, frame: EvaluationContext, seq: int) -> Datum:
    """The digest of the tensor at an instant of the window."""
    local, window = frame.local, frame.local.window
    at = replace(window, close=Moment(seq, window.open.context))
    read = EvaluationContext(replace(local, window=at), frame.instance)
    return feature("digest", evaluate(expect.subject, read))


def _differ(before: Datum, after: Datum) -> Datum:
    """Absent at both: no change; absent at one: a change."""
    absent = Missing.ABSENT
    for value in (before, after):
        if isinstance(value, Missing) and value is not absent:
            return value
    return before is not after if absent in (before, after) else before != after
