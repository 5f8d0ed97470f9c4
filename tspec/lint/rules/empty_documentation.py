"""TS0453: documentation that says nothing, or nothing but the name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Edit, Fix, Found
from tspec.lint.rule import LintRule
from tspec.resolve.modules.files import Unit
from tspec.source import Source, Span
from tspec.syntax import nodes

_WORD = re.compile(r"\w+")
_SMALL = frozenset({"the", "a", "an", "is", "are", "of", "to", "in", "on"})


def check(checked: Checked) -> Iterator[Found]:
    for unit in checked.files:
        headers = [] if unit.file.module is None else [unit.file.module]
        for node in (*headers, *unit.file.declarations):
            yield from _of(unit, node)


def _of(unit: Unit, node: nodes.Node) -> Iterator[Found]:
    comments = [each for each in node.trivia.leading if each.is_doc]
    if not comments:
        return
    words = _words(node.doc or "")
    span = comments[0].span.to(comments[-1].span)
    if not words:
        lines = tuple(Edit(_line(unit.source, each.span), "") for each in comments)
        fix = Fix("delete it", lines)
        yield Found("the documentation is empty", unit.source, span, "write a sentence", fix=fix)
    elif isinstance(node, nodes.Invariant) and words <= _words(node.name.text.replace("_", " ")):
        message = "the documentation says what the name says"
        hint = "say what goes wrong where it is violated, or leave it out"
        name = f"{unit.name}.{node.name.text}" if unit.name else node.name.text
        yield Found(message, unit.source, span, hint, invariant=name)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text)) - _SMALL


def _line(source: Source, span: Span) -> Span:
    start = source.text.rfind("\n", 0, span.start) + 1
    end = source.text.find("\n", span.end)
    return Span(start, len(source.text) if end < 0 else end + 1)


RULE = LintRule("TS0453", "empty-documentation", check)
