"""The words for a claim that fails."""

from __future__ import annotations

import re

from tspec.resolve.program import rules
from tspec.source import NOWHERE, Span


def failure(rule: rules.Rule) -> str:
    """What is said where the rule's claim fails: `expected norm(p.grad) < 10`."""
    match rule.expect:
        case rules.Contains(event=event):
            return f"no call of {event_words(event)}"
        case rules.Ordered(events=(first, second), edge="before"):
            return f"{event_words(second)} without {event_words(first)} before it"
        case rules.Ordered(events=events):
            order = f" {rule.expect.edge} ".join(map(event_words, events))
            return f"expected {order}, which was not the order"
        case rules.OnlyDuring(events=events, change=change) as claim:
            what = _text(rule, claim.subject.span) or "it"
            verb = "changed" if change else "happened"
            return f"{what} {verb} outside of {' and '.join(map(event_words, events))}"
        case rules.Holds(condition=condition):
            return f"expected {_text(rule, condition.span) or 'the condition'}"


def event_words(event: rules.EventPattern) -> str:
    """The events of a pattern, as people read them."""
    return " or ".join(f"`{name}`" for name in event.events)


def _text(rule: rules.Rule, span: Span) -> str:
    return "" if span == NOWHERE else re.sub(r"\s+", " ", rule.source.slice(span)).strip()
