"""TS0434: a `when` across ranks that reads a value local to each rank."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.queries import of_each_member
from tspec.resolve.program.rules import Ambient, Axis, Rule

_OWN_DATA = frozenset({"dp", "world"})
"""Groups whose ranks read different data, and so have different losses."""

_LOCAL = frozenset({"loss"})


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        part = _local(rule)
        if part is not None:
            shown = rule.source.slice(part.span)
            message = (
                f"each rank has a `{shown}` of its own, and a `when` on which ranks differ counts "
                "as violated"
            )
            hint = f"fold it over the group, `max({shown})`, or move it to `expect`"
            yield about(rule, message, part.span, hint)


def _local(rule: Rule) -> Ambient | None:
    axes = {axis.name for axis in rule.across if isinstance(axis, Axis)}
    if rule.when is None or not axes & _OWN_DATA:
        return None
    return next((read for read in of_each_member(rule.when) if read.name in _LOCAL), None)


RULE = LintRule("TS0434", "local-condition", check)
