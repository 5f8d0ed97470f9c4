"""Entries for the declarations of modules: context, groups, entities, events, their fields,
collections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from tspec.resolve.declared import DeclaredName, LetKind, declared_names
from tspec.source import Source
from tspec.vocabulary.entries import VocabularyEntry

NUMBERS = ("int", "float", "scalar")


def entries_of(source: Source) -> Iterator[VocabularyEntry]:
    """The entries of one module, in the order of its text."""
    for declared in declared_names(source):
        yield from _entries(declared)


def _entries(declared: DeclaredName) -> Iterator[VocabularyEntry]:
    name, meaning, module = declared.name, declared.documentation, declared.module
    match declared.kind:
        case "context value":
            kind = declared.type
            example = f"each step {_clauses_on(name, kind)}"
            yield VocabularyEntry("context value", name, meaning, example, kind, module=module)
        case "group":
            example = f"across {name} each step expect same(step)"
            yield VocabularyEntry("group", name, meaning, example, module=module)
        case "entity":
            subjects = f"for x in {declared.plural} each step"
            if not declared.extends:
                example = f"each step expect count({declared.plural}) > 0"
                yield VocabularyEntry(
                    "entity", name, meaning, example, module=module, other_name=declared.plural
                )
            yield from _fields(declared, subjects)
        case "event":
            example, calls = f"each step expect contains {name}", declared.callables
            yield VocabularyEntry("event", name, meaning, example, module=module, callables=calls)
            yield from _fields(declared, f"for c in calls({name})")
        case "let":
            assert declared.value is not None
            example = _OF_LET[declared.value].format(name)
            yield VocabularyEntry("collection", name, meaning, example, module=module)
        case other:
            assert_never(other)


def _fields(owner: DeclaredName, subjects: str) -> Iterator[VocabularyEntry]:
    variable = subjects.split()[1]
    for field in owner.fields:
        value = f"{variable}.{field.name}"
        if field.type.rstrip("?") == "group":
            head, window, _ = subjects.partition(" each step")
            example = f"{head} across {value}{window} expect same(step)"
        else:
            example = f"{subjects} {_clauses_on(value, field.type)}"
        yield VocabularyEntry(
            "field", field.name, field.documentation, example, field.type, owner.name, owner.module
        )


def _clauses_on(value: str, kind: str) -> str:
    """`expect` with a condition on a value of a type, after the guard that it needs."""
    guard = f"when present({value}) " if kind.endswith("?") else ""
    kind = kind.rstrip("?")
    if kind == "bool":
        return f"{guard}expect not {value}"
    if kind in NUMBERS:
        return f"{guard}expect {value} >= 0"
    if kind == "string":
        return f'{guard}expect {value} != ""'
    if kind == "tensor":
        return f"{guard}expect finite({value})"
    if kind == "dtype":
        return f"{guard}expect {value} == float32"
    if kind == "class":
        return f"{guard}expect {value} not in [torch.nn.Identity]"
    if kind == "shape" or kind.startswith(("list<", "set<")):
        return f"{guard}expect count({value}) > 0"
    if kind.startswith("map<"):
        return f'{guard}expect "name" in {value}'
    if " | " in kind:
        return f"{guard}expect {value} == {kind.split(' | ')[0]}"
    if kind in _OF_ENTITY:
        return f"{guard}expect {_OF_ENTITY[kind].format(value)}"
    return f"expect present({value})"


_OF_ENTITY: Mapping[str, str] = {
    "module": '{}.name != ""',
    "parameter": '{}.name != ""',
    "optimizer": "isinstance({}, torch.optim.Optimizer)",
    "scheduler": "isinstance({}, torch.optim.lr_scheduler.LRScheduler)",
    "loader": "{}.trained_on",
    "param_group": "{}.lr >= 0",
}
"""Entity -> a condition on one of its subjects."""

_OF_LET: Mapping[LetKind, str] = {
    "string": "for p in parameters each step expect not matches(p.name, {})",
    "strings": "for p in parameters each step expect not (p.name in {})",
    "classes": "for m in modules each step expect not isinstance(m, {})",
    "collection": "each step expect count({}) > 0",
    "condition": "each step expect not {}",
    "number": "each step expect loss >= {}",
}
"""Kind of a `let`'s value -> an example."""
