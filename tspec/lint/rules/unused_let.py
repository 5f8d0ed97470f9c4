"""TS0461: a `let` that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Edit, Fix, Found
from tspec.lint.rule import LintRule
from tspec.lint.usage import read_names
from tspec.resolve.modules.files import Unit
from tspec.source import Span
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    read = {unit.key: _read(unit) for unit in checked.units}
    for unit in checked.files:
        if unit.key in checked.shared or not _has_rules(unit):
            continue  # Vocabulary, and what others build on, is for those who are not here.
        users = [each for each in checked.units if _uses(each, unit)]
        for node in unit.file.declarations:
            if not isinstance(node, nodes.Let):
                continue
            name = node.name.text
            if any(name in read[each.key] for each in (unit, *users)):
                continue
            fix = Fix("delete the line", (Edit(_lines(unit, node), ""),), safe=not unit.name)
            yield Found(
                f"nothing reads `{name}`", unit.source, node.name.span, "delete it", fix=fix
            )


def _read(unit: Unit) -> frozenset[str]:
    """Words that are read; the first of a dotted path may be a let too."""
    found: set[str] = set()
    for node in unit.file.declarations:
        body = (node.value,) if isinstance(node, nodes.Let) else (node,)
        for part in body:
            found.update(read_names(part))
    return frozenset(found)


def _has_rules(unit: Unit) -> bool:
    return any(isinstance(node, nodes.Invariant) for node in unit.file.declarations)


def _uses(other: Unit, unit: Unit) -> bool:
    return bool(unit.name) and any(use.module.text == unit.name for use in other.file.uses)


def _lines(unit: Unit, node: nodes.Let) -> Span:
    text = unit.source.text
    start = text.rfind("\n", 0, node.span.start) + 1
    for comment in reversed(node.trivia.leading):
        if comment.is_doc:
            start = text.rfind("\n", 0, comment.span.start) + 1
        else:
            break
    end = text.find("\n", node.span.end)
    return Span(start, len(text) if end < 0 else end + 1)


RULE = LintRule("TS0461", "unused-let", check)
