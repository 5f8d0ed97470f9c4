"""Editions of the language, and how a file of an older one is written in the newest.

Files of every edition are read. What an edition changed is a tuple of migrations, each a function
from tree to tree, so that comments stay where they are; loading an older file applies them without
writing anything, `tspec fmt --upgrade` writes what they give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tspec.syntax import nodes
from tspec.syntax.rewrite import rewrite


@dataclass(frozen=True, slots=True)
class Migration:
    """One change that an edition made."""

    what: str
    """In the words of a list of changes: `classes stand without quotes`."""
    change: Callable[[nodes.File], nodes.File]


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A file in the newest edition, and which changes touched it."""

    file: nodes.File
    done: tuple[str, ...] = ()


# --- 2026 ----------------------------------------------------------------------------------------

FEATURES = frozenset(
    {"digest", "norm", "mean", "std", "min", "max", "sum", "finite", "zeros", "numel"}
)
"""What was a field of a tensor in 2025, and is a function of it since."""

TENSORS = frozenset({"data", "grad", "main_grad"})
"""Fields that surely are tensors, which is all that a tree can tell."""


def _else_is_written(file: nodes.File) -> nodes.File:
    """In 2025 a rule without `else` warned, and did not say so."""

    def change(node: nodes.Node) -> nodes.Node:
        if not isinstance(node, nodes.Invariant) or node.draft or node.otherwise is not None:
            return node
        at = node.name.span
        warn = nodes.Response(nodes.Word("warn", span=at), None, span=at)
        return replace(node, otherwise=nodes.Else((warn,), span=at))

    return rewrite(file, change)


def _classes_are_names(file: nodes.File) -> nodes.File:
    """In 2025 a class was a text with its path, so that a typo passed."""
    lets: set[str] = set()

    def change(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.Argument) and node.name and node.name.text == "class":
            return _with_path(node, lets)
        if isinstance(node, nodes.Call) and node.function == nodes.Name("isinstance"):
            *others, last = node.arguments or (None,)
            if last is not None and others:
                changed = _with_path(last, lets)
                if changed is not last:
                    return replace(node, arguments=(*node.arguments[:-1], changed))
        return node

    def change_let(node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.Let) and node.name.text in lets:
            return replace(node, value=_as_path(node.value))
        return node

    changed = rewrite(file, change)
    return rewrite(changed, change_let) if lets else changed


def _with_path(argument: nodes.Argument, lets: set[str]) -> nodes.Argument:
    """An argument that is a class, or classes; names in it are noted, as they may be lets."""
    lets.update(each.text for each in argument.value.walk() if isinstance(each, nodes.Name))
    value = _as_path(argument.value)
    return argument if value is argument.value else replace(argument, value=value)


def _as_path(value: nodes.Expr) -> nodes.Expr:
    """`"torch.nn.Linear"` as `torch.nn.Linear`, also in a list; what is no path stays."""
    if isinstance(value, nodes.List):
        items = tuple(_as_path(item) for item in value.items)
        return replace(value, items=items) if items != value.items else value
    if not isinstance(value, nodes.String):
        return value
    first, *others = value.value.split(".")
    if not all(part.isidentifier() and part.isascii() for part in (first, *others)):
        return value
    path: nodes.Expr = nodes.Name(first, span=value.span)
    for part in others:
        path = nodes.Attribute(path, nodes.Word(part, span=value.span), span=value.span)
    return replace(path, trivia=value.trivia)


def _features_are_functions(file: nodes.File) -> nodes.File:
    """In 2025 one wrote `p.grad.norm` for `norm(p.grad)`."""

    def change(node: nodes.Node) -> nodes.Node:
        if not isinstance(node, nodes.Attribute) or node.name.text not in FEATURES:
            return node
        if not isinstance(node.value, nodes.Attribute) or node.value.name.text not in TENSORS:
            return node
        argument = nodes.Argument(None, node.value, span=node.value.span)
        function = nodes.Name(node.name.text, span=node.name.span)
        return nodes.Call(function, (argument,), span=node.span, trivia=node.trivia)

    return replace(
        file,
        declarations=tuple(
            # In a script, `p("w").grad.norm = 1` is a place to write to.
            each if isinstance(each, nodes.Test) else rewrite(each, change)
            for each in file.declarations
        ),
    )


EDITIONS = (2025, 2026)
"""The editions of the language that this tspec reads, oldest first. In 2025 a file need not name it."""

MIGRATIONS: dict[int, tuple[Migration, ...]] = {
    2026: (
        Migration("classes stand without quotes", _classes_are_names),
        Migration("features of tensors are functions", _features_are_functions),
        Migration("`else warn` is written out", _else_is_written),
    ),
}
"""What each edition changed, in the order in which it is done."""


def upgrade(file: nodes.File) -> Upgraded:
    """A file of any edition in the newest one; a file without an edition is of the oldest."""
    year = file.edition.year if file.edition else EDITIONS[0]
    done: list[str] = []
    for edition in EDITIONS:
        for migration in MIGRATIONS.get(edition, ()) if edition > year else ():
            changed = migration.change(file)
            if changed != file:
                done.append(migration.what)
            file = changed
    newest = EDITIONS[-1]
    if file.edition is None:
        return Upgraded(replace(file, edition=nodes.Edition(newest)), tuple(done))
    if file.edition.year < newest:
        return Upgraded(replace(file, edition=replace(file.edition, year=newest)), tuple(done))
    return Upgraded(file)
