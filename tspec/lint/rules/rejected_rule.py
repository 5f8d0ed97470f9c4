"""TS0481: a draft that was rejected, and is there all the same."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diagnostics import Related
from tspec.lint.checked import Checked
from tspec.lint.finding import Found, about
from tspec.lint.rule import LintRule
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    rejected = {
        node.name.text: (unit, node)
        for unit in checked.units
        for node in unit.file.declarations
        if isinstance(node, nodes.Reject)
    }
    for rule in checked.rules:
        if rule.name in rejected:
            unit, node = rejected[rule.name]
            message = f"`{rule.name}` was rejected, and is here"
            there = Related(node.name.span, node.because.value, unit.source)
            yield about(rule, message, rule.span, "delete one of the two", related=(there,))


RULE = LintRule("TS0481", "rejected-rule", check)
