"""Generated hooks over a recorded trace: the code that runs in a job, driven by what a job left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tspec.check.verdicts import Decided, Instance, Verdicts
from tspec.resolve.program.rules import Program, Rule, Vocabulary
from tspec.runtime import edges
from tspec.runtime.job import Hooks
from tspec.runtime.meeting import Book, View, instances, others, settle
from tspec.runtime.values import NOT_RECORDED
from tspec.trace import model

if TYPE_CHECKING:
    from tspec.runtime.ledger import Outcome


class StreamSource:
    """One rank's recording as a source: everything is answered as of the record that was reached."""

    def __init__(
        self, stream: model.Stream, world: int, last_groups: Mapping[tuple[int, str], Any]
    ) -> None:
        self.rank = stream.rank
        self.world = world
        self.seq = stream.records[0].seq
        self.context = stream.records[0].context
        self.last = self.context
        self.location: model.Location | None = None
        self._last_groups = last_groups
        self._columns: dict[tuple[str, str], dict[str, Any]] = {}
        self._firsts: dict[tuple[str, str], dict[str, Any]] = {}
        self._present: dict[str, dict[str, bool]] = {}
        self._born: dict[str, dict[str, int]] = {}
        self.units: dict[tuple[str, str], tuple[int, int]] = {}
        """(step, epoch) in which each subject was first sampled."""

    def apply(self, sample: model.Sample) -> None:
        """State was sampled."""
        kind, subject = sample.kind, sample.subject
        key = (kind, subject)
        if key not in self.units:
            self._born.setdefault(kind, {})[subject] = sample.seq
            self.units[key] = (sample.context.step, sample.context.epoch)
        self._present.setdefault(kind, {})[subject] = not sample.gone
        for name, value in sample.fields.items():
            self._columns.setdefault((kind, name), {})[subject] = value
            self._firsts.setdefault((kind, name), {}).setdefault(subject, value)

    def ambient(self, name: str) -> Any:
        """Another context value."""
        return self._columns.get(("context", name), {}).get("", NOT_RECORDED)

    def subjects(self, kind: str) -> Sequence[str]:
        """Those that exist, in the order of their first samples."""
        return [name for name, here in self._present.get(kind, {}).items() if here]

    def fields(self, kind: str, name: str) -> Mapping[str, Any]:
        """What was last sampled of a field."""
        return self._columns.get((kind, name), {})

    def features(
        self, tensors: Sequence[Any], names: tuple[str, ...]
    ) -> Sequence[Mapping[str, Any]]:
        """What was recorded of each tensor."""
        return [{name: _feature(tensor, name) for name in names} for tensor in tensors]

    def ranks(self, axis: str) -> tuple[int, ...] | None:
        """This rank's group on an axis, as last sampled."""
        return _ranks(self._columns.get(("group", "ranks"), {}).get(axis))

    def peers(self, rank: int, axis: str) -> tuple[int, ...]:
        """Another rank's group on an axis, as of its last record."""
        if axis == "world":
            return tuple(range(self.world)) if (rank, "") in self._last_groups else ()
        return _ranks(self._last_groups.get((rank, axis))) or ()

    def born(self, kind: str) -> Mapping[str, int]:
        """The instant of each subject's first sample."""
        return self._born.get(kind, {})

    def first(self, kind: str, name: str) -> Mapping[str, Any]:
        """Each field as it was first sampled."""
        return self._firsts.get((kind, name), {})

    def ever(self, kind: str) -> Sequence[str]:
        """All subjects of a kind that there ever were, in the order of their first samples."""
        return tuple(self._born.get(kind, {}))


def _feature(tensor: Any, name: str) -> Any:
    value = getattr(tensor, name, None) if isinstance(tensor, model.Tensor) else None
    return NOT_RECORDED if value is None else value


def _ranks(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, (tuple, frozenset)):
        return None
    return tuple(each for each in value if isinstance(each, int))


@dataclass(slots=True)
class _Player:
    """Plays one stream to a sink."""

    source: StreamSource
    sink: Hooks
    calls: dict[int, edges.Call]

    def play(self, stream: model.Stream) -> None:
        records = stream.records
        before = records[0].context
        for seq, group in groupby(records, key=lambda record: record.seq):
            now = list(group)
            self.source.seq = seq
            self.source.last = before
            for record in now:
                if isinstance(record, model.Sample):
                    self.source.apply(record)
            if now[0] is records[0]:
                self.source.context = now[0].context
                self.sink.start(self.source)
            for record in now:
                self.source.context = record.context
                self._fire(record)
            before = now[-1].context
        if not isinstance(records[-1], model.Finish):
            self.sink.cut(self.source)

    def _fire(self, record: model.Record) -> None:
        sink, source = self.sink, self.source
        if isinstance(record, model.Begin):
            parent = None if record.parent is None else self.calls.get(record.parent)
            call = edges.Call(
                record.call,
                parent,
                record.event,
                record.callable,
                record.seq,
                source.context,
                dict(record.fields),
                location=record.location,
            )
            self.calls[record.call] = call
            sink.begin(call, source)
        elif isinstance(record, model.End):
            self._end(record)
        elif isinstance(record, model.Boundary):
            source.location = record.location
            sink.boundary(record.span, record.index, source)
        elif isinstance(record, model.Finish):
            source.location = record.location
            sink.finish(source)

    def _end(self, record: model.End) -> None:
        call = self.calls.get(record.call)
        if call is None:
            return
        call.fields.update(record.fields)
        call.end, call.error = record.seq, record.error
        self.sink.end(call, self.source)


def check(
    rules: Sequence[Rule], trace: model.Trace, vocabulary: Vocabulary | None = None
) -> Verdicts:
    """The verdict of every instance of the rules in a trace, by generated hooks.

    Raises CannotCompile for rules that have no code.
    """
    program = Program(tuple(rules), vocabulary or Vocabulary((), (), (), ()))
    sinks, views = _replay(program, trace)
    decided: list[Decided] = []
    for number, rule in enumerate(rules):
        found = [outcome for sink in sinks.values() for outcome in sink.rules[number].outcomes]
        found += _together(number, sinks, views)
        decided += sorted((_decided(rule, one) for one in found), key=lambda one: one.instance)
    names = {one.instance.rule for one in decided}
    without = tuple(rule.qualified for rule in rules if rule.qualified not in names)
    return Verdicts(tuple(decided), without)


def _replay(program: Program, trace: model.Trace) -> tuple[dict[int, Hooks], dict[int, View]]:
    from tspec.targets.load import load  # the code generator, which only this way of checking needs

    module = load(program)
    sinks: dict[int, Hooks] = {}
    views: dict[int, View] = {}
    streams = [stream for stream in trace.streams if stream.worker is None and stream.records]
    groups = _last_groups(streams)
    for stream in sorted(streams, key=lambda stream: stream.rank):
        sink = Hooks(module, logging=True, collect=True, ends=_is_nested(stream))
        source = StreamSource(stream, trace.world, groups)
        _Player(source, sink, {}).play(stream)
        sinks[stream.rank] = sink
        views[stream.rank] = _view(stream, source, sink)
    return sinks, views


def _is_nested(stream: model.Stream) -> bool:
    """Every call that began has returned, and lies in the one that was running, as on a single thread."""
    running: list[int] = []
    for record in stream.records:
        if isinstance(record, model.Begin):
            if record.parent != (running[-1] if running else None):
                return False
            running.append(record.call)
        elif isinstance(record, model.End) and (not running or running.pop() != record.call):
            return False
    return not running


def _last_groups(streams: Sequence[model.Stream]) -> dict[tuple[int, str], Any]:
    """The last sample of every rank's groups."""
    found: dict[tuple[int, str], Any] = {(stream.rank, ""): () for stream in streams}
    for stream in streams:
        for record in stream.records:
            if (
                isinstance(record, model.Sample)
                and record.kind == "group"
                and "ranks" in record.fields
            ):
                found[stream.rank, record.subject] = record.fields["ranks"]
    return found


def _view(stream: model.Stream, source: StreamSource, sink: Hooks) -> View:
    return View(
        source.units,
        (
            max(record.context.step for record in stream.records),
            max(record.context.epoch for record in stream.records),
        ),
        any(isinstance(record, model.Finish) for record in stream.records),
        {rule.declared.number: rule.windows for rule in sink.rules},
        {rule.declared.number: rule.places for rule in sink.rules},
    )


def _together(number: int, sinks: Mapping[int, Hooks], views: Mapping[int, View]) -> list[Outcome]:
    """The outcomes of a rule that looks across ranks, back in time, or once."""
    entries = [entry for sink in sinks.values() for entry in sink.rules[number].entries]
    if not entries:
        return []
    program = next(iter(sinks.values())).program
    joint, book = program.joints[number], Book()
    found = []
    groups = {
        key: ranks for sink in sinks.values() for key, ranks in sink.rules[number].groups.items()
    }
    for each in instances(joint.declared, entries, groups):
        alone = each[0].no_group or not joint.declared.across
        found.append(
            settle(joint, each, others(joint.declared, each, views) if not alone else None, book)
        )
    return found


def _decided(rule: Rule, outcome: Outcome) -> Decided:
    key = Instance(rule.qualified, outcome.ranks, outcome.at, outcome.subjects)
    at = outcome.location
    return Decided(key, outcome.verdict, outcome.reason, outcome.values, outcome.step, at)
