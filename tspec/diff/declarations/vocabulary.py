"""Names that the two sides declare differently: events, fields, context, groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tspec.resolve.program import rules
from tspec.resolve.program.rules import Rule, Vocabulary
from tspec.resolve.program.types import CallOf, Entity, plain
from tspec.resolve.program.walk import parts

Name = tuple[str, str]
"""(`event`, its name), (`optimizer.step`, a field of it), (`context`, a name), (`group`, an axis)."""


@dataclass(frozen=True, slots=True)
class ChangedNames:
    """The names that two vocabularies declare differently."""

    names: frozenset[Name]

    def used_by(self, rule: Rule) -> tuple[str, ...]:
        """The names among them that a rule reads, as written."""
        if not self.names:
            return ()
        found = dict.fromkeys(name for name in _names(rule) if name in self.names)
        return tuple(
            name if of in ("event", "context", "group") else f"{of}.{name}" for of, name in found
        )


def changed_names(old: Vocabulary, new: Vocabulary) -> ChangedNames:
    """Compare the declarations that both sides have under one name."""
    before, after = dict(_declarations(old)), dict(_declarations(new))
    shared = before.keys() & after.keys()
    return ChangedNames(frozenset(name for name in shared if before[name] != after[name]))


def _declarations(vocabulary: Vocabulary) -> Iterator[tuple[Name, Any]]:
    for event in vocabulary.events:
        yield ("event", event.name), (frozenset(event.callables), event.family)
        for field in event.fields:
            own = [
                (variant.callables, each)
                for variant in event.variants
                for each in variant.fields
                if each.name == field.name
            ]
            yield (event.name, field.name), (field, own)
    for entity in vocabulary.entities:
        for field in entity.fields:
            yield (entity.name, field.name), field
    for each in vocabulary.context:
        yield ("context", each.name), replace(each, module="")
    for group in vocabulary.groups:
        yield ("group", group.name), replace(group, module="")


def _names(rule: Rule) -> Iterator[Name]:
    for part in parts(rule):
        match part:
            case rules.EventPattern(events=events, filters=filters):
                for event in events:
                    yield "event", event
                    yield from ((event, each.field) for each in filters)
            case rules.Field(base=base, name=name):
                yield from _field(base, name)
            case rules.Subjects(kind=kind, filters=filters):
                yield from ((kind, each.field) for each in filters)
            case rules.Ambient(name=name):
                yield "context", name
            case _:
                pass
    for group in rule.across:
        if isinstance(group, rules.Axis):
            yield "group", group.name


def _field(base: rules.Expr, name: str) -> Iterator[Name]:
    of = plain(base.type)
    item = plain(getattr(of, "item", of))
    if isinstance(item, Entity):
        yield item.kind, name
    elif isinstance(item, CallOf):
        yield item.event, name
