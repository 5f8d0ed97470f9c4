"""Changes a tree from its leaves up, and keeps what nobody changes, comments included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TypeVar

from tspec.syntax.expressions import Node

_AnyNode = TypeVar("_AnyNode", bound=Node)


def rewrite(node: _AnyNode, change: Callable[[Node], Node]) -> _AnyNode:
    """The tree in which `change` took the place of each node, the innermost first.

    What `change` gives back unchanged is the same object; it keeps a node's kind where the
    tree asks for one.
    """
    changes: dict[str, object] = {}
    for each in fields(node):
        value = getattr(node, each.name)
        if isinstance(value, Node):
            new: object = rewrite(value, change)
        elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            items = tuple(rewrite(i, change) if isinstance(i, Node) else i for i in value)
            new = value if all(a is b for a, b in zip(items, value, strict=True)) else items
        else:
            continue
        if new is not value:
            changes[each.name] = new
    changed = replace(node, **changes) if changes else node  # type: ignore[arg-type]
    return change(changed)  # type: ignore[return-value]
