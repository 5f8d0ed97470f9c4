"""Which names a file reads, and which modules it sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tspec.resolve.modules.files import Unit
from tspec.resolve.names.vocabulary import plural
from tspec.syntax import nodes


def visible(unit: Unit, by_module: Mapping[str, Unit]) -> frozenset[str]:
    """Names of the modules that a file sees, its own included, over as many as lie between."""
    found = {unit.name}
    pending = [unit]
    while pending:
        for use in pending.pop().file.uses:
            target = by_module.get(use.module.text)
            if target is not None and target.name not in found:
                found.add(target.name)
                pending.append(target)
    return frozenset(found)


def read_names(node: nodes.Node) -> Iterator[str]:
    """Every word below a node that may name something, and every dotted path."""
    for each in node.walk():
        match each:
            case nodes.Name(text=text) | nodes.Word(text=text):
                yield text
            case nodes.Attribute():
                yield nodes.dotted_text(each) or ""
            case nodes.Dotted(text=text):
                yield text


def declared_names(unit: Unit) -> Iterator[str]:
    """What a file declares that another one can name, rules included, which tests name."""
    for node in unit.file.declarations:
        match node:
            case nodes.Context(fields=fields):
                yield from (each.name.text for each in fields)
            case nodes.Entity(name=name, extend=False):
                yield from (name.text, plural(name.text))
            case nodes.Event(name=dotted, extend=False):
                yield dotted.text
            case nodes.Test() | nodes.Reject():
                continue
            case nodes.Group(name=name, extend=False) | nodes.Let(name=name):
                yield name.text
            case nodes.Invariant(name=name) | nodes.Mesh(name=name) | nodes.Dims(name=name):
                yield name.text
            case nodes.Layout(name=name) | nodes.Equivalence(name=name) | nodes.Replay(name=name):
                yield name.text


def extends(unit: Unit) -> bool:
    """Whether a file adds to what others declare, which is in force everywhere."""
    return any(getattr(node, "extend", False) for node in unit.file.declarations)
