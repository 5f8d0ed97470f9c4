"""Entries for the declarations of modules: context, groups, entities, events, their fields,
collections.
"""

from __future__ import annotations

from collections.abc import Iterator

from tspec.builtin.folds import FOLDS
from tspec.resolve.names.vocabulary import plural
from tspec.syntax import nodes
from tspec.syntax.format_expressions import type_text
from tspec.vocabulary.entries import VocabularyEntry

NUMBERS = ("int", "float", "scalar")


def entries_of(file: nodes.File) -> Iterator[VocabularyEntry]:
    """The entries of one module, in the order of its text."""
    module = file.module.name.text if file.module else ""
    for node in file.declarations:
        match node:
            case nodes.ContextDeclaration(fields=fields):
                for each in fields:
                    yield _context(each, module)
            case nodes.Group(name=name, extend=False):
                example = f"across {name.text} each step expect same(step)"
                yield VocabularyEntry("group", name.text, _said(node), example, module=module)
            case nodes.Entity():
                yield from _entity(node, module)
            case nodes.Event():
                yield from _event(node, module)
            case nodes.Let(name=name):
                yield VocabularyEntry(
                    "collection", name.text, _said(node), _of_let(node), module=module
                )


def _context(field: nodes.ContextField, module: str) -> VocabularyEntry:
    name, kind = field.name.text, type_text(field.type)
    example = f"each step {_clauses_on(name, kind)}"
    return VocabularyEntry("context value", name, _said(field), example, kind, module=module)


def _entity(node: nodes.Entity, module: str) -> Iterator[VocabularyEntry]:
    name = node.name.text
    subjects = f"for x in {plural(name)} each step"
    if not node.extend:
        example = f"{subjects} expect present(x)"
        yield VocabularyEntry(
            "entity", name, _said(node), example, module=module, other_name=plural(name)
        )
    yield from _fields(node.fields, name, subjects, module)


def _event(node: nodes.Event, module: str) -> Iterator[VocabularyEntry]:
    name = node.name.text
    if not node.extend:
        calls = tuple(each.text for each in node.callables)
        example = f"each step expect contains {name}"
        yield VocabularyEntry("event", name, _said(node), example, module=module, callables=calls)
        yield from _fields(node.fields, name, f"for c in calls({name})", module)


def _fields(
    fields: tuple[nodes.Field, ...], owner: str, subjects: str, module: str
) -> Iterator[VocabularyEntry]:
    variable = subjects.split()[1]
    for each in fields:
        name, kind = each.name.text, type_text(each.type)
        value = f"{variable}.{name}"
        if kind.rstrip("?") == "group":
            head, window = subjects.removesuffix(" each step"), " each step"
            example = (
                f"{head} across {value}{window if window in subjects else ''} expect same(step)"
            )
        else:
            example = f"{subjects} {_clauses_on(value, kind)}"
        yield VocabularyEntry("field", name, _said(each), example, kind, owner, module)


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
    if kind.startswith(("list<", "set<")):
        return f"{guard}expect count({value}) > 0"
    if " | " in kind:
        return f"{guard}expect {value} == {kind.split(' | ')[0]}"
    return f"expect present({value})"


def _of_let(node: nodes.Let) -> str:
    """What a name for a list of strings or of classes, a number, a condition or a collection stands in."""
    name = node.name.text
    if isinstance(node.value, nodes.List) and isinstance(node.value.items[0], nodes.String):
        return f"for p in parameters each step expect not (p.name in {name})"
    if isinstance(node.value, nodes.List):
        return f"for m in modules each step expect not isinstance(m, {name})"
    if isinstance(node.value, nodes.Call) and not _is_fold(node.value):
        return f"for x in {name} each step expect present(x)"
    if isinstance(node.value, nodes.Comparison | nodes.Not | nodes.And | nodes.Or):
        return f"each step expect not {name}"
    return f"each step expect loss >= {name}"


def _is_fold(node: nodes.Call) -> bool:
    """It makes one number of many."""
    return isinstance(node.function, nodes.Name) and node.function.text in FOLDS


def _said(node: nodes.Node) -> str:
    return " ".join((node.doc or "").split())
