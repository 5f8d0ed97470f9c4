"""The occurrences of a rule's window on one rank, before filters apply.


Page: "Time", on windows; "Instances", on thinning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tspec.check.interpret.calls import calls_of
from tspec.check.interpret.frames import Occurrence
from tspec.check.interpret.timeline import Moment, Timeline, TimelineCall
from tspec.resolve.program.rules import Duration, Window
from tspec.trace.model import Boundary


def occurrences(window: Window, line: Timeline) -> Iterator[Occurrence]:
    """Every call of the window's event, or every span, in order; those that `every` skips left out."""
    found = _spans(window, line) if window.kind == "each" else _calls(window, line)
    return (each for each in found if window.every is None or _is_taken(each, window.every))


def _calls(window: Window, line: Timeline) -> Iterator[Occurrence]:
    events = window.event.events if window.event is not None else ()
    for call in calls_of(line, events):
        found = of_call(window.kind, call)
        if found is not None:
            yield found


def of_call(kind: str, call: TimelineCall) -> Occurrence | None:
    """The window or instant that a call is; None after a call that never returned."""
    begin = Moment(call.begin.seq, call.begin.context)
    end = Moment(call.end.seq, call.end.context) if call.end is not None else None
    if kind == "before":
        return Occurrence("before", begin, begin, call)
    if kind == "after":
        return None if end is None else Occurrence("after", end, end, call)
    return Occurrence("during" if kind == "during" else "calls", begin, end, call)


def _spans(window: Window, line: Timeline) -> Iterator[Occurrence]:
    if window.span == "run":
        yield from _run(line)
        return
    openings = [b for b in line.boundaries if b.span == window.span]
    at = (-1, 0)
    for opening, following in zip(openings, [*openings[1:], line.finish], strict=False):
        if window.span == "step" and opening.index < 1:
            continue
        if following is line.finish and opening.seq >= line.empty_from:
            continue
        close = None
        if following is not None:
            close = Moment(following.seq, line.context_before(following.seq))
        ended_at = None if following is None else following.location
        at = _microbatch(opening, at) if window.span == "microbatch" else (opening.index, 0)
        opened = Moment(opening.seq, opening.context)
        yield Occurrence("each", opened, close, None, window.span, at, ended_at)


def _microbatch(opening: Boundary, before: tuple[int, int]) -> tuple[int, int]:
    """The place of a micro-batch: its number, or the place after the one before in its step, where that is greater."""
    step, number = opening.context.step, opening.index
    return (step, max(number, before[1] + 1) if before[0] == step else number)


def _run(line: Timeline) -> Iterator[Occurrence]:
    if line.begin is None:
        return
    close, ended_at = None, None
    if line.finish is not None:
        close = Moment(line.finish.seq, line.context_before(line.finish.seq))
        ended_at = line.finish.location
    yield Occurrence("each", line.begin, close, span="run", ended_at=ended_at)


def _is_taken(window: Occurrence, every: Duration) -> bool:
    """The number of its unit when the window opened is divisible."""
    context = _opened(window).context
    number = {"step": context.step, "epoch": context.epoch, "microbatch": context.microbatch}
    return number[every.unit] % every.count == 0


def _opened(window: Occurrence) -> Moment:
    """The opening of a window. For an instant after a call, it is the begin of the call."""
    if window.call is None:
        return window.open
    return Moment(window.call.begin.seq, window.call.begin.context)


def with_place(window: Occurrence, call: TimelineCall, place: int) -> Occurrence:
    """The occurrence, now that its place among the windows of its step is known."""
    return replace(window, at=(call.begin.context.step, place))
