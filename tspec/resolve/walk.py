"""Walking over typed expressions, filters and event patterns included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tspec.resolve import rules

Part = rules.Expr | rules.EventPattern


def children(part: Part) -> Iterator[Part]:
    """The expressions and event patterns right below, in the order of their fields."""
    for each in fields(part):
        value = getattr(part, each.name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, rules.Filter):
                yield item.value
            elif isinstance(item, rules.Expr | rules.EventPattern):
                yield item


def walk(part: Part) -> Iterator[Part]:
    """The expression and all below it."""
    yield part
    for child in children(part):
        yield from walk(child)


def parts(rule: rules.Rule) -> Iterator[Part]:
    """All expressions and event patterns of a rule."""
    for subject in rule.subjects:
        yield from walk(subject.collection)
    for group in rule.across:
        if isinstance(group, rules.GroupField):
            yield from walk(group.value)
    if rule.window.event is not None:
        yield from walk(rule.window.event)
    if rule.when is not None:
        yield from walk(rule.when)
    yield from _of_claim(rule.expect)


def _of_claim(claim: rules.Claim) -> Iterator[Part]:
    match claim:
        case rules.Holds(condition=condition):
            yield from walk(condition)
        case rules.Contains(event=event):
            yield from walk(event)
        case rules.Ordered(events=events):
            for event in events:
                yield from walk(event)
        case rules.OnlyDuring(subject=subject, events=events):
            yield from walk(subject)
            for event in events:
                yield from walk(event)
