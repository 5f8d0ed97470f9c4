"""Gathers the vocabulary from all files, with each `extend` merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tspec.builtin.events import OF_THE_RETURN
from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.findings import Findings
from tspec.resolve.modules.files import Unit
from tspec.resolve.names.callables import check_callable
from tspec.resolve.names.field_sources import EventCallables, check_source, lower_source
from tspec.resolve.names.type_names import resolve_type
from tspec.resolve.program import rules, types
from tspec.source import Source, Span
from tspec.syntax import nodes

Place = tuple[Source, Span]


@dataclass(slots=True)
class _MergedDeclarations:
    """The declarations seen so far, by name, and the place of each."""

    findings: Findings
    axes: frozenset[str]
    entities: dict[str, rules.EntityDeclaration] = field(default_factory=dict)
    events: dict[str, rules.EventDeclaration] = field(default_factory=dict)
    groups: dict[str, rules.GroupDeclaration] = field(default_factory=dict)
    context: dict[str, rules.AmbientDeclaration] = field(default_factory=dict)
    places: dict[tuple[str, str], Place] = field(default_factory=dict)

    def is_new(self, kind: str, name: str, place: Place, advice: str) -> bool:
        """True if no declaration of that kind and name came before; otherwise a fault is reported."""
        first = self.places.setdefault((kind, name), place)
        if first == place:
            return True
        there = Related(first[1], "first declared here", first[0])
        message = f"the {kind} `{name}` is declared twice"
        self.findings.add("TS0104", message, place, hint=advice, related=(there,))
        return False


def gather(
    units: tuple[Unit, ...], findings: Findings
) -> tuple[rules.Vocabulary, dict[tuple[str, str], Place]]:
    """The merged vocabulary, and where each thing is declared, by kind and name."""
    axes = {node.name.text for _, node in _declarations(units) if isinstance(node, nodes.Group)}
    found = _MergedDeclarations(findings, frozenset(axes))
    for unit, node in _declarations(units):
        _declare_name(unit, node, found)
    for unit, node in _declarations(units):
        if not getattr(node, "extend", False):
            _declare(unit, node, found)
    for unit, node in _declarations(units):
        if getattr(node, "extend", False):
            _extend(unit, node, found)
    vocabulary = rules.Vocabulary(
        tuple(found.entities.values()),
        tuple(found.events.values()),
        tuple(found.groups.values()),
        tuple(found.context.values()),
    )
    return vocabulary, found.places


def plural(word: str) -> str:
    """`parameters` of `parameter`, `batches` of `batch`, `entities` of `entity`."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def _declarations(units: tuple[Unit, ...]) -> Iterator[tuple[Unit, nodes.Declaration]]:
    for unit in units:
        for node in unit.file.declarations:
            yield unit, node


def _declare_name(unit: Unit, node: nodes.Declaration, found: _MergedDeclarations) -> None:
    """Entities come first by name alone, as fields of one may be of the type of another."""
    if isinstance(node, nodes.Entity) and not node.extend:
        name = node.name.text
        advice = "to add fields to it write `extend entity`"
        if found.is_new("entity", name, (unit.source, node.name.span), advice):
            found.entities[name] = rules.EntityDeclaration(name, plural(name), (), unit.name)


def _declare(unit: Unit, node: nodes.Declaration, found: _MergedDeclarations) -> None:
    source = unit.source
    if isinstance(node, nodes.Entity):
        known = found.entities[node.name.text]
        if found.places["entity", known.name] == (source, node.name.span):
            found.entities[known.name] = replace(known, fields=_fields(unit, node.fields, found))
    elif isinstance(node, nodes.Event):
        name = node.name.text
        advice = "to add callables or fields to it write `extend event`"
        if found.is_new("event", name, (source, node.name.span), advice):
            callables = _callables(unit, node.callables, found)
            fields = _fields(unit, node.fields, found)
            for given in node.fields:
                check_source(given, EventCallables(callables, found.axes, source, found.findings))
            family = any(path.endswith(".*") for path in callables)
            found.events[name] = rules.EventDeclaration(name, unit.name, callables, fields, family)
    elif isinstance(node, nodes.Group):
        name = node.name.text
        advice = "to say where it comes from write `extend group`"
        if found.is_new("group", name, (source, node.name.span), advice):
            callables = _callables(unit, node.callables, found)
            found.groups[name] = rules.GroupDeclaration(name, callables, unit.name)
    elif isinstance(node, nodes.ContextDeclaration):
        _declare_context(unit, node, found)


def _declare_context(
    unit: Unit, node: nodes.ContextDeclaration, found: _MergedDeclarations
) -> None:
    for each in node.fields:
        name = each.name.text
        kind = resolve_type(each.type, found.entities, unit.source, found.findings)
        if found.is_new("context", name, (unit.source, each.name.span), "leave one of them out"):
            found.context[name] = rules.AmbientDeclaration(name, kind or types.SCALAR, unit.name)


def _extend(unit: Unit, node: nodes.Declaration, found: _MergedDeclarations) -> None:
    if isinstance(node, nodes.Entity) and _exists(unit, "entity", node.name, found.entities, found):
        known = found.entities[node.name.text]
        fields = _fields(unit, node.fields, found)
        fresh = _without_clashes(unit, node, known.fields, fields, found)
        found.entities[known.name] = replace(known, fields=known.fields + fresh)
    elif isinstance(node, nodes.Event) and _exists(unit, "event", node.name, found.events, found):
        _extend_event(unit, node, found)
    elif isinstance(node, nodes.Group) and _exists(unit, "group", node.name, found.groups, found):
        group = found.groups[node.name.text]
        more = _callables(unit, node.callables, found)
        callables = tuple(dict.fromkeys(group.callables + more))
        found.groups[group.name] = replace(group, callables=callables)


def _extend_event(unit: Unit, node: nodes.Event, found: _MergedDeclarations) -> None:
    event = found.events[node.name.text]
    callables = _callables(unit, node.callables, found)
    fields = _fields(unit, node.fields, found)
    fresh = []
    for each, given in zip(fields, _known(node.fields, fields), strict=True):
        check_source(given, EventCallables(callables, found.axes, unit.source, found.findings))
        before = event.field(each.name)
        if before is None:
            fresh.append(each)
        elif before.type != each.type:
            message = f"`{each.name}` of `{event.name}` is {before.type}, and here {each.type}"
            found.findings.add("TS0115", message, (unit.source, given.type.span))
    found.events[event.name] = replace(
        event,
        callables=tuple(dict.fromkeys(event.callables + callables)),
        fields=event.fields + tuple(fresh),
        variants=(*event.variants, rules.EventVariant(callables, fields)),
        family=event.family or any(path.endswith(".*") for path in callables),
    )


def _exists(
    unit: Unit,
    kind: str,
    name: nodes.Word | nodes.Dotted,
    known: object,
    found: _MergedDeclarations,
) -> bool:
    assert isinstance(known, dict)
    if name.text in known:
        return True
    if name.text in unit.broken or did_you_mean(name.text, unit.broken):
        return False
    message = f"there is no {kind} `{name.text}` to extend"
    hint = did_you_mean(name.text, known) or "without `extend` it is declared; is a `use` missing?"
    found.findings.add("TS0106", message, (unit.source, name.span), hint=hint)
    return False


def _without_clashes(
    unit: Unit,
    node: nodes.Entity,
    before: tuple[rules.FieldDeclaration, ...],
    fields: tuple[rules.FieldDeclaration, ...],
    found: _MergedDeclarations,
) -> tuple[rules.FieldDeclaration, ...]:
    names = {each.name for each in before}
    for given in node.fields:
        if given.name.text in names:
            message = f"`{node.name.text}` has a field `{given.name.text}` already"
            found.findings.add("TS0104", message, (unit.source, given.name.span))
    return tuple(each for each in fields if each.name not in names)


def _callables(
    unit: Unit, paths: tuple[nodes.Dotted, ...], found: _MergedDeclarations
) -> tuple[str, ...]:
    for path in paths:
        check_callable(path.text, (unit.source, path.span), found.findings)
    return tuple(dict.fromkeys(path.text for path in paths))


def _fields(
    unit: Unit, given: tuple[nodes.Field, ...], found: _MergedDeclarations
) -> tuple[rules.FieldDeclaration, ...]:
    fields: dict[str, rules.FieldDeclaration] = {}
    spans: dict[str, Span] = {}
    for node in given:
        name = node.name.text
        kind = resolve_type(node.type, found.entities, unit.source, found.findings)
        if name in fields:
            there = Related(spans[name], "first declared here")
            message = f"the field `{name}` is declared twice"
            found.findings.add("TS0104", message, (unit.source, node.name.span), related=(there,))
            continue
        spans[name] = node.name.span
        source = (
            None if node.value is None else lower_source(node.value, unit.source, found.findings)
        )
        # A field of an unknown type still exists: otherwise one error would become many.
        fields[name] = rules.FieldDeclaration(
            name, kind or types.SCALAR, source, _reads_result(node)
        )
    return tuple(fields.values())


def _known(
    given: tuple[nodes.Field, ...], fields: tuple[rules.FieldDeclaration, ...]
) -> list[nodes.Field]:
    first: dict[str, nodes.Field] = {}
    for node in given:
        first.setdefault(node.name.text, node)
    return [first[each.name] for each in fields]


def _reads_result(node: nodes.Field) -> bool:
    if node.value is None:
        return node.name.text in OF_THE_RETURN
    return any(isinstance(each, nodes.Name) and each.text == "result" for each in node.value.walk())
