"""Watched calls as rules see them: fields with features as of the edges, and which enclose which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tspec.runtime.edges import Call, Source
from tspec.runtime.tensors import Seen, handles, replaced
from tspec.runtime.values import NOT_RECORDED


@dataclass(frozen=True, slots=True)
class Pattern:
    """Events, and the fields by which calls of them are told apart.

    `late`: some field is known only when the call returns, and with it whether the call counts.
    """

    number: int
    events: frozenset[str]
    fields: tuple[str, ...] = ()
    late: bool = False


class Watched:
    """One call: the fields that rules read, with features as of the edge at which each became known."""

    __slots__ = ("begin", "call", "end", "event", "fields", "given", "id", "kept", "raw", "step")

    def __init__(self, call: Call, kept: Mapping[str, tuple[str, ...]], source: Source) -> None:
        self.call = call
        self.id = call.id
        self.event = call.event
        self.begin = source.seq
        self.end: int | None = None
        self.step = call.context.step
        self.kept = kept
        self.raw = dict(call.fields)
        self.given: dict[str, Any] = self._read(source, self.raw)
        self.fields = self.given
        """What is known: until the call returns, what was given to it."""

    def close(self, source: Source) -> None:
        """The call returned: take its result fields."""
        self.end = source.seq
        raw, self.raw = self.raw, {}
        new = {n: value for n, value in self.call.fields.items() if raw.get(n, self) is not value}
        if new:
            self.fields = {**self.given, **self._read(source, new)}

    def get(self, name: str) -> Any:
        """A field: not recorded where it is not known yet."""
        return self.fields.get(name, NOT_RECORDED)

    def _read(self, source: Source, raw: Mapping[str, Any]) -> dict[str, Any]:
        taken: dict[str, Any] = {}
        for name, features in self.kept.items():
            if name not in raw:
                continue
            value = raw[name]
            found = list(handles(value))
            if found:
                value = replaced(value, _seen(source, found, features))
            taken[name] = value
        return taken


def _seen(source: Source, tensors: list[Any], names: tuple[str, ...]) -> Callable[[Any], Seen]:
    """The features of tensors, to be handed out in order."""
    read: Iterator[Mapping[str, Any]] = iter(source.features(tensors, names) if names else ())
    return lambda _: Seen(next(read, {}))


def own(call: Any, name: str) -> Any:
    """A field of the window's own call, which does not move."""
    return call.fields.get(name, NOT_RECORDED) if call.__class__ is Watched else NOT_RECORDED


def ancestors(call: Call) -> Iterator[Call]:
    """The calls that enclose a call, innermost first."""
    parent = call.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def outermost(calls: Iterable[Watched]) -> tuple[Watched, ...]:
    """Of some calls in order those that lie in no other of them."""
    found = tuple(calls)
    if len(found) < 2:
        return found
    numbers = {one.id for one in found}
    return tuple(one for one in found if not any(up.id in numbers for up in ancestors(one.call)))


class Log:
    """The calls that some window counts, in order of their begin."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls: list[Watched] = []

    def enclosing(self, call: Watched) -> list[Watched]:
        """The logged calls that enclose a call."""
        numbers = {outer.id for outer in ancestors(call.call)}
        return [one for one in self.calls if one.id in numbers] if numbers else []

    def between(self, first: int, last: int, events: frozenset[str]) -> list[Watched]:
        """The calls of some events that began from `first` to `last`, both included."""
        return [one for one in self.calls if first <= one.begin <= last and one.event in events]

    def ended_between(self, first: int, last: int, events: frozenset[str]) -> list[Watched]:
        """The calls of some events that ended from `first` to `last`, in order of their end."""
        found = [
            one
            for one in self.calls
            if one.end is not None and first <= one.end <= last and one.event in events
        ]
        return sorted(found, key=lambda one: one.end or 0)

    def forget(self, before: int) -> None:
        """Drop what began before an instant and has returned."""
        self.calls = [one for one in self.calls if one.begin >= before or one.end is None]
