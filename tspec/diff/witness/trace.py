"""The trace of a synthetic job: the records that its ranks would write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tspec.builtin.kinds import PASSING
from tspec.diff.witness.job import (
    InnerCall,
    PartialTensor,
    Subject,
    SyntheticJob,
    Value,
    WindowEdge,
    settled,
)
from tspec.logic.encode import ALWAYS
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Rule
from tspec.resolve.program.walk import Part, children
from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Finish,
    Phase,
    Record,
    Sample,
    Stream,
    Trace,
)
from tspec.values import STEP_OF_RUN


def trace_of(job: SyntheticJob, returns: Sequence[bool], instant: bool) -> Trace:
    """The trace of a job.

    `returns`: for each rank whether its last window has an end. `instant`: the rules read before the call.
    """
    streams = tuple(
        _RankWriter(job, rank, instant).stream(ends) for rank, ends in enumerate(returns)
    )
    only = job.context.get(WindowEdge(0, 0, False), {}).get("rank")
    if job.members == 1 and isinstance(only, int) and 0 < only < 64:
        return Trace((replace(streams[0], rank=only),), only + 1)
    return Trace(streams, job.members)


@dataclass(slots=True)
class _RankWriter:
    """Writes one rank's records."""

    job: SyntheticJob
    rank: int
    instant: bool
    seq: int = 0
    calls: int = 0
    context: Context = field(default_factory=Context)
    records: list[Record] = field(default_factory=list)

    def stream(self, returns: bool) -> Stream:
        """All subjects, then one window after the other."""
        job = self.job
        self.seq = 1
        first = WindowEdge(self.rank, -job.earlier)
        self.context = self._context(replace(first, start=True))
        self._groups()
        self._sample("context", "", {})
        for kind, name in job.subjects:
            if kind not in PASSING:
                self._sample(kind, name, {})
        if job.rule.window.span == "run":
            self._state(replace(first, start=True))
        epoch = None
        self._begin_run()
        for window in range(-job.earlier, 1):
            at = WindowEdge(self.rank, window)
            self.context = self._context(replace(at, start=True))
            turned, epoch = epoch != self.context.epoch, self.context.epoch
            self._open(at, turned)
            self._window(at, returns or window < 0)
        if returns:
            self.seq += 1
            self.records.append(Finish(self.seq, self.context))
        return Stream(self.rank, tuple(self.records))

    def _groups(self) -> None:
        everyone = tuple(range(self.job.members))
        for clause in self.job.rule.across:
            if isinstance(clause, rules.Axis):
                self._sample("group", clause.name, {"ranks": everyone})

    def _begin_run(self) -> None:
        """The first step of the run, where `run.step` is to have a value in the last window."""
        for at in (WindowEdge(self.rank, 0), WindowEdge(self.rank, 0, True)):
            place = self._of_context(at).get(STEP_OF_RUN)
            if isinstance(place, int):
                first = self._context(at).step - place + 1
                self.seq += 1
                now = replace(self.context, step=first)
                self.records.append(Boundary(self.seq, now, "step", first))
                return

    def _open(self, at: WindowEdge, new_epoch: bool) -> None:
        """Boundaries of the spans that open, and the state at the start of the rule's own."""
        step, epoch = self.context.step, self.context.epoch
        spans = [("step", step), ("epoch", epoch), ("microbatch", self.context.microbatch)]
        own = self.job.rule.window.span
        if own == "epoch":  # An epoch closes when the next one opens, and reads the last samples.
            spans = [spans[1], spans[0], spans[2]]
        for span, index in spans:
            if span != "epoch" or new_epoch:
                self.seq += 1
                self.records.append(Boundary(self.seq, self.context, span, index))  # type: ignore[arg-type]
            if span == own:
                self._state(replace(at, start=True))

    def _window(self, at: WindowEdge, returns: bool) -> None:
        """One window: its calls, and the state at its end; of a call also the state at its start."""
        kind = self.job.rule.window.kind
        start, end = replace(at, start=True), at
        if kind == "each":
            self._inner(at)
            self._turn(end)
            return
        if kind in ("before", "after"):  # The window of an instant is the step so far.
            self._inner(at)
        if self.instant:
            self._turn(end)
        else:
            self.seq += 1
            self._state(start)
        number = self._begin(at)
        if kind in ("during", "calls"):
            self._inner(at, number)
        if not self.instant:
            self._turn(end)
        if returns:
            self._end(number, at)

    def _turn(self, at: WindowEdge) -> None:
        """The state and the context at the end of the window."""
        self.seq += 1
        self.context = self._context(at)
        self._state(at)

    def _sample(self, kind: str, subject: str, fields: Mapping[str, Any]) -> None:
        self.records.append(Sample(self.seq, self.context, kind, subject, dict(fields)))

    # --- state ----------------------------------------------------------------------------------

    def _state(self, at: WindowEdge) -> None:
        context = {k: v for k, v in self._of_context(at).items() if k not in ALWAYS}
        self._sample("context", "", context)
        for subject in self.job.subjects:
            self._subject(subject, at)

    def _subject(self, subject: Subject, at: WindowEdge) -> None:
        kind, name = subject
        fields = settled(self._fields(subject, at))
        if kind not in PASSING:
            self._sample(kind, name, fields)
        elif at.start == (self.job.rule.window.kind == "each"):
            own = name if at.window == 0 else f"{name}{at.window}"
            self._sample(kind, own, fields)

    def _fields(self, subject: Subject, at: WindowEdge) -> Mapping[str, Value]:
        """The fields at a position. An earlier window takes the fields that it lacks from the last
        window.
        """
        own = self.job.state.get(at, {}).get(subject, {})
        if at.window == 0:
            return own
        last = self.job.state.get(replace(at, window=0), {}).get(subject, {})
        return _over(last, own)

    def _of_context(self, at: WindowEdge) -> Mapping[str, Any]:
        last = self.job.context.get(replace(at, window=0), {})
        return {**last, **self.job.context.get(at, {})}

    def _context(self, at: WindowEdge) -> Context:
        """Step, epoch, microbatch and phase at a position; each earlier window is one stride before."""
        put = self.job.context.get(at, {})
        last = {
            **self.job.context.get(replace(at, window=0, start=not at.start), {}),
            **self.job.context.get(replace(at, window=0), {}),
        }
        every = self.job.rule.window.every
        unit = self.job.rule.window.span or (every.unit if every is not None else "step")
        stride = self.job.stride

        def number(name: str, default: int) -> int:
            if isinstance(put.get(name), int):
                return int(put[name])
            whole = int(last.get(name, default))
            moves = name == unit or (name == "step" and unit != "epoch")
            return max(0, whole + at.window * (stride if name == unit else 1)) if moves else whole

        phase: Phase = "eval" if put.get("phase", last.get("phase")) == "eval" else "train"
        first = (self.job.earlier + 1) * (stride if unit == "step" else 1)
        epoch = self.job.earlier * stride if unit == "epoch" else 0
        return Context(
            number("step", first), number("epoch", epoch), number("microbatch", 0), phase
        )

    # --- calls ----------------------------------------------------------------------------------

    def _begin(self, at: WindowEdge) -> int:
        event = self.job.rule.window.event
        assert event is not None
        return self._call(event.events[0], self._call_fields(at), None)

    def _call_fields(self, at: WindowEdge) -> dict[str, Value]:
        last = self.job.call.get((at.rank, 0), {})
        fields = _over(last, self.job.call.get((at.rank, at.window), {}))
        for clause in self.job.rule.across:
            if isinstance(clause, rules.GroupField) and isinstance(clause.value, rules.Field):
                fields.setdefault(clause.value.name, tuple(range(self.job.members)))
        return fields

    def _call(self, event: str, fields: Mapping[str, Value], parent: int | None) -> int:
        self.seq += 1
        self.calls += 1
        late = self._results(event)
        early = {name: value for name, value in settled(fields).items() if name not in late}
        self.records.append(
            Begin(self.seq, self.context, self.calls, parent, event, self._callable(event), early)
        )
        return self.calls

    def _end(self, number: int, at: WindowEdge) -> None:
        event = self.job.rule.window.event
        assert event is not None
        self._return(number, event.events[0], self._call_fields(at))

    def _return(self, number: int, event: str, fields: Mapping[str, Value]) -> None:
        self.seq += 1
        late = self._results(event)
        found = {name: value for name, value in settled(fields).items() if name in late}
        self.records.append(End(self.seq, self.context, number, found))

    def _inner(self, at: WindowEdge, parent: int | None = None) -> None:
        last = self.job.inner.get((at.rank, 0), [])
        calls: list[InnerCall] = self.job.inner.get((at.rank, at.window), last)
        for call in calls:
            number = self._call(call.event, call.fields, parent)
            self._return(number, call.event, call.fields)

    def _results(self, event: str) -> frozenset[str]:
        """The fields computed from the call's result."""
        declared = self.job.vocabulary.event(event)
        fields = declared.fields if declared is not None else ()
        return frozenset(each.name for each in fields if each.reads_result)

    def _callable(self, event: str) -> str:
        declared = self.job.vocabulary.event(event)
        return declared.callables[0] if declared is not None and declared.callables else event


def _over(last: Mapping[str, Value], own: Mapping[str, Value]) -> dict[str, Value]:
    """Fields of the last window, overridden by a window's own; features of tensors one by one."""
    found = dict(last)
    for name, value in own.items():
        below = found.get(name)
        if isinstance(value, PartialTensor) and isinstance(below, PartialTensor):
            value = _merged(below, value)
        if isinstance(value, tuple) and isinstance(below, tuple) and len(value) == len(below):
            pairs = zip(below, value, strict=True)
            value = tuple(
                _merged(one, other)
                if isinstance(one, PartialTensor) and isinstance(other, PartialTensor)
                else other
                for one, other in pairs
            )
        found[name] = value
    return found


def _merged(below: PartialTensor, above: PartialTensor) -> PartialTensor:
    return PartialTensor({**below.features, **above.features})


MOST_WINDOWS = 130


def earlier_windows(rules_: tuple[Rule, ...]) -> int:
    """The number of earlier windows that the rules read; at most MOST_WINDOWS."""
    conditions = [
        condition
        for rule in rules_
        for condition in (rule.when, getattr(rule.expect, "condition", None))
        if condition is not None
    ]
    return min(max(map(_looked_back, conditions), default=0), MOST_WINDOWS)


def _looked_back(part: Part) -> int:
    below = max(map(_looked_back, children(part)), default=0)
    match part:
        case rules.Previous():
            return below + 1
        case rules.First():
            return max(below, 1)
        case rules.Fold(over=over) if over is not None:
            return below + over.count
    return below
