"""The words for a claim that fails."""

from __future__ import annotations

import re

from tspec.resolve.program import rules
from tspec.resolve.program.walk import expressions
from tspec.source import NOWHERE, Span
from tspec.values import LONGEST, shorter


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
            return f"expected {_condition(rule, condition) or 'the condition'}"


def event_words(event: rules.EventPattern) -> str:
    """The events of a pattern, as people read them."""
    return " or ".join(f"`{name}`" for name in event.events)


def _condition(rule: rules.Rule, condition: rules.Expr) -> str:
    """The condition as the rule writes it. Of a long list that is written out, the first items stand for all."""
    if condition.span == NOWHERE:
        return ""
    start, end = condition.span.start, condition.span.end
    lists = [part for part in expressions(condition) if isinstance(part, rules.ListDisplay)]
    parts, done = [], start
    for each in sorted(lists, key=lambda part: part.span.start):
        if not done <= each.span.start < end:
            continue
        written = rule.source.slice(each.span)
        if written[:1] in ("[", "{") and len(_joined(written)) > LONGEST:
            items = [_text(rule, item.span) for item in each.items]
            parts += [
                rule.source.slice(Span(done, each.span.start)),
                shorter(items, _ends(written)),
            ]
            done = each.span.end
    return _joined("".join([*parts, rule.source.slice(Span(done, end))]))


def _ends(written: str) -> str:
    return "[]" if written.startswith("[") else "{}"


def _joined(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _text(rule: rules.Rule, span: Span) -> str:
    return "" if span == NOWHERE else _joined(rule.source.slice(span))
