"""The events and values that a live job watches, as literals that can stand in generated code.

`repr` of a `WatchSpec` is an expression that builds it again. It contains no code: expressions of
the user's events are trees of tuples that `evaluate` reads. `as_json` and `from_json` hand a
`WatchSpec` to another process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from tspec.builtin.field_functions import FIELD_FUNCTIONS, Followed
from tspec.values import with_tuples

Expression = tuple[Any, ...]
"""A tree: `("name", "result")`, `("literal", 3)`, `("list", (…,))`, `("field", base, "shape")`,
`("index", base, key)`, `("call", "count", (…,), (("dim", …),))`, `("negate", x)` and
`("+", a, b)` with any of `+ - * /`."""

TypeTree = tuple[Any, ...]
"""A type: `("float",)`, `("entity", "module")`, `("list", T)`, `("set", T)`, `("map", K, V)`,
`("optional", T)`, `("enum", "train", "eval")`."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field of an event or entity: the argument or attribute of its name, or an expression."""

    name: str
    type: TypeTree
    source: Expression | None = None
    reads_result: bool = False


@dataclass(frozen=True, slots=True)
class EventSpec:
    """A point of the program. In a `family` each call is an event by its own dotted path."""

    name: str
    callables: tuple[str, ...]
    fields: tuple[FieldSpec, ...] = ()
    family: bool = False
    outermost: bool = False
    """A call inside of a call of the same event is not asked for."""
    receivers: tuple[str, ...] = ()
    """The classes of the modules whose calls are asked for; none: of all."""


@dataclass(frozen=True, slots=True)
class EntitySpec:
    """A kind of subjects, and which of its fields are wanted."""

    kind: str
    fields: tuple[FieldSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """An axis, and the functions that return its process group."""

    name: str
    callables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """All that is watched in one job."""

    events: tuple[EventSpec, ...] = ()
    entities: tuple[EntitySpec, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    ambient: tuple[str, ...] = ()

    def entity(self, kind: str) -> EntitySpec | None:
        """The entity of that kind; None if no rule reads it."""
        return next((entity for entity in self.entities if entity.kind == kind), None)

    def computes(self, *functions: str) -> bool:
        """True if a field is computed by one of these functions of the vocabulary."""
        return any(each in functions for each in self._functions())

    def follows(self, followed: Followed) -> bool:
        """True if a field is computed by a function for which this is followed."""
        return any(FIELD_FUNCTIONS.get(each) == followed for each in self._functions())

    def _functions(self) -> Iterator[str]:
        """The functions that compute fields of events and entities."""
        fields = [watched.fields for watched in self.events]
        fields += [watched.fields for watched in self.entities]
        for field in chain(*fields):
            if field.source is not None:
                yield from _called(field.source)


def _called(tree: Expression) -> Iterator[str]:
    """The functions that a tree calls."""
    if tree[0] == "call" and isinstance(tree[1], str):
        yield tree[1]
    for part in tree:
        if isinstance(part, tuple) and part:
            yield from _called(part)


def as_json(spec: WatchSpec) -> dict[str, Any]:
    """A value that `json` can write; its arrays stand for tuples."""
    return asdict(spec)


def from_json(value: Mapping[str, Any]) -> WatchSpec:
    """The `WatchSpec` that `as_json` wrote. Raises KeyError or TypeError for other values."""
    found = with_tuples(value)
    return WatchSpec(
        tuple(EventSpec(**{**event, "fields": _fields(event)}) for event in found["events"]),
        tuple(EntitySpec(**{**entity, "fields": _fields(entity)}) for entity in found["entities"]),
        tuple(GroupSpec(**group) for group in found["groups"]),
        found["ambient"],
    )


def _fields(value: Mapping[str, Any]) -> tuple[FieldSpec, ...]:
    return tuple(FieldSpec(**field) for field in value["fields"])
