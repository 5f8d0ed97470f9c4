"""From a vocabulary to the watch specification of a live job."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.resolve.program import rules, types
from tspec.runtime.live.watch import (
    EntitySpec,
    EventSpec,
    FieldSpec,
    GroupSpec,
    TypeTree,
    WatchSpec,
)

FAMILIES = (
    EventSpec(
        "torch.nn.functional",
        ("torch.nn.functional.*",),
        (
            FieldSpec("inputs", ("list", ("tensor",))),
            FieldSpec("arguments", ("map", ("string",), ("scalar",))),
            FieldSpec("output", ("tensor",), None, True),
        ),
        family=True,
    ),
)
"""Open families that a recording watches beside the vocabulary, so that inference sees an open world."""


def watch_spec(
    vocabulary: rules.Vocabulary, families: tuple[EventSpec, ...] = FAMILIES
) -> WatchSpec:
    """Everything that a vocabulary declares, and some open families."""
    events = [spec for event in vocabulary.events for spec in event_specs(event)]
    return WatchSpec(
        (*events, *families),
        tuple(entity_spec(entity) for entity in vocabulary.entities),
        tuple(GroupSpec(group.name, group.callables) for group in vocabulary.groups),
        tuple(name.name for name in vocabulary.context),
    )


def event_specs(event: rules.EventDeclaration) -> Iterable[EventSpec]:
    """An event as literal values. Callables whose fields are computed differently are separate."""
    by_fields: dict[tuple[FieldSpec, ...], list[str]] = {}
    for path in event.callables:
        fields = tuple(field_spec(field) for field in event.fields_for(path))
        by_fields.setdefault(fields, []).append(path)
    for fields, paths in by_fields.items():
        yield EventSpec(event.name, tuple(paths), fields, event.family)


def entity_spec(entity: rules.EntityDeclaration) -> EntitySpec:
    """An entity as literal values."""
    return EntitySpec(entity.name, tuple(field_spec(field) for field in entity.fields))


def field_spec(field: rules.FieldDeclaration) -> FieldSpec:
    """A field as literal values."""
    return FieldSpec(field.name, type_tree(field.type), field.source, field.reads_result)


def type_tree(type: types.Type) -> TypeTree:
    """A type as a tree of strings."""
    match type:
        case types.Enum(members):
            return ("enum", *members)
        case types.Entity(kind):
            return ("entity", kind)
        case types.CallOf():
            return ("scalar",)
        case types.ListOf(item):
            return ("list", type_tree(item))
        case types.SetOf(item):
            return ("set", type_tree(item))
        case types.MapOf(key, value):
            return ("map", type_tree(key), type_tree(value))
        case types.Optional(item):
            return ("optional", type_tree(item))
        case types.Quantity():
            return ("int",)
        case types.Scalar(name):
            return (name,)
