"""The names that a file sees: its `let`s, those of the modules that it uses, and the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TypeAlias

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.findings import Findings
from tspec.resolve.modules.files import Unit
from tspec.resolve.names.shipped import shipped_module
from tspec.resolve.program import rules
from tspec.resolve.program.declarations import bare_event
from tspec.source import Source
from tspec.syntax import nodes

SEPARATOR = " | "
"""Separates the events of one `calls(A, B)` in the name of its type."""


LetKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LetBinding:
    """A `let` and the file that contains it; its value is resolved with that file's names."""

    node: nodes.Let
    unit: Unit

    @property
    def key(self) -> LetKey:
        """Distinguishes `let`s of one name in two files."""
        return self.unit.key, self.node.name.text


@dataclass(frozen=True)
class Scope:
    """The names that one file sees.


    Its vocabulary is declared in the file and in the modules that it uses, directly or through
    others; extensions apply everywhere. Its `let`s are its own and those of the modules that it
    uses directly.
    """

    unit: Unit
    vocabulary: rules.Vocabulary
    modules: frozenset[str]
    """Keys of `Unit.name` that are visible."""
    lets: Mapping[str, LetBinding]
    aliases: Mapping[str, Scope]
    entities: Mapping[str, rules.EntityDeclaration]
    collections: Mapping[str, rules.EntityDeclaration]
    """Entities by their plural."""
    events: Mapping[str, rules.EventDeclaration]
    axes: Mapping[str, rules.GroupDeclaration]
    ambient: Mapping[str, rules.AmbientDeclaration]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Names that other loaded modules declare, with the module: for hints."""
    homes: Mapping[str, Scope] = field(default_factory=dict)
    """The scopes of all files by `Unit.key`; complete once all are built."""
    refused: Set[LetKey] = frozenset()
    """`let`s without a usable value; complete once the scopes of all files are built."""

    @property
    def source(self) -> Source:
        """The file's text."""
        return self.unit.source

    def home(self, unit: Unit) -> Scope:
        """The scope of another file, whose lets are read with its own names."""
        return self.homes[unit.key]

    def entity(self, kind: str) -> rules.EntityDeclaration | None:
        """The entity of that name, visible or not: fields lead to it without naming it."""
        return self.vocabulary.entity(kind)

    def events_of(self, name: str) -> tuple[rules.EventDeclaration, ...]:
        """The events of `CallOf.event`: one, or several joined by a bar; bare callables included."""
        found = []
        for each in name.split(SEPARATOR):
            declared = self.vocabulary.event(each)
            found.append(declared or bare_event(each, self.vocabulary))
        return tuple(found)

    def call_fields(self, name: str) -> dict[str, rules.FieldDeclaration]:
        """Fields that all events of a call's type have, with one type."""
        events = self.events_of(name)
        fields = {each.name: each for each in events[0].fields}
        for other in events[1:]:
            types_of = {each.name: each.type for each in other.fields}
            fields = {
                name: each for name, each in fields.items() if types_of.get(name) == each.type
            }
        return fields

    def hint(self, word: str, candidates: list[str]) -> str | None:
        """`did you mean`, or which module to use for a name that another one declares."""
        module = self.declared_by(word)
        if module is not None:
            return f"`{module}` declares it: add `use {module}`"
        return did_you_mean(word, candidates)

    def declared_by(self, word: str) -> str | None:
        """The module that declares a name which this file does not see: a loaded or a shipped one."""
        return self.elsewhere.get(word) or shipped_module(word, self.modules)


@dataclass(slots=True)
class _Scopes:
    units: tuple[Unit, ...]
    vocabulary: rules.Vocabulary
    findings: Findings
    by_name: dict[str, Unit]
    refused: Set[LetKey]
    built: dict[str, Scope] = field(default_factory=dict)
    building: set[str] = field(default_factory=set)


def scopes(
    units: tuple[Unit, ...],
    vocabulary: rules.Vocabulary,
    findings: Findings,
    refused: Set[LetKey] = frozenset(),
) -> dict[str, Scope]:
    """The scope of each file, by `Unit.key`. Double `let`s and clashing imports are reported.

    `refused` are the `let`s without a usable value; the caller may add them afterwards.
    """
    by_name = {unit.name: unit for unit in reversed(units) if unit.name}
    state = _Scopes(units, vocabulary, findings, by_name, refused)
    return {unit.key: _scope(unit, state) for unit in units}


def _scope(unit: Unit, state: _Scopes) -> Scope:
    if unit.key in state.built:
        return state.built[unit.key]
    state.building.add(unit.key)
    modules = frozenset(_closure(unit, state.by_name))
    aliases = {}
    for use in unit.file.uses:
        target = state.by_name.get(use.module.text)
        # A circle of uses was reported already.
        if use.alias and target is not None and target.key not in state.building:
            aliases[use.alias.text] = _scope(target, state)
    seen = state.vocabulary
    scope = Scope(
        unit,
        seen,
        modules,
        _lets(unit, state),
        aliases,
        {each.name: each for each in seen.entities if each.module in modules},
        {each.plural: each for each in seen.entities if each.module in modules},
        {each.name: each for each in seen.events if each.module in modules},
        {each.name: each for each in seen.groups if each.module in modules},
        {each.name: each for each in seen.context if each.module in modules},
        _elsewhere(modules, state),
        state.built,
        state.refused,
    )
    state.building.discard(unit.key)
    state.built[unit.key] = scope
    return scope


def _closure(unit: Unit, by_name: Mapping[str, Unit]) -> set[str]:
    """Names of the modules that a file sees, its own included."""
    found = {unit.name}
    pending = [unit]
    while pending:
        for use in pending.pop().file.uses:
            target = by_name.get(use.module.text)
            if target is not None and target.name not in found:
                found.add(target.name)
                pending.append(target)
    return found


def _lets(unit: Unit, state: _Scopes) -> dict[str, LetBinding]:
    found: dict[str, LetBinding] = {}
    for use in unit.file.uses:
        target = state.by_name.get(use.module.text)
        if target is None or use.alias is not None:
            continue
        for node in target.file.declarations:
            if isinstance(node, nodes.Let):
                found.setdefault(node.name.text, LetBinding(node, target))
    for node in unit.file.declarations:
        if not isinstance(node, nodes.Let):
            continue
        first = found.get(node.name.text)
        if first is not None and first.node is not node:
            message = f"`{node.name.text}` is given a value twice"
            there = Related(first.node.name.span, "the first one", first.unit.source)
            place = (unit.source, node.name.span)
            state.findings.add("TS0104", message, place, related=(there,))
            continue
        found[node.name.text] = LetBinding(node, unit)
    return found


def _elsewhere(modules: frozenset[str], state: _Scopes) -> dict[str, str]:
    seen = state.vocabulary
    declared = [(each.name, each.module) for each in seen.events]
    declared += [(each.name, each.module) for each in seen.groups]
    declared += [(each.name, each.module) for each in seen.context]
    declared += [(each.plural, each.module) for each in seen.entities]
    found = {name: module for name, module in declared if module and module not in modules}
    for unit in state.units:
        for node in unit.file.declarations:
            if isinstance(node, nodes.Let) and unit.name and unit.name not in modules:
                found.setdefault(node.name.text, unit.name)
    return found
