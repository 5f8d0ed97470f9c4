"""TS0434: a `when` across ranks that reads what each rank has for itself."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Found, about
from tspec.lint.rule import LintRule
from tspec.resolve.rules import Ambient, Axis, Expr, Fold, Rule
from tspec.resolve.walk import Part, children

_OWN_DATA = frozenset({"dp", "world"})
"""Groups of which each rank reads data of its own, and so has a loss of its own."""

_LOCAL = frozenset({"loss"})


def check(checked: Checked) -> Iterator[Found]:
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


def _local(rule: Rule) -> Expr | None:
    axes = {axis.name for axis in rule.across if isinstance(axis, Axis)}
    return _below(rule.when) if rule.when is not None and axes & _OWN_DATA else None


def _below(part: Part) -> Expr | None:
    if isinstance(part, Ambient):
        return part if part.name in _LOCAL else None
    if isinstance(part, Fold) and part.scope == "group":
        return None  # One value for all members.
    for child in children(part):
        found = _below(child)
        if found is not None:
            return found
    return None


RULE = LintRule("TS0434", "local-condition", check)
