"""The union of two watch specifications: that of rules and that of a recording."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, GroupSpec, WatchSpec

Fields = dict[str, FieldSpec]


def joined(first: WatchSpec, second: WatchSpec) -> WatchSpec:
    """The union of both requests. A field that both name is the first one's."""
    both = (first, second)
    entities: dict[str, Fields] = {}
    groups: dict[str, GroupSpec] = {}
    for spec in reversed(both):
        for entity in spec.entities:
            held = entities.setdefault(entity.kind, {})
            held.update({field.name: field for field in entity.fields})
        groups.update({group.name: group for group in spec.groups})
    return WatchSpec(
        tuple(_events(both)),
        tuple(EntitySpec(kind, tuple(fields.values())) for kind, fields in entities.items()),
        tuple(groups.values()),
        tuple(dict.fromkeys((*first.ambient, *second.ambient))),
    )


def _events(specs: tuple[WatchSpec, WatchSpec]) -> Iterable[EventSpec]:
    """Each event once for all its callables with the same fields, families last."""
    found: dict[tuple[str, bool, str], Fields] = {}
    for spec in reversed(specs):
        for event in spec.events:
            for path in event.callables:
                held = found.setdefault((event.name, event.family, path), {})
                held.update({field.name: field for field in event.fields})
    alike: dict[tuple[str, bool, tuple[FieldSpec, ...]], list[str]] = {}
    for (name, family, path), fields in found.items():
        alike.setdefault((name, family, tuple(fields.values())), []).append(path)
    events = [
        EventSpec(name, tuple(paths), fields, family)
        for (name, family, fields), paths in alike.items()
    ]
    return sorted(events, key=lambda event: event.family)
