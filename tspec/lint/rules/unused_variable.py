"""TS0462: a `for` variable that the rule never names."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Found, about
from tspec.lint.rule import LintRule
from tspec.lint.usage import read_names
from tspec.resolve.program.rules import Calls, Rule
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    for rule in checked.rules:
        for place, clause in enumerate(rule.node.subjects):
            lowered = next(each for each in rule.subjects if each.variable == clause.variable.text)
            if isinstance(lowered.collection, Calls) and rule.window.kind == "calls":
                continue  # The calls are its windows.
            name = clause.variable.text
            if name in _read(rule, place):
                continue
            message = f"`{name}` is never named: every one of them gets the same verdict"
            hint = "leave out the clause, or say something of it"
            yield about(rule, message, clause.variable.span, hint)


def _read(rule: Rule, place: int) -> set[str]:
    node = rule.node
    later = [each.collection for each in node.subjects[place + 1 :]]
    clauses: list[nodes.Node | None] = [*later, node.across, node.window, node.when, node.expect]
    return {name for each in clauses if each is not None for name in read_names(each)}


RULE = LintRule("TS0462", "unused-variable", check)
