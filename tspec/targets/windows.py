"""The windows of rules that are calls: the rules of each event, and their patterns."""

from __future__ import annotations

from tspec.plan.model import Plan, RulePlan


def windows_on(plan: Plan, event: str) -> list[RulePlan]:
    """The rules whose windows are calls of an event, or lie before or after one."""
    return [
        one
        for one in plan.rules
        if one.rule.window.event is not None and event in one.rule.window.event.events
    ]


def window_pattern(plan: Plan, one: RulePlan) -> int:
    """The number of the pattern whose calls are a rule's windows."""
    event = one.rule.window.event
    assert event is not None
    return plan.pattern(event).number


def window_patterns(plan: Plan, event: str) -> list[int]:
    """The numbers of the patterns that make calls of the event windows."""
    return sorted({window_pattern(plan, one) for one in windows_on(plan, event)})
