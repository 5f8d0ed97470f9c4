"""The module of the standard library that declares a name: for hints, also where it is not loaded."""

from __future__ import annotations

from collections.abc import Set

from tspec.resolve.names.vocabulary import plural
from tspec.resources import shipped
from tspec.source import Source
from tspec.syntax import nodes
from tspec.syntax.parse import parse


def shipped_module(name: str, seen: Set[str]) -> str | None:
    """The first module that declares a name, other than those that are seen, or None.

    Only texts that hold the name are parsed.
    """
    for path in sorted(shipped("stdlib").glob("*.tspec")):
        source = Source.read(path)
        if name not in source.text:
            continue
        file = parse(source).file
        module = file.module.name.text if file.module else ""
        if module not in seen and any(_declares(node, name) for node in file.declarations):
            return module
    return None


def _declares(node: nodes.Declaration, name: str) -> bool:
    match node:
        case nodes.Let() | nodes.Group(extend=False) | nodes.Event(extend=False):
            return node.name.text == name
        case nodes.Entity(extend=False):
            return plural(node.name.text) == name
        case nodes.ContextDeclaration():
            return any(each.name.text == name for each in node.fields)
    return False
