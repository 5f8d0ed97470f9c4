"""From a vocabulary to what a live job is asked to watch."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.resolve.program import rules, types
from tspec.runtime.live.watch import (
    EntitySpec,
    EventSpec,
    Expression,
    FieldSpec,
    GroupSpec,
    TypeTree,
    WatchSpec,
)
from tspec.syntax import nodes

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
    """An event as literal values; callables for which its fields are computed otherwise are apart."""
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
    source = None if field.source is None else expression(field.source)
    return FieldSpec(field.name, type_tree(field.type), source, field.reads_result)


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


def expression(node: nodes.Expr) -> Expression:
    """A field's expression as a tree of literals. Raises TypeError for what has no value in a live job."""
    match node:
        case nodes.Name():
            return ("name", node.text)
        case nodes.Attribute():
            return ("field", expression(node.value), node.name.text)
        case nodes.Index():
            return ("index", expression(node.value), expression(node.index))
        case (
            nodes.Integer() | nodes.Float() | nodes.String() | nodes.Boolean() | nodes.Percentage()
        ):
            return ("literal", node.value)
        case nodes.Negative():
            return ("negate", expression(node.value))
        case nodes.List():
            return ("list", tuple(expression(item) for item in node.items))
        case nodes.Arithmetic():
            return (node.operator, expression(node.left), expression(node.right))
        case nodes.Call():
            return _call(node)
    raise TypeError(f"a field cannot be computed from {type(node).__name__}")


def _call(node: nodes.Call) -> Expression:
    if not isinstance(node.function, nodes.Name):
        raise TypeError("a field can call functions by name only")
    plain = tuple(expression(each.value) for each in node.arguments if each.name is None)
    named = tuple(
        (each.name.text, expression(each.value)) for each in node.arguments if each.name is not None
    )
    return ("call", node.function.text, plain, named)
