"""The checker of jobs over a recorded trace: the code that runs in a job, driven by its recording.

Each rank's checker takes the same paths as in a job, and an observer sees each of its decisions.
Ranks are played one after another, so their exchanged packets are combined when all have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tspec.check.verdicts import Decision, Instance, Verdicts
from tspec.reasons import VERDICTS
from tspec.resolve.program.rules import Program, Rule, Vocabulary
from tspec.runtime import edges
from tspec.runtime.checker import Checker, CheckerOptions
from tspec.runtime.ranks import wire
from tspec.runtime.ranks.allgather import AllGather, Round
from tspec.runtime.ranks.packets import Packet
from tspec.runtime.ranks.sync import SyncPolicy
from tspec.runtime.results import InstanceResult
from tspec.runtime.state import RuleState
from tspec.runtime.transfers import Transfer
from tspec.runtime.values import NOT_RECORDED
from tspec.trace import model
from tspec.values import Datum


class StreamSource:
    """One rank's recording as a source: everything is answered as of the record that was reached."""

    staggered = False
    joined = False
    transfer: Transfer | None = None
    in_empty_step = False

    def __init__(
        self, stream: model.Stream, world: int, last_groups: Mapping[tuple[int, str], Datum]
    ) -> None:
        self.rank = stream.rank
        self.world = world
        self.seq = stream.records[0].seq
        self.context = stream.records[0].context
        self.last = self.context
        self.location: model.Location | None = None
        self.calls_return = _is_nested(stream)
        opened = (
            r.index for r in stream.records if isinstance(r, model.Boundary) and r.span == "step"
        )
        self.first_step = next(opened, None)
        self._last_groups = last_groups
        self._columns: dict[tuple[str, str], dict[str, Datum]] = {}
        self._firsts: dict[tuple[str, str], dict[str, Datum]] = {}
        self._present: dict[str, dict[str, bool]] = {}
        self._born: dict[str, dict[str, int]] = {}
        self.units: dict[tuple[str, str], tuple[int, int]] = {}
        """The (step, epoch) of each subject's first sample."""
        self.version = 0
        """The number of samples so far that changed a field that is no tensor."""

    @property
    def past(self) -> StreamSource:
        """The recording itself, which keeps all history."""
        return self

    def apply(self, sample: model.Sample) -> None:
        """State was sampled."""
        kind, subject = sample.kind, sample.subject
        key = (kind, subject)
        if key not in self.units:
            self._born.setdefault(kind, {})[subject] = sample.seq
            self.units[key] = (sample.context.step, sample.context.epoch)
        self._present.setdefault(kind, {})[subject] = not sample.gone
        for name, value in sample.fields.items():
            column = self._columns.setdefault((kind, name), {})
            changed = subject not in column or column[subject] != value
            if changed and not isinstance(value, model.Tensor):
                self.version += 1
            column[subject] = value
            self._firsts.setdefault((kind, name), {}).setdefault(subject, value)

    def ambient(self, name: str) -> Datum:
        """Another context value."""
        return self._columns.get(("context", name), {}).get("", NOT_RECORDED)

    def subjects(self, kind: str) -> Sequence[str]:
        """The subjects that exist, in the order of their first samples."""
        return [name for name, here in self._present.get(kind, {}).items() if here]

    def fields(self, kind: str, name: str) -> Mapping[str, Datum]:
        """The last sample of a field."""
        return self._columns.get((kind, name), {})

    def features(
        self, tensors: Sequence[Datum], names: tuple[str, ...]
    ) -> Sequence[Mapping[str, Datum]]:
        """The recorded features of each tensor."""
        return [{name: _feature(tensor, name) for name in names} for tensor in tensors]

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of which a group was sampled."""
        return tuple(self._columns.get(("group", "ranks"), {}))

    def groups(self) -> dict[str, tuple[int, ...]]:
        """This rank's group on each axis, as last sampled."""
        known = {axis: self.ranks(axis) for axis in self.axes}
        return {axis: ranks for axis, ranks in known.items() if ranks is not None}

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

    def first(self, kind: str, name: str) -> Mapping[str, Datum]:
        """Each field as it was first sampled."""
        return self._firsts.get((kind, name), {})

    def ever(self, kind: str) -> Sequence[str]:
        """All subjects of a kind that there ever were, in the order of their first samples."""
        return tuple(self._born.get(kind, {}))


def _feature(tensor: Datum, name: str) -> Datum:
    value = getattr(tensor, name, None) if isinstance(tensor, model.Tensor) else None
    return NOT_RECORDED if value is None else value


def _ranks(value: Datum) -> tuple[int, ...] | None:
    if not isinstance(value, (tuple, frozenset)):
        return None
    return tuple(each for each in value if isinstance(each, int))


@dataclass(slots=True)
class _Player:
    """Plays one stream to a sink."""

    source: StreamSource
    sink: Checker
    calls: dict[int, edges.WatchedCall]

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
            self.sink.ends_early(self.source)

    def _fire(self, record: model.Record) -> None:
        sink, source = self.sink, self.source
        if isinstance(record, model.Begin):
            parent = None if record.parent is None else self.calls.get(record.parent)
            call = edges.WatchedCall(
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
            source.in_empty_step = record.empty_step
            sink.finish(source)

    def _end(self, record: model.End) -> None:
        call = self.calls.get(record.call)
        if call is None:
            return
        call.fields.update(record.fields)
        call.end, call.error = record.seq, record.error
        self.sink.end(call, self.source)


class _DeferredExchange(AllGather):
    """An all-gather that keeps a rank's packets until all ranks have ended."""

    def __init__(self, others: bool) -> None:
        super().__init__()
        self._others = others
        self.packets: list[Packet] = []
        self.sent: list[bytes] = []

    def ready(self) -> bool:
        """True if other ranks were recorded."""
        return self._others

    def give(self, packet: Packet) -> None:
        """Keep something for the other ranks."""
        self.packets.append(packet)
        self.sent.append(wire.encode([packet]))


class _SequentialPolicy(SyncPolicy):
    """Sync policy of ranks that are played one after another: no rank waits for packets of others."""

    def __init__(self, exchange: _DeferredExchange) -> None:
        super().__init__(exchange, needed=False, say=_unread)
        self.exchange = exchange

    def run_ends(self, packet: Packet, more: Packet) -> Iterator[Round]:
        """Give something at the end."""
        self.exchange.give(packet)
        return iter(())


@dataclass(slots=True)
class _ReplayedRank:
    """One rank's checker after it has played its stream."""

    checker: Checker
    source: StreamSource
    exchange: _DeferredExchange
    seen: list[InstanceResult]
    finished: bool


def check(
    rules: Sequence[Rule], trace: model.Trace, vocabulary: Vocabulary | None = None
) -> Verdicts:
    """The verdict of every instance of the rules in a trace, by the checker of jobs.

    Raises CannotCompile for rules that have no code, RuntimeError where a hook fails, and AssertionError
    where the checker counted other than it decided.
    """
    # Drafts only warn: whatever a rule asks for, the recording is played to its end.
    drafts = tuple(replace(rule, draft=True) for rule in rules)
    program = Program(drafts, vocabulary or Vocabulary((), (), (), ()))
    ranks = _play(program, trace)
    seen = [outcome for rank in ranks for outcome in rank.seen]
    decided: list[Decision] = []
    for number, rule in enumerate(rules):
        found = [_decided(rule, one) for one in seen if one.rule == number]
        _match([rank.checker.rules[number] for rank in ranks], found)
        decided += sorted(found, key=lambda one: one.instance)
    return Verdicts(tuple(decided))


def _match(rules: Sequence[RuleState], decided: Sequence[Decision]) -> None:
    """The verdicts and reasons that a job would report match the decisions. `rules`: a rule on each rank."""
    counted = Counter(
        {verdict: sum(each.counts[verdict] for each in rules) for verdict in VERDICTS}
    )
    assert +counted == Counter(one.verdict for one in decided), (counted, decided)
    reasons = sum((each.reasons for each in rules), Counter[str]())
    undecided = [one for one in decided if one.verdict in ("idle", "unknown")]
    assert reasons == Counter(one.reason for one in undecided if one.reason), (reasons, undecided)


def _play(program: Program, trace: model.Trace) -> list[_ReplayedRank]:
    from tspec.targets.load import load  # the code generator, which only this way of checking needs

    module = load(program)
    streams = sorted(
        (stream for stream in trace.streams if stream.worker is None and stream.records),
        key=lambda stream: stream.rank,
    )
    groups = _last_groups(streams)
    ranks = []
    for stream in streams:
        source = StreamSource(stream, trace.world, groups)
        exchange, seen = _DeferredExchange(len(streams) > 1), list[InstanceResult]()
        options = CheckerOptions(
            observer=seen.append, sync=_SequentialPolicy(exchange), tell=_unread, warn=_unread
        )
        checker = Checker(module, options)
        _Player(source, checker, {}).play(stream)
        finished = any(isinstance(record, model.Finish) for record in stream.records)
        ranks.append(_ReplayedRank(checker, source, exchange, seen, finished))
    gone = [rank.source.rank for rank in ranks if not rank.finished]
    for rank in ranks:
        rank.checker.decide_rest(_rounds(ranks, trace.world, rank), gone, rank.source)
        if rank.checker.faults:
            raise RuntimeError("\n".join(rank.checker.faults))
    return ranks


def _rounds(ranks: Sequence[_ReplayedRank], world: int, own: _ReplayedRank) -> Iterator[Round]:
    """The n-th packets of all ranks, as one rank receives them. Its own are objects; those of the
    others are decoded from bytes.
    """
    sent = {rank.source.rank: rank.exchange.sent for rank in ranks}
    for number in range(max(map(len, sent.values()), default=0)):
        found = [
            [
                packet
                for text in sent.get(rank, [])[number : number + 1]
                for packet in wire.decode(text)
            ]
            for rank in range(world)
        ]
        found[own.source.rank] = own.exchange.packets[number : number + 1]
        yield found


def _unread(message: str) -> None:
    """Discards the checker's messages: findings are observed, and faults are kept."""


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


def _last_groups(streams: Sequence[model.Stream]) -> dict[tuple[int, str], Datum]:
    """The last sample of every rank's groups."""
    found: dict[tuple[int, str], Datum] = {(stream.rank, ""): () for stream in streams}
    for stream in streams:
        for record in stream.records:
            if (
                isinstance(record, model.Sample)
                and record.kind == "group"
                and "ranks" in record.fields
            ):
                found[stream.rank, record.subject] = record.fields["ranks"]
    return found


def _decided(rule: Rule, outcome: InstanceResult) -> Decision:
    key = Instance(rule.qualified, outcome.ranks, outcome.at, outcome.subjects)
    at = outcome.location
    return Decision(key, outcome.verdict, outcome.reason, outcome.values, outcome.step, at)
