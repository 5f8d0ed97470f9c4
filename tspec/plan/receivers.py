"""Classes of modules whose calls rules read. Calls of other modules need no hook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tspec.plan.model import RulePlan
from tspec.resolve.program import rules as r
from tspec.resolve.program import types as t

SELF = ("name", "self")
"""The source of a field that is the object whose method is called."""


def receivers(
    rules: tuple[RulePlan, ...], events: Iterable[str], vocabulary: r.Vocabulary
) -> Mapping[str, tuple[str, ...]]:
    """Event -> the classes of modules whose calls some rule reads.

    An event is left out if a rule reads its calls whatever the class of the module.
    """
    found = {event: _of_event(rules, event, vocabulary) for event in events}
    return {event: classes for event, classes in found.items() if classes}


def _of_event(rules: tuple[RulePlan, ...], event: str, vocabulary: r.Vocabulary) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for plan in rules:
        for pattern in plan.event_patterns:
            if event in pattern.events:
                classes = _of_pattern(pattern, plan.rule, _own_fields(event, vocabulary))
                if not classes:
                    return ()
                found.update(dict.fromkeys(classes))
    return tuple(sorted(found))


def _own_fields(event: str, vocabulary: r.Vocabulary) -> frozenset[str]:
    """The fields of an event whose value is the module that is called, for each of its callables."""
    declared = vocabulary.event(event)
    if declared is None or declared.variants:
        return frozenset()
    return frozenset(
        one.name for one in declared.fields if one.source == SELF and one.type == t.Entity("module")
    )


def _of_pattern(pattern: r.EventPattern, rule: r.Rule, own: frozenset[str]) -> tuple[str, ...]:
    """The classes of the modules that a filter asks for by a variable of the rule."""
    of = {one.variable: one.collection for one in rule.subjects}
    for one in pattern.filters:
        if one.field in own and isinstance(one.value, r.Variable):
            classes = _classes(of.get(one.value.name))
            if classes:
                return classes
    return ()


def _classes(collection: r.Expr | None) -> tuple[str, ...]:
    """The classes that a collection of subjects is filtered by."""
    if not isinstance(collection, r.Subjects):
        return ()
    for one in collection.filters:
        if one.field == "class":
            value = one.value
            items = value.items if isinstance(value, r.ListDisplay) else (value,)
            if all(isinstance(each, r.Constant) and isinstance(each.value, str) for each in items):
                return tuple(str(each.value) for each in items if isinstance(each, r.Constant))
    return ()
