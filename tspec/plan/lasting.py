"""The fields of calls that are kept beyond their step, for rules whose windows may last longer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tspec.plan.events import fields_of
from tspec.plan.model import LastingPlan, RulePlan


@dataclass
class _LookedUpFields:
    filters: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)
    first: set[str] = field(default_factory=set)


def lasting(rules: Iterable[RulePlan]) -> dict[str, LastingPlan]:
    """The fields used to look up calls in windows that may outlast a step, and the fields read from
    these calls.
    """
    found: dict[str, _LookedUpFields] = {}
    for plan in rules:
        if _ends_with_step(plan):
            continue
        events: set[str] = set()
        for pattern in plan.counted:
            events.update(pattern.events)
            for event in pattern.events:
                found.setdefault(event, _LookedUpFields()).filters.update(fields_of(pattern))
        for one in plan.reads.call_fields:
            if one.looked_up and one.event in events:
                of = found[one.event]
                (of.first if one.first else of.fields).add(one.name)
    return {event: _planned(found[event]) for event in sorted(found)}


def _planned(of: _LookedUpFields) -> LastingPlan:
    every = of.fields | of.filters
    return LastingPlan(
        tuple(sorted(of.filters)), tuple(sorted(every)), tuple(sorted(of.first - every))
    )


def _ends_with_step(plan: RulePlan) -> bool:
    window = plan.rule.window
    return window.kind in ("before", "after") or window.span == "step"
