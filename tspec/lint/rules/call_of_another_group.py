"""TS0431: calls that belong to a group of their own, read across another one."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program import types
from tspec.resolve.program.rules import Axis, Calls
from tspec.resolve.program.types import plain


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        axis = next((each for each in rule.across if isinstance(each, Axis)), None)
        if axis is None:
            continue
        for clause in rule.subjects:
            if isinstance(clause.collection, Calls) and _have_groups(clause.collection, checked):
                name = clause.variable
                message = (
                    f"each of these calls is made by the ranks of its own group, `{name}.group`, "
                    f"and not by those of `{axis.name}`"
                )
                hint = f"write `across {name}.group`"
                yield about(rule, message, rule.spans.across, hint)
                break


def _have_groups(calls: Calls, checked: CheckedProgram) -> bool:
    events = [checked.program.vocabulary.event(name) for name in calls.event.events]
    fields = [event.field("group") if event else None for event in events]
    return all(field is not None and plain(field.type) == types.GROUP for field in fields) and not (
        any(each.field == "group" for each in calls.event.filters)
    )


RULE = LintRule("TS0431", "call-of-another-group", check)
