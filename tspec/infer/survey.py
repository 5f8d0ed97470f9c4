"""A survey of the recorded runs: events, kinds, fields, classes and axes for claims to be about."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.infer.numbers import NOTHING, RecordedNumbers
from tspec.resolve.program.rules import EntityDeclaration, EventDeclaration
from tspec.resolve.program.types import (
    BOOL,
    DTYPE,
    TENSOR,
    Entity,
    Enum,
    ListOf,
    Optional,
    SetOf,
    Type,
)

RARE = 4.0
"""The largest number of calls in a step of an event that is a landmark of the training loop."""


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event that occurred in every run."""

    declaration: EventDeclaration
    per_step: float
    """Mean number of its calls in a step, over all runs."""
    fields: frozenset[str]
    """Fields that were recorded."""
    floating: frozenset[str] = frozenset()
    """The fields that were tensors of a floating dtype. `finite` tells nothing about others."""

    @property
    def name(self) -> str:
        """The event's name in rules."""
        return self.declaration.name

    @property
    def landmark(self) -> bool:
        """True if the event is rare enough for its order and its effects to mean something."""
        return 0 < self.per_step <= RARE


@dataclass(frozen=True, slots=True)
class SeenKind:
    """A kind of entity that was sampled in every run."""

    declaration: EntityDeclaration
    fields: frozenset[str]
    """Fields that were recorded."""

    @property
    def name(self) -> str:
        """The entity's name."""
        return self.declaration.name

    @property
    def plural(self) -> str:
        """The collection's name."""
        return self.declaration.plural

    def of_type(self, *types: Type) -> tuple[tuple[str, bool], ...]:
        """Recorded fields of one of the types, each with whether it is optional."""
        found = []
        for field in self.declaration.fields:
            optional = isinstance(field.type, Optional)
            plain = field.type.item if isinstance(field.type, Optional) else field.type
            if field.name in self.fields and plain in types:
                found.append((field.name, optional))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Survey:
    """The input of relations. Names are in the vocabulary's order, so results are deterministic."""

    events: tuple[SeenEvent, ...]
    kinds: tuple[SeenKind, ...]
    axes: tuple[str, ...]
    """Axes with at least two ranks in some run. A run on one rank tells nothing about them."""
    classes: tuple[str, ...]
    """`torch.nn` classes of modules that have parameters."""
    ambient: frozenset[str]
    steps: int
    """Steps of the shortest run."""
    graphs: tuple[frozenset[frozenset[str]], ...] = ()
    """For each run the different sets of operations that computed losses."""
    numbers: RecordedNumbers = NOTHING

    def event(self, name: str) -> SeenEvent | None:
        """The event of that name, if it occurred."""
        return next((event for event in self.events if event.name == name), None)

    def kind(self, name: str) -> SeenKind | None:
        """The kind of that name, if it was sampled."""
        return next((kind for kind in self.kinds if kind.name == name), None)


def fields_of(event: SeenEvent, wanted: str) -> tuple[tuple[str, bool], ...]:
    """Recorded fields of an event with a shape of type: `bool`, `tensor`, `tensors`, `dtype`, `module`...

    Each comes with whether it is optional.
    """
    found = []
    for field in event.declaration.fields:
        optional = isinstance(field.type, Optional)
        plain = field.type.item if isinstance(field.type, Optional) else field.type
        if field.name in event.fields and _shape(plain) == wanted:
            found.append((field.name, optional))
    return tuple(found)


def _shape(plain: Type) -> str:
    match plain:
        case Entity(kind):
            return kind
        case Enum():
            return "enum"
        case ListOf(item) | SetOf(item) if item == TENSOR:
            return "tensors"
        case _ if plain == BOOL:
            return "bool"
        case _ if plain == DTYPE:
            return "dtype"
        case _:
            return str(plain)
