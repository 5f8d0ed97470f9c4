"""The values that one rule reads: columns of subjects with features of their tensors, fields of
calls, context.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tspec.builtin.features import FEATURES
from tspec.resolve.program import rules as r
from tspec.resolve.program import types as t
from tspec.resolve.program.queries import reads_entities_only
from tspec.resolve.program.types import holds_tensors, innermost, is_tensor, plain
from tspec.resolve.program.walk import expressions, operands

Frame = Literal["now", "was", "first", "within"]
"""The time at which a value is read: at the window's end (or the instant), at its start, at the
subject's creation, or at calls within the window, between which `x only during …` compares x.
"""


@dataclass(frozen=True, slots=True)
class SubjectField:
    """A field of every subject of a kind, and the features needed of its tensors."""

    frame: Frame
    kind: str
    name: str
    features: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallField:
    """A field of every call of an event, and the features needed of its tensors."""

    event: str
    name: str
    features: tuple[str, ...]
    looked_up: bool
    """Calls are looked up for it after they are over; else only the window's own call is asked."""
    first: bool = False
    """True if only the first call of a pattern is read: `calls(fetch)[0].tensors`."""


@dataclass(frozen=True, slots=True)
class Reads:
    """All that a rule reads, each thing once and in a stable order."""

    columns: tuple[SubjectField, ...]
    call_fields: tuple[CallField, ...]
    ambients: tuple[tuple[Frame, str], ...]
    kinds: tuple[tuple[Frame, str], ...]

    @property
    def reads_start(self) -> bool:
        """Something is read at the window's start."""
        frames = [column.frame for column in self.columns]
        frames += [frame for frame, _ in (*self.ambients, *self.kinds)]
        return "was" in frames

    def of(self, frame: Frame) -> tuple[SubjectField, ...]:
        """The columns of one frame."""
        return tuple(column for column in self.columns if column.frame == frame)

    def context(self, frame: Frame) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The kinds of subjects and the context values of one frame, besides columns."""
        kinds = {kind for when, kind in self.kinds if when == frame}
        ambients = {name for when, name in self.ambients if when == frame}
        return tuple(sorted(kinds)), tuple(sorted(ambients))


@dataclass
class _ReadSets:
    columns: dict[tuple[Frame, str, str], set[str]] = field(default_factory=dict)
    call_fields: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    looked_up: set[tuple[str, str]] = field(default_factory=set)
    of_others: set[tuple[str, str]] = field(default_factory=set)
    """The fields that are read of other calls than the first."""
    ambients: set[tuple[Frame, str]] = field(default_factory=set)
    kinds: set[tuple[Frame, str]] = field(default_factory=set)


def feature_key(node: r.Feature) -> str:
    """The name of a feature in a source: `norm`, `norm/row`, `std/0`."""
    if node.per is not None:
        return f"{node.name}/{node.per}"
    return node.name if node.dim is None else f"{node.name}/{node.dim}"


def reads_of(rule: r.Rule) -> Reads:
    """The reads of a rule, by frame."""
    return _ReadCollector(rule).reads()


def reads_of_groups(rule: r.Rule) -> Reads:
    """What names the groups that a rule's instances belong to, such as `c.group`. It is read in idle windows too."""
    return _ReadCollector(rule).reads_of_groups()


def _inputs(node: r.Feature) -> tuple[str, ...]:
    """The features of each tensor that a feature is computed from.

    Several tensors taken as one need other features than a single one.
    """
    key = feature_key(node)
    if key != node.name:
        return (key,)
    row = FEATURES[key]
    found = row.inputs if plain(node.tensor.type) == t.TENSOR else row.inputs_of_many
    return found or (key,)


def _is_first(base: r.Expr) -> bool:
    """`calls(E)[0]`."""
    return (
        isinstance(base, r.Index)
        and isinstance(base.base, r.Calls)
        and isinstance(base.index, r.Constant)
        and base.index.value == 0
    )


class _ReadCollector:
    """Adds each read of a rule to `found`, one expression after another."""

    def __init__(self, rule: r.Rule) -> None:
        self.rule = rule
        self.scope = {one.variable: one.collection for one in rule.subjects}
        self.found = _ReadSets()

    def reads(self) -> Reads:
        """All reads of the rule."""
        rule = self.rule
        self.subjects()
        self.groups()
        if rule.when is not None:
            self.visit(rule.when, "was" if rule.window.kind == "during" else "now")
        self.claim(rule.expect)
        if rule.window.event is not None:
            self.pattern(rule.window.event, "now")
        return self.collected()

    def reads_of_groups(self) -> Reads:
        """The reads of its groups alone, and of its subjects if they have groups of their own."""
        self.groups()
        if self.found.call_fields:
            self.subjects()
        return self.collected()

    def subjects(self) -> None:
        """Add what the `for` clauses read."""
        for one in self.rule.subjects:
            self.visit(one.collection, "now")

    def groups(self) -> None:
        """Add the fields that name groups."""
        for axis in self.rule.across:
            if isinstance(axis, r.GroupField):
                self.visit(axis.value, "now")

    def collected(self) -> Reads:
        """All that was added."""
        found = self.found
        return Reads(
            tuple(
                SubjectField(frame, kind, name, tuple(sorted(features)))
                for (frame, kind, name), features in sorted(found.columns.items())
            ),
            tuple(
                CallField(
                    event,
                    name,
                    features=tuple(sorted(features)),
                    looked_up=(event, name) in found.looked_up,
                    first=(event, name) in found.looked_up - found.of_others,
                )
                for (event, name), features in sorted(found.call_fields.items())
            ),
            tuple(sorted(found.ambients)),
            tuple(sorted(found.kinds)),
        )

    def claim(self, claim: r.Claim) -> None:
        """Add what a claim reads. `x only during …` compares x between instants, by its digest."""
        match claim:
            case r.Holds(condition):
                self.visit(condition, "now")
            case r.Ordered(events=events):
                for event in events:
                    self.pattern(event, "now")
            case r.Contains(event):
                self.pattern(event, "now")
            case r.OnlyDuring(subject, change, events):
                for event in events:
                    self.pattern(event, "now")
                frames: tuple[Frame, ...] = ("now", "was", "within") if change else ("now",)
                for frame in frames:
                    self.visit(subject, frame)
                    if change:
                        self.feature(subject, "digest", frame)

    def pattern(self, pattern: r.EventPattern, frame: Frame) -> None:
        """Add the fields of calls that a pattern filters by, and the values that they must equal."""
        for one in pattern.filters:
            for event in pattern.events:
                self.found.call_fields.setdefault((event, one.field), set())
            self.visit(one.value, frame)

    def visit(self, expr: r.Expr, frame: Frame) -> None:
        """Add what an expression and its operands read."""
        match expr:
            case r.Old(value=value):
                self.visit(value, "was")
                return
            case r.First(value=value) if reads_entities_only(value):
                self.visit(value, "first")
                return
            case r.Ambient(name=name):
                self.found.ambients.add((frame, name))
            case r.Variable():
                of = plain(expr.type)
                if isinstance(of, t.Entity):
                    self.found.kinds.add((frame, of.kind))
            case r.Subjects(kind=kind, filters=filters):
                self.found.kinds.add((frame, kind))
                for one in filters:
                    self.column(kind, one.field, frame)
            case r.Restrict(collection=collection, filters=filters):
                for one in filters:
                    self.field(collection, one.field, frame)
            case r.Calls(event=event) | r.LastCall(event=event):
                self.pattern(event, frame)
            case r.Field(base=base, name=name):
                self.field(base, name, frame)
            case r.Feature(tensor=tensor):
                for name in _inputs(expr):
                    self.feature(tensor, name, frame)
            case r.Function(name="isinstance", arguments=arguments):
                looked_at = innermost(arguments[0].type)
                if isinstance(looked_at, t.Entity):
                    self.column(looked_at.kind, "class", frame)
            case r.SameObject(left=left, right=right):
                for side in (left, right):
                    self.feature(side, "object", frame)
            case r.Compare(left=left, right=right):
                for side in (left, right):
                    self.digest(side, frame)
            case r.Fold(name="same" | "distinct", value=value):
                self.digest(value, frame)
            case r.Member(item=one, collection=collection):
                self.digest(one, frame)
                self.digest(collection, frame)
            case _:
                pass
        for child in operands(expr):
            self.visit(child, frame)

    def digest(self, expr: r.Expr, frame: Frame) -> None:
        """Add the digests of an expression that is compared, if it holds tensors."""
        if holds_tensors(expr.type):
            self.feature(expr, "digest", frame)

    def column(self, kind: str, name: str, frame: Frame, features: tuple[str, ...] = ()) -> None:
        """Add a field of every subject of a kind."""
        self.found.columns.setdefault((frame, kind, name), set()).update(features)

    def field(self, base: r.Expr, name: str, frame: Frame, features: tuple[str, ...] = ()) -> None:
        """A field of whatever `base` is: of a subject, or of a call."""
        if frame == "now" and isinstance(base, r.Old):
            frame = "was"
        kind = innermost(base.type)
        if isinstance(kind, t.Entity):
            self.column(kind.kind, name, frame, features)
        elif isinstance(kind, t.CallOf):
            for event in self.events(base):
                self.found.call_fields.setdefault((event, name), set()).update(features)
                if not self.is_own(base):
                    self.found.looked_up.add((event, name))
                    if not _is_first(base):
                        self.found.of_others.add((event, name))

    def is_own(self, base: r.Expr) -> bool:
        """The window's own call."""
        if isinstance(base, r.Variable) and self.rule.window.kind == "calls":
            collection = self.scope.get(base.name)
            return isinstance(collection, r.Calls) and collection.event == self.rule.window.event
        return isinstance(base, r.WindowCall)

    def feature(self, tensor: r.Expr, name: str, frame: Frame) -> None:
        """Add a feature of the tensors that an expression stands for."""
        match tensor:
            case r.Field(base=base, name=fieldname):
                self.field(base, fieldname, frame, (name,))
            case r.Variable(name=variable) if variable in self.scope and is_tensor(tensor.type):
                self.feature(self.scope[variable], name, "now")
            case r.Old(value=value):
                self.feature(value, name, "was")
            case r.Cast(tensor=inner):
                self.feature(inner, f"{name}@cast", frame)
            case r.Difference(left=left, right=right):
                for side in (left, right):
                    # Current values do not replace those of an earlier instant.
                    earlier = frame != "now" or any(
                        isinstance(each, r.Old | r.First) for each in expressions(side)
                    )
                    self.feature(side, "@copy" if earlier else "@itself", frame)
            case r.First(value=value) if reads_entities_only(value):
                self.feature(value, name, "first")
            case _:
                for child in operands(tensor):
                    if holds_tensors(child.type):
                        self.feature(child, name, frame)

    def events(self, base: r.Expr) -> tuple[str, ...]:
        """The events whose calls an expression stands for."""
        match base:
            case r.WindowCall():
                return self.rule.window.event.events if self.rule.window.event else ()
            case r.LastCall(event=event) | r.Calls(event=event):
                return event.events
            case r.Variable(name=name) if name in self.scope:
                return self.events(self.scope[name])
            case _:
                for child in operands(base):
                    found = self.events(child)
                    if found:
                        return found
                kind = innermost(base.type)
                return (kind.event,) if isinstance(kind, t.CallOf) else ()
