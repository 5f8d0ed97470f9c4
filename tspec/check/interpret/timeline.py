"""One rank's stream, arranged so that the value of a name at an instant can be looked up.

Page: "Time".
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Finish,
    Missing,
    Record,
    Sample,
    Stream,
    Value,
)


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant and its context."""

    seq: int
    context: Context


@dataclass(frozen=True, slots=True, eq=False)
class TimelineCall:
    """One watched call: from `begin` to `end`, or still running where that is None."""

    begin: Begin
    end: End | None

    def ended(self, seq: int) -> bool:
        """True if the call has returned, or raised, at that instant."""
        return self.end is not None and self.end.seq <= seq

    def field(self, name: str, seq: int) -> Value:
        """Argument fields from the begin, result fields from the end; read before it: not recorded."""
        if self.end is not None and self.ended(seq) and name in self.end.fields:
            return self.end.fields[name]
        return self.begin.fields.get(name, Missing.NOT_RECORDED)


@dataclass(slots=True)
class _SampleHistory:
    """The samples of one field of one subject."""

    seqs: list[int] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def add(self, seq: int, value: Value) -> None:
        self.seqs.append(seq)
        self.values.append(value)

    def at(self, seq: int) -> Value:
        place = bisect_right(self.seqs, seq)
        return self.values[place - 1] if place else Missing.NOT_RECORDED

    def first(self, seq: int) -> Value:
        return self.values[0] if self.seqs[0] <= seq else Missing.NOT_RECORDED


@dataclass(frozen=True, slots=True)
class Subject:
    """A thing with state, and the time of its existence: `presence` has for each sample whether the
    thing is gone.
    """

    kind: str
    name: str
    first: Sample
    order: int
    fields: Mapping[str, _SampleHistory]
    presence: _SampleHistory

    def exists(self, seq: int) -> bool:
        """True if the subject was sampled at or before that instant, and its last sample there is
        not `gone`.
        """
        return self.presence.at(seq) is True


class Timeline:
    """The recording of one rank. It does not change after construction."""

    def __init__(self, stream: Stream) -> None:
        self.rank = stream.rank
        self.records: Sequence[Record] = stream.records
        self.seqs = [record.seq for record in stream.records]
        self.calls = _calls(stream.records)
        self.numbers = {call.begin.call: call for call in self.calls}
        self.events: dict[str, list[TimelineCall]] = {}
        self.steps: dict[tuple[str, int], list[TimelineCall]] = {}
        """(event, step) -> the calls of the event that began in the step."""
        for call in self.calls:
            event = call.begin.event
            self.events.setdefault(event, []).append(call)
            self.steps.setdefault((event, call.begin.context.step), []).append(call)
        self.subjects = _subjects(stream.records)
        self.kinds: dict[str, list[Subject]] = {}
        for subject in self.subjects.values():
            self.kinds.setdefault(subject.kind, []).append(subject)
        self.boundaries = [r for r in stream.records if isinstance(r, Boundary)]
        self._openings = {
            span: [b.seq for b in self.boundaries if b.span == span]
            for span in ("step", "microbatch", "epoch")
        }
        opened = (b.index for b in self.boundaries if b.span == "step")
        self.first_step = next(opened, None)
        """The number of the step that opened first in this run; None if none did."""
        last = stream.records[-1] if stream.records else None
        self.finish = last if isinstance(last, Finish) else None
        empty = self.finish is not None and self.finish.empty_step
        self.empty_from = max(self._openings["step"], default=math.inf) if empty else math.inf
        """The instant at which an empty step at the run's end opened. Of the spans that the run's end closes,
        those from there on are no windows."""
        self.begin = _moment(stream.records[0]) if stream.records else None
        self.last = _moment(last) if last is not None else None

    def value(self, kind: str, name: str, attribute: str, seq: int) -> Value:
        """The value of a field at an instant: its last sample at or before it."""
        history = self._history(kind, name, attribute)
        return Missing.NOT_RECORDED if history is None else history.at(seq)

    def first_value(self, kind: str, name: str, attribute: str, seq: int) -> Value:
        """The first sample of a field, if it is at or before the instant."""
        history = self._history(kind, name, attribute)
        return Missing.NOT_RECORDED if history is None else history.first(seq)

    def _history(self, kind: str, name: str, attribute: str) -> _SampleHistory | None:
        subject = self.subjects.get((kind, name))
        return None if subject is None else subject.fields.get(attribute)

    def existing(self, kind: str, seq: int) -> list[Subject]:
        """The subjects of a kind at an instant, in the order of their first samples."""
        return [subject for subject in self.kinds.get(kind, []) if subject.exists(seq)]

    def calls_between(self, event: str, low: int, high: int) -> list[TimelineCall]:
        """The calls of an event with `low <= begin <= high`, in order."""
        calls = self.events.get(event, [])
        start = bisect_left(calls, low, key=_began)
        return calls[start : bisect_right(calls, high, key=_began)]

    def context_before(self, seq: int) -> Context:
        """The context of the last record before an instant."""
        place = bisect_left(self.seqs, seq)
        return self.records[max(place - 1, 0)].context

    def step_opening(self, seq: int) -> int:
        """The instant at which the step around an instant opened. In step 0: the first record."""
        openings = self._openings["step"]
        place = bisect_right(openings, seq)
        return openings[place - 1] if place else self.seqs[0]

    def microbatches(self, seq: int) -> int:
        """The number of microbatches that had opened at an instant."""
        return bisect_right(self._openings["microbatch"], seq)


def _began(call: TimelineCall) -> int:
    return call.begin.seq


def _moment(record: Record) -> Moment:
    return Moment(record.seq, record.context)


def _calls(records: Sequence[Record]) -> list[TimelineCall]:
    ends = {record.call: record for record in records if isinstance(record, End)}
    return [TimelineCall(r, ends.get(r.call)) for r in records if isinstance(r, Begin)]


def _subjects(records: Sequence[Record]) -> dict[tuple[str, str], Subject]:
    subjects: dict[tuple[str, str], Subject] = {}
    fields: dict[tuple[str, str], dict[str, _SampleHistory]] = {}
    for record in records:
        if not isinstance(record, Sample):
            continue
        key = (record.kind, record.subject)
        if key not in subjects:
            fields[key] = {}
            subjects[key] = Subject(
                record.kind, record.subject, record, len(subjects), fields[key], _SampleHistory()
            )
        for name, value in record.fields.items():
            fields[key].setdefault(name, _SampleHistory()).add(record.seq, value)
        subjects[key].presence.add(record.seq, not record.gone)
    return subjects
