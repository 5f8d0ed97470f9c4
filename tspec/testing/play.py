"""Plays a script: the trace that a recorder would leave of such a job.

Each edge of a call and each boundary is an instant, and so is each run of state changes between two
of them. A statement for all ranks gives all of them the same values and contents of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tspec.builtin.events import RETURNED
from tspec.builtin.features import OF_ELEMENTS
from tspec.resolve.program import scripts, types
from tspec.resolve.program.declarations import bare_event
from tspec.resolve.program.rules import EventDeclaration, FieldDeclaration, Vocabulary
from tspec.resolve.program.scripts import (
    CallStatement,
    Named,
    Script,
    ScriptValue,
    Statement,
    TensorValue,
)
from tspec.resolve.program.types import Entity, Optional
from tspec.source import Span
from tspec.testing.tensors import digest_of, tensor
from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Finish,
    Missing,
    Record,
    Ref,
    Sample,
    Stream,
    Tensor,
    Trace,
)


class CannotPlay(Exception):
    """A statement sets a part of a subject or tensor that does not exist. `span` is its place."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


def play(script: Script, vocabulary: Vocabulary) -> Trace:
    """The trace of a scripted job. Raises CannotPlay."""
    streams = tuple(
        _RankPlayer(rank, script, vocabulary).play(script) for rank in range(script.ranks)
    )
    return Trace(streams, script.ranks)


class _RankPlayer:
    """One rank while it plays: its position, and the current state of its subjects."""

    def __init__(self, rank: int, script: Script, vocabulary: Vocabulary) -> None:
        self.rank = rank
        self.vocabulary = vocabulary
        self.records: list[Record] = []
        self.context = Context()
        self.seq = 0
        self.edge = False
        self.open: list[int] = []
        self.calls = 0
        self.objects = 0
        self.state: dict[Named, dict[str, Any]] = {}
        self.tensors: dict[tuple[Named, str], dict[str, Any]] = {}
        """The features of the tensor in each field, and its object."""
        for axis, peers in script.axes.items():
            self.sample("group", axis, {"ranks": peers[rank]})
        if script.ranks > 1:
            self.sample("group", "world", {"ranks": tuple(range(script.ranks))})

    # --- records --------------------------------------------------------------------------------

    def tick(self) -> int:
        """The instant of an edge."""
        self.seq += 1
        self.edge = True
        return self.seq

    def sample(
        self, kind: str, subject: str, fields: Mapping[str, Any], gone: bool = False
    ) -> None:
        """States, at an instant after the last edge."""
        if self.edge:
            self.seq += 1
            self.edge = False
        self.records.append(Sample(self.seq, self.context, kind, subject, dict(fields), gone))

    def boundary(self, span: Any, index: int) -> None:
        """A step, microbatch or epoch opens."""
        opened: dict[str, Any] = {span: index}
        self.context = replace(self.context, **opened)
        self.records.append(Boundary(self.tick(), self.context, span, index))

    # --- playing --------------------------------------------------------------------------------

    def play(self, script: Script) -> Stream:
        """All steps, to a normal end."""
        epochs = any(_sets_epoch(steps.inside) for steps in script.steps)
        for steps in script.steps:
            for step in range(steps.first, steps.last + 1):
                said = steps.inside
                if step > 0 and said and _is_epoch(said[0]):
                    # An epoch that a step begins with opens before the step, as in a job.
                    self.perform(said[:1])
                    said = said[1:]
                if step > 0:
                    self.open_step(step, epochs)
                self.perform(said)
        self.records.append(Finish(self.tick(), self.context))
        return Stream(self.rank, tuple(self.records))

    def open_step(self, step: int, epochs_are_said: bool) -> None:
        """Open a step with its first microbatch; the first step also opens an epoch, unless the
        script declares epochs.
        """
        if not self.context.step and not epochs_are_said:
            self.boundary("epoch", 1)
        self.boundary("step", step)
        self.boundary("microbatch", 1)

    def perform(self, statements: Iterable[Statement]) -> None:
        """Perform the statements of a block that are for this rank."""
        for each in statements:
            match each:
                case scripts.OnRanks(ranks=ranks, inside=inside):
                    if self.rank in ranks:
                        self.perform(inside)
                case scripts.Mention(subject=subject):
                    self.mention(subject)
                case scripts.SetContext(name=name, value=value, span=span):
                    self.set_context(name, self.value(value, span))
                case scripts.Set():
                    self.set(each)
                case CallStatement():
                    self.call(each)

    def set_context(self, name: str, value: Any) -> None:
        """`phase = eval`, `epoch = 2`, `loss = 0.1`."""
        if name in ("epoch", "microbatch"):
            if self.context.value(name) != value:  # else it is open
                self.boundary(name, value)
        elif name == "phase":
            self.context = replace(self.context, phase=value)
        else:
            self.sample("context", "", {name: value})

    # --- subjects -------------------------------------------------------------------------------

    def mention(self, subject: Named) -> None:
        """The subject exists from here on, with its name, and without fields that may be absent."""
        if subject in self.state:
            return
        declared = self.vocabulary.entity(subject.kind)
        fields: dict[str, Any] = {}
        for field in declared.fields if declared is not None else ():
            if field.name == "name" and field.type == types.STRING:
                fields[field.name] = subject.name
            elif isinstance(field.type, Optional):
                fields[field.name] = Missing.ABSENT
        self.state[subject] = fields
        self.sample(subject.kind, subject.name, fields)

    def set(self, statement: scripts.Set) -> None:
        """Set a field of a subject, a feature of its tensor, or an entry of its map; or remove the
        subject.
        """
        target, value, span = statement.target, statement.value, statement.span
        self.mention(target.subject)
        if not target.path:
            self.sample(target.subject.kind, target.subject.name, {}, gone=True)
            del self.state[target.subject]
            return
        subject, field = self.owner(statement), target.path[-1]
        if target.feature is not None:
            found: Any = self.feature(subject, field, target.feature, self.value(value, span), span)
        elif target.key is not None:
            before = self.state[subject].get(field)
            known = before if isinstance(before, Mapping) else {}
            found = {**known, target.key: self.value(value, span)}
        elif isinstance(value, TensorValue):
            features = {name: self.value(each, span) for name, each in value.features}
            found = self.tensor(subject, field, {**features, "object": self.object()}, value.span)
        elif isinstance(value, scripts.Keyword) and value.word == "changed":
            known = self.tensors.get((subject, field), {})
            kept = {name: known[name] for name in known if name != "digest"}
            found = self.tensor(subject, field, kept, value.span)
        else:
            found = self.value(value, span)
            self.tensors.pop((subject, field), None)
        self.state[subject][field] = found
        self.sample(subject.kind, subject.name, {field: found})

    def owner(self, statement: scripts.Set) -> Named:
        """The subject that the last field of the path is of."""
        subject = statement.target.subject
        for name in statement.target.path[:-1]:
            found = self.state[subject].get(name)
            if not isinstance(found, Ref):
                raise CannotPlay(
                    f'`{subject.kind}("{subject.name}")` has no `{name}` here', statement.span
                )
            subject = Named(found.kind, found.name)
        return subject

    # --- tensors --------------------------------------------------------------------------------

    def object(self) -> int:
        """A number for a new object."""
        self.objects += 1
        return self.objects

    def feature(self, subject: Named, field: str, name: str, value: Any, span: Span) -> Any:
        """The tensor with one more feature said; new contents get a new digest."""
        known = dict(self.tensors.get((subject, field), {}))
        before = self.state[subject].get(field)
        if name in OF_ELEMENTS:
            known.pop("digest", None)
        elif isinstance(before, Tensor):
            known.setdefault("digest", before.digest)
        return self.tensor(subject, field, {**known, name: value}, span)

    def tensor(self, subject: Named, field: str, features: dict[str, Any], span: Span) -> Any:
        """The tensor that a field holds from here on."""
        features.setdefault("object", self.object())
        fresh = digest_of(span.start, self.context.step)
        self.tensors[subject, field] = features
        said = {name: value for name, value in features.items() if name != "object"}
        return tensor(said, fresh, features["object"])

    def value(self, value: ScriptValue, span: Span) -> Any:
        """A value as traces hold it."""
        match value:
            case Named():
                self.mention(value)
                return Ref(value.kind, value.name)
            case scripts.ListValue(items=items, is_set=is_set):
                found = map(partial(self.value, span=span), items)
                return frozenset(found) if is_set else tuple(found)
            case scripts.MapValue(items=entries):
                return {key: self.value(each, span) for key, each in entries}
            case TensorValue(features=features, span=own):
                said = {name: self.value(each, own) for name, each in features}
                return tensor(said, digest_of(own.start, self.context.step), self.object())
            case scripts.ClassValue(paths=paths):
                return paths
            case scripts.Keyword(word="changed", span=own):
                return tensor({}, digest_of(own.start, self.context.step), self.object())
            case scripts.Keyword():
                return Missing.ABSENT
        return value

    # --- calls ----------------------------------------------------------------------------------

    def call(self, call: CallStatement) -> None:
        """A call: its begin, the events inside of it, and its return."""
        declared = self.vocabulary.event(call.event) or bare_event(call.event, self.vocabulary)
        path = next((each for each in declared.callables if not each.endswith("*")), call.event)
        begin, end = self.fields(call, declared, path)
        self.calls += 1
        number, parent = self.calls, self.open[-1] if self.open else None
        self.records.append(
            Begin(self.tick(), self.context, number, parent, call.event, path, begin)
        )
        self.open.append(number)
        self.perform(call.inside)
        self.open.pop()
        self.records.append(End(self.tick(), self.context, number, end))

    def fields(
        self, call: CallStatement, declared: EventDeclaration, path: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields that are known at a call's begin, and those known at its end."""
        said = dict(call.said)
        begin: dict[str, Any] = {}
        end: dict[str, Any] = {}
        for field in declared.fields:
            side = end if field.reads_result else begin
            if field.name in said:
                side[field.name] = self.value(said[field.name], call.span)
            else:
                side.update(self.default(field, call, path))
        return begin, end

    def default(self, field: FieldDeclaration, call: CallStatement, path: str) -> dict[str, Any]:
        """The value of an unset field: absent if optional, the only subject of its kind, or a new tensor."""
        if isinstance(field.type, Optional):
            return {field.name: Missing.ABSENT}
        if isinstance(field.type, Entity):
            of_kind = [each for each in self.state if each.kind == field.type.kind]
            return {field.name: Ref(*_pair(of_kind[0]))} if len(of_kind) == 1 else {}
        if field.type == types.TENSOR:
            fresh = digest_of(call.span.start, field.name, self.context.step)
            return {field.name: tensor({}, fresh, self.object())}
        known = {"callable": path, RETURNED: True}
        return {field.name: known[field.name]} if field.name in known else {}


def _pair(subject: Named) -> tuple[str, str]:
    return subject.kind, subject.name


def _is_epoch(statement: Statement) -> bool:
    return isinstance(statement, scripts.SetContext) and statement.name == "epoch"


def _sets_epoch(statements: Iterable[Statement]) -> bool:
    return any(
        _is_epoch(each)
        or (isinstance(each, scripts.OnRanks | CallStatement) and _sets_epoch(each.inside))
        for each in statements
    )
