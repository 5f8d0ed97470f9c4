"""Calls as rules see them: their fields, with features read at the edges, and the calls that enclose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Never

from tspec.runtime.edges import (
    Context,
    Location,
    Missing,
    StateSource,
    UnresolvedRef,
    WatchedCall,
)
from tspec.runtime.reading import read_samples
from tspec.runtime.tensors import PLAIN, handles, replaced
from tspec.runtime.transfers import NumberInTransfer, arrived
from tspec.runtime.values import NOT_RECORDED
from tspec.values import Datum

_SETTLED = Context()
"""The context of calls that are kept beyond their step: one for all, since nothing reads it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Events, and the fields that distinguish their calls.

    `deferred`: some field is known only when the call returns, and with it whether the call counts.
    """

    number: int
    events: frozenset[str]
    fields: tuple[str, ...] = ()
    deferred: bool = False


class KeptField(NamedTuple):
    """A field that is kept of a call."""

    features: tuple[str, ...] = ()
    """The features of its tensors that rules read."""
    looked_up: bool = False
    """Calls are looked up for it later."""


Kept = Mapping[str, KeptField]
"""The fields that are kept of a call, by name."""


class DeferredField:
    """A result field whose features are read at the call's end, when a rule first needs them."""

    __slots__ = ("features", "source", "value")

    def __init__(self, value: Datum, features: tuple[str, ...], source: StateSource) -> None:
        self.value = value
        self.features = features
        self.source = source

    def read(self) -> Datum:
        """The field with the features of its tensors."""
        tensors = handles((self.value,))
        if not tensors:
            return self.value
        return replaced(self.value, read_samples(self.source, tensors, self.features))


@dataclass(frozen=True, slots=True)
class SettledFields:
    """What is kept of a call beyond its step. Calls that are alike share it."""

    values: dict[str, Datum]
    location: Location | None


_NOTHING: Mapping[str, Never] = MappingProxyType({})
_READ_LATER = (DeferredField, NumberInTransfer)
"""Classes of values that are read when a rule asks for them."""
_AS_GIVEN: frozenset[type] = frozenset((UnresolvedRef, NumberInTransfer))
"""Classes of values without features that are looked up when a rule asks for them."""


class CallRecord:
    """One call: the fields that rules read, with features from the edge at which each became known."""

    __slots__ = (
        "begin",
        "call",
        "context",
        "end",
        "event",
        "given",
        "id",
        "kept",
        "location",
        "raw",
        "step",
        "unread",
        "values",
        "within",
    )

    def __init__(self, call: WatchedCall, kept: Kept, source: StateSource) -> None:
        self.call: WatchedCall | None = call
        """The call, until all rules on its end have been evaluated: it holds tensors."""
        self.within: tuple[int, ...] = ()
        """The begins of the logged calls that enclose it, for calls that are logged."""
        self.context = call.context
        self.location = call.location
        self.id = call.id
        self.event = call.event
        self.begin = call.begin
        self.end: int | None = None
        self.step = call.context.step
        self.kept = kept
        self.unread = False
        """No rule looks it up in its step: features of its result are read only for the rules whose window it is."""
        self.raw: Mapping[str, Datum] = call.fields.copy() if kept else _NOTHING
        self.given: dict[str, Datum] = {}
        self.values = self.given
        """The known values: those of the arguments until the call returns."""
        known = {name: self.raw[name] for name in kept if name in self.raw}
        if known:
            self.given.update(_sampled(known, kept, source))

    def __eq__(self, other: object) -> bool:
        """True for two records of one call: no two calls of a rank begin at one instant."""
        return other.__class__ is CallRecord and other.begin == self.begin

    def __hash__(self) -> int:
        return hash(self.begin)

    def close(self, source: StateSource) -> None:
        """The call returned: take its result fields."""
        self.end = source.seq
        raw, self.raw = self.raw, _NOTHING
        found = {} if self.call is None else self.call.fields
        new = {
            name: found[name]
            for name in self.kept
            if name in found and raw.get(name, self) is not found[name]
        }
        if not new:
            return
        deferred = [name for name in new if self.unread or not self.kept[name].looked_up]
        self.values = self.values | _sampled(new, self.kept, source, deferred)

    def sample(self, names: Iterable[str]) -> None:
        """Read now the fields that a postponed rule will ask for."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, DeferredField):
                self.values[name] = value.read()

    def leave(self) -> None:
        """All rules have been evaluated: drop values that no rule read, with their tensors."""
        self.call = None
        for name, value in self.values.items():
            if value.__class__ is DeferredField:
                self.values[name] = NOT_RECORDED

    def recorded(self, names: Iterable[str]) -> dict[str, Datum]:
        """The values of some fields, where they are known."""
        found = {name: arrived(self.values.get(name, NOT_RECORDED)) for name in names}
        return {name: value for name, value in found.items() if value is not NOT_RECORDED}

    @classmethod
    def settled(
        cls, event: str, begin: int, end: int, fields: SettledFields, within: tuple[int, ...]
    ) -> CallRecord:
        """A call that is kept beyond its step. It has no number, since no window opens at it any more."""
        record = cls.__new__(cls)
        record.call = None
        record.within = within
        record.context = _SETTLED
        record.location = fields.location
        record.event = event
        record.begin = begin
        record.end = end
        record.kept = record.raw = _NOTHING
        record.unread = False
        record.given = record.values = fields.values
        return record

    def get(self, name: str) -> Datum:
        """A field: not recorded where it is not known yet."""
        value = self.values.get(name, NOT_RECORDED)
        if isinstance(value, _READ_LATER):
            value = self.values[name] = value.read()
        elif value.__class__ is UnresolvedRef:
            value = _named(value, self.values, name)
        return value

    def given_field(self, name: str) -> Datum:
        """A field as it was when the call began."""
        value = self.given.get(name, NOT_RECORDED)
        if value.__class__ is NumberInTransfer:
            value = self.given[name] = value.read()
        elif value.__class__ is UnresolvedRef:
            value = _named(value, self.given, name)
        return value


def _named(value: UnresolvedRef, values: dict[str, Datum], name: str) -> Datum:
    """The subject, kept as soon as it is known."""
    found = value.named()
    if found.__class__ is not Missing:
        values[name] = found
    return found


def _sampled(
    values: Mapping[str, Datum], kept: Kept, source: StateSource, deferred: Sequence[str] = ()
) -> dict[str, Datum]:
    """Some fields of a call with the features of their tensors. A deferred field is read when a rule asks for it.

    The tensors of all other fields with the same features are read in one call.
    """
    found = dict(values)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, value in values.items():
        if isinstance(value, PLAIN) or value.__class__ in _AS_GIVEN:
            continue
        features = kept[name].features
        if name in deferred:
            found[name] = DeferredField(value, features, source)
        else:
            alike.setdefault(features, []).append(name)
    for features, names in alike.items():
        tensors = handles([values[name] for name in names])
        if tensors:
            samples = read_samples(source, tensors, features)
            found.update({name: replaced(values[name], samples) for name in names})
    return found


def own(call: Datum, name: str) -> Datum:
    """A field of the window's own call, which does not move."""
    return call.get(name) if call.__class__ is CallRecord else NOT_RECORDED


def ancestors(call: WatchedCall) -> list[WatchedCall]:
    """The calls that enclose a call, innermost first."""
    found = []
    parent = call.parent
    while parent is not None:
        found.append(parent)
        parent = parent.parent
    return found


def outermost(calls: Iterable[CallRecord]) -> tuple[CallRecord, ...]:
    """The calls, of some calls in order, that no other of them encloses."""
    found = tuple(calls)
    if len(found) < 2:
        return found
    begins = {one.begin for one in found}
    return tuple(one for one in found if begins.isdisjoint(one.within))
