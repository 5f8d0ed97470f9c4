"""TS0451: names that are not in lower case with underscores."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Found
from tspec.lint.rule import LintRule
from tspec.syntax import nodes

_SNAKE = re.compile(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*_?")
_NAMED = (
    nodes.Invariant, nodes.Let, nodes.Group, nodes.Entity, nodes.Mesh, nodes.Layout,
    nodes.Equivalence, nodes.Replay, nodes.Dims,
)  # fmt: skip


def check(checked: Checked) -> Iterator[Found]:
    for unit, node in checked.declarations():
        for word in _names(node):
            if _SNAKE.fullmatch(word.text):
                continue
            name = _snake(word.text)
            message = f"`{word.text}` is not written as names are: lower case, with underscores"
            yield Found(message, unit.source, word.span, f"write `{name}`")


def _names(node: nodes.Declaration) -> Iterator[nodes.Word]:
    if isinstance(node, _NAMED):
        yield node.name
    if isinstance(node, nodes.Event):
        yield from node.name.parts
    if isinstance(node, nodes.Invariant):
        yield from (each.variable for each in node.subjects)


def _snake(name: str) -> str:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return re.sub(r"_+", "_", apart).strip("_") or "name"


RULE = LintRule("TS0451", "naming", check)
