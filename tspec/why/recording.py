"""Selects the part of a recording that a rule reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tspec.resolve.program import rules
from tspec.resolve.program.rules import Rule
from tspec.resolve.program.types import Entity, ListOf, MapOf, Optional, SetOf, Type
from tspec.resolve.program.walk import parts
from tspec.trace.model import Trace


def part_for(rule: Rule, folder: Path) -> Trace:
    """The recording without the calls and states that the rule does not read. Raises TraceError."""
    # pyarrow takes 0.4 s to import. Commands that only read scripts do without it.
    from tspec.trace.part import TraceSelection, read_part

    return read_part(folder, TraceSelection(events_of(rule), kinds_of(rule), fields_of(rule)))


def events_of(rule: Rule) -> set[str]:
    """The events whose calls are read."""
    return {
        event
        for part in parts(rule)
        if isinstance(part, rules.EventPattern)
        for event in part.events
    }


def kinds_of(rule: Rule) -> set[str]:
    """The kinds of subjects whose states are read, the context and the groups with them."""
    found = {"context", "group"}
    for part in parts(rule):
        if isinstance(part, rules.Subjects):
            found.add(part.kind)
        if not isinstance(part, rules.EventPattern):
            found.update(_kinds(part.type))
    return found


def fields_of(rule: Rule) -> set[str]:
    """The fields of subjects that are read, by whatever kind."""
    found = {"ranks", "class"}
    for part in parts(rule):
        match part:
            case rules.Field(name=name) | rules.Ambient(name=name):
                found.add(name)
            case rules.EventPattern(filters=filters) | rules.Subjects(filters=filters):
                found.update(each.field for each in filters)
            case rules.Restrict(filters=filters):
                found.update(each.field for each in filters)
    return found


def _kinds(of: Type) -> Iterator[str]:
    match of:
        case Entity(kind=kind):
            yield kind
        case ListOf(item=item) | SetOf(item=item) | Optional(item=item):
            yield from _kinds(item)
        case MapOf(key=key, value=value):
            yield from _kinds(key)
            yield from _kinds(value)
