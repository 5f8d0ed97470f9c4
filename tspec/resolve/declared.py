"""The declarations of a file that rules can name, with documentation, type as written, and fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tspec.builtin.features import FEATURES
from tspec.builtin.folds import FOLDS
from tspec.resolve.names.vocabulary import plural
from tspec.source import Source
from tspec.syntax import nodes
from tspec.syntax.format_expressions import type_text
from tspec.syntax.parse import parse

DeclaredKind = Literal["context value", "group", "entity", "event", "let"]
LetKind = Literal["string", "strings", "classes", "collection", "condition", "number"]
_NUMBERS = frozenset({*FOLDS, *FEATURES, "previous", "first"})
"""Functions of which a `let` has a number."""


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field of an entity or event."""

    name: str
    documentation: str
    type: str
    """The type as written: `tensor?`."""


@dataclass(frozen=True, slots=True)
class DeclaredName:
    """One name that a rule can use."""

    kind: DeclaredKind
    name: str
    documentation: str
    """The `///` above it, on one line."""
    module: str
    type: str = ""
    """For a context value: its type as written."""
    plural: str = ""
    """For an entity: its plural."""
    callables: tuple[str, ...] = ()
    """For an event: its callables."""
    fields: tuple[DeclaredField, ...] = ()
    """For an entity or event: its fields."""
    extends: bool = False
    """True if the declaration adds fields to an entity that is declared elsewhere."""
    value: LetKind | None = None
    """For a `let`: the kind of its value."""


def declared_names(source: Source) -> Iterator[DeclaredName]:
    """The names that a file declares, in the order of its text."""
    file = parse(source).file
    module = file.module.name.text if file.module else ""
    for node in file.declarations:
        text = _documentation(node)
        match node:
            case nodes.ContextDeclaration(fields=fields):
                for each in map(_field, fields):
                    yield DeclaredName(
                        "context value", each.name, each.documentation, module, each.type
                    )
            case nodes.Group(name=name, extend=False):
                yield DeclaredName("group", name.text, text, module)
            case nodes.Entity(name=name, fields=fields, extend=extends):
                yield DeclaredName(
                    "entity", name.text, text, module, plural=plural(name.text),
                    fields=tuple(map(_field, fields)), extends=extends,
                )  # fmt: skip
            # An extension of an event says how other callables give the same fields.
            case nodes.Event(name=dotted, callables=callables, fields=fields, extend=False):
                yield DeclaredName(
                    "event", dotted.text, text, module,
                    callables=tuple(each.text for each in callables),
                    fields=tuple(map(_field, fields)),
                )  # fmt: skip
            case nodes.Let(name=name, value=value):
                yield DeclaredName("let", name.text, text, module, value=_kind_of(value))


def _field(node: nodes.Field | nodes.ContextField) -> DeclaredField:
    return DeclaredField(node.name.text, _documentation(node), type_text(node.type))


def _kind_of(value: nodes.Node) -> LetKind:
    match value:
        case nodes.String():
            return "string"
        case nodes.List(items=(nodes.String(), *_)):
            return "strings"
        case nodes.List():
            return "classes"
        case nodes.Call(function=nodes.Name(text=function)) if function in _NUMBERS:
            return "number"
        case nodes.Call():
            return "collection"
        case nodes.Comparison() | nodes.Not() | nodes.And() | nodes.Or():
            return "condition"
    return "number"


def _documentation(node: nodes.Node) -> str:
    return " ".join((node.doc or "").split())
