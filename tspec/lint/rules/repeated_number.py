"""TS0455: one threshold written in several rules of a file."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diagnostics import Related
from tspec.lint.checked import Checked
from tspec.lint.finding import Found
from tspec.lint.rule import LintRule
from tspec.resolve.modules.files import Unit
from tspec.syntax import nodes

RULES_WITH_IT = 3
"""In so many rules of one file a number is no chance any more."""

_PLAIN = frozenset({0.0, 0.5, 1.0, 2.0, 0.1, 0.01, 10.0, 100.0})


def check(checked: Checked) -> Iterator[Found]:
    for unit in checked.files:
        for places in _numbers(unit).values():
            if len(places) < RULES_WITH_IT:
                continue
            first, *others = places.values()
            shown = unit.source.slice(first.span)
            message = f"`{shown}` stands in {len(places)} rules"
            hint = f"give it a name: `let limit = {shown}`"
            related = tuple(Related(each.span, "and here") for each in others[:3])
            yield Found(message, unit.source, first.span, hint, related)


def _numbers(unit: Unit) -> dict[float, dict[str, nodes.Expr]]:
    """Fractions by value: the first place of each in each rule. Whole numbers mean too many things."""
    found: dict[float, dict[str, nodes.Expr]] = {}
    for rule in unit.file.declarations:
        if not isinstance(rule, nodes.Invariant):
            continue
        for node in rule.walk():
            if isinstance(node, nodes.Float | nodes.Percentage) and node.value not in _PLAIN:
                found.setdefault(node.value, {}).setdefault(rule.name.text, node)
    return found


RULE = LintRule("TS0455", "repeated-number", check)
