"""Traces as jobs leave them: random ones change all that there is at every instant.

- Within a forward pass what is no tensor stays as it is, and models are changed between steps: a job's checker
  reads such state once in a pass, and once in a step (`tspec/runtime/instant.py`). A subject that goes and comes back
  within a step is built as before.
- A call returns in the step in which it began, unless the recording is cut off there: ranks decide together when all
  have passed that step. A call that begins while another runs is made by that one.
- A step opens with a micro-batch, at the same instant; one opens where the number changes.
- A process group is known to all of its members: making one is a collective.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tspec.builtin.structure import STRUCTURE
from tspec.trace.model import Begin, Boundary, End, Finish, Record, Sample, Stream, Tensor, Trace


def steady(trace: Trace) -> Trace:
    """The same trace without what jobs do not do."""
    groups = {
        (stream.rank, one.subject): one
        for stream in trace.streams
        for one in stream.records
        if isinstance(one, Sample) and one.kind == "group"
    }
    return replace(
        trace,
        streams=tuple(
            replace(
                stream,
                records=(
                    *_joined(stream, groups),
                    *_changing(_with_microbatches(_stable(_returning(stream)))),
                ),
            )
            for stream in trace.streams
        ),
    )


def _joined(stream: Stream, groups: Mapping[tuple[int, str], Sample]) -> Iterator[Sample]:
    """The groups that other members know, and this rank has not recorded."""
    found: set[str] = set()
    for (_, name), group in groups.items():
        known = (stream.rank, name) in groups or name in found
        if not known and stream.rank in group.fields.get("ranks", ()):
            found.add(name)
            yield group


def _returning(stream: Stream) -> Iterator[Record]:
    """The records without calls that outlast their step, or overlap with one that did not make them."""
    end = stream.records[-1]
    never = None if isinstance(end, Finish) else end.context.step
    ends = {one.call: one.context.step for one in stream.records if isinstance(one, End)}
    left: dict[int, int | None] = {}
    running: list[int] = []
    for record in stream.records:
        if isinstance(record, Begin):
            parent = record.parent
            while parent is not None and parent in left:
                parent = left[parent]
            inside = running[-1] if running else None
            if ends.get(record.call, never) != record.context.step or parent != inside:
                left[record.call] = parent
                continue
            yield replace(record, parent=parent)
            running.append(record.call)
        elif not isinstance(record, End):
            yield record
        elif record.call not in left:
            running.remove(record.call)
            yield record


def _stable(records: Iterator[Record]) -> Iterator[Record]:
    """The records without changes that jobs do not look for."""
    forward: set[int] = set()
    known: set[tuple[str, str]] = set()
    left: dict[tuple[str, str], int] = {}
    for record in records:
        if isinstance(record, Begin) and record.event == "forward":
            forward.add(record.call)
        elif isinstance(record, End):
            forward.discard(record.call)
        elif isinstance(record, Sample) and record.kind in ("parameter", "module"):
            kept = _sampled(record, bool(forward), known, left)
            if kept is not None:
                yield kept
            continue
        yield record


def _with_microbatches(records: Iterator[Record]) -> Iterator[Record]:
    """The records with a micro-batch wherever a step opens."""
    lacking: Boundary | None = None
    for record in records:
        opened = isinstance(record, Boundary) and record.span == "microbatch"
        if lacking is not None and not (opened and record.seq == lacking.seq):
            yield lacking
        yield record
        opens = isinstance(record, Boundary) and record.span == "step" and record.index > 0
        lacking = _microbatch(record) if opens else None
    if lacking is not None:
        yield lacking


def _changing(records: Iterator[Record]) -> Iterator[Record]:
    """The records without a micro-batch that opens while the one of the same number is open."""
    number: int | None = None
    for record in records:
        if isinstance(record, Boundary) and record.span == "step":
            number = None
        elif isinstance(record, Boundary) and record.span == "microbatch":
            if record.index == number:
                continue
            number = record.index
        yield record


def _microbatch(step: Boundary) -> Boundary:
    """The one that opens with a step."""
    return replace(step, span="microbatch", index=step.context.microbatch)


def _sampled(
    record: Sample,
    in_forward: bool,
    known: set[tuple[str, str]],
    left: dict[tuple[str, str], int],
) -> Sample | None:
    """A sample as jobs make it, or None. `known` subjects exist; others that `left` did so in a step."""
    subject = (record.kind, record.subject)
    if in_forward:
        if subject not in known or record.gone:
            return None
        fields = {n: v for n, v in record.fields.items() if isinstance(v, Tensor)}
        return replace(record, fields=fields)
    new = subject not in known and left.get(subject) != record.context.step
    if record.gone:
        known.discard(subject)
        left[subject] = record.context.step
    else:
        known.add(subject)
    fields = {
        name: value
        for name, value in record.fields.items()
        if new or (record.kind, name) not in STRUCTURE
    }
    return replace(record, fields=fields)
