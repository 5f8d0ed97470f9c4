"""Idle windows: all instances are counted at once where their subjects depend on nothing that would be read."""

from __future__ import annotations

from tspec.plan.calls import needs_begin
from tspec.plan.events import is_windows_call
from tspec.plan.model import RulePlan
from tspec.resolve.program import rules as r
from tspec.resolve.program.types import PASSING
from tspec.targets.literals import literal


def no_group(rule: r.Rule) -> str:
    """Why instances of a rule are idle on a rank without a group."""
    return f"no group {group_names(rule)}"


def group_names(rule: r.Rule) -> str:
    """The axes and fields that name the group of a rule."""
    return ", ".join(
        one.name if isinstance(one, r.Axis) else str(getattr(one.value, "name", ""))
        for one in rule.across
    )


def choices(one: RulePlan) -> str:
    """Python for the names of the subjects of each clause; nothing if some depend on what is read."""
    event = one.rule.window.event
    if event is not None and event.filters:
        return ""
    found = []
    for clause in one.rule.subjects:
        kind = _kind(clause)
        if is_windows_call(clause, one.rule):
            found.append("(None,)")
        elif kind:
            found.append(f"now.subjects({literal(kind)})")
        else:
            return ""
    return f"({', '.join(found)},)" if found else "()"


def has_one_instance(one: RulePlan) -> bool:
    """Each window has one instance, whatever there is."""
    rule = one.rule
    call_only = all(is_windows_call(clause, rule) for clause in rule.subjects)
    return call_only and bool(choices(one)) and not rule.window.once


def counted_at_hook(one: RulePlan) -> str:
    """Why the hook point counts the one instance of a window as idle: `ungrouped`, `idle`, or empty if it does not."""
    kind = one.rule.window.kind
    if kind == "each" or needs_begin(one) or not has_one_instance(one):
        return ""
    if one.rule.across:
        return "ungrouped"
    return "idle" if one.guard is not None and kind != "during" else ""


def told_as_one(one: RulePlan) -> tuple[str, ...]:
    """The kinds of the subjects, where other ranks are told of an idle window as a whole."""
    rule = one.rule
    kinds = tuple(_kind(clause) for clause in rule.subjects)
    axes_only = all(isinstance(axis, r.Axis) for axis in rule.across)
    whole = bool(rule.across) and axes_only and not rule.window.once and bool(choices(one))
    return kinds if whole and all(kinds) else ()


def _kind(clause: r.For) -> str:
    """The kind of lasting subjects that a clause goes over, all of them; else nothing."""
    collection = clause.collection
    if isinstance(collection, r.Subjects) and not collection.filters:
        return "" if collection.kind in PASSING else collection.kind
    return ""
