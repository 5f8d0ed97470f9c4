"""The event patterns of rules: the calls that are windows, those that are looked up, and the fields
known at their begin.
"""

from __future__ import annotations

from collections.abc import Iterator

from tspec.resolve.program import rules as r
from tspec.resolve.program.queries import claimed, patterns
from tspec.resolve.program.walk import expressions


def expressions_of(rule: r.Rule) -> Iterator[r.Expr]:
    """The expressions of a rule's condition and claim, filters included."""
    if rule.when is not None:
        yield rule.when
    yield from claimed(rule.expect)
    for pattern in patterns(rule.expect):
        for one in pattern.filters:
            yield one.value


def instance_patterns(rule: r.Rule) -> Iterator[r.EventPattern]:
    """The patterns whose calls are windows or subjects, so that their filters determine the number
    of instances.
    """
    if rule.window.event is not None:
        yield rule.window.event
    for one in rule.subjects:
        for node in expressions(one.collection):
            if isinstance(node, (r.Calls, r.LastCall)):
                yield node.event


def counted(rule: r.Rule) -> Iterator[r.EventPattern]:
    """The patterns whose calls are looked up within the window."""
    yield from patterns(rule.expect)
    for node in looked_up(rule):
        yield node.event


def looked_up(rule: r.Rule) -> Iterator[r.Calls | r.LastCall]:
    """The expressions that look up calls, except the `calls(E)` that are the windows."""
    looked = [one.collection for one in rule.subjects if not is_windows_call(one, rule)]
    looked += expressions_of(rule)
    looked += [axis.value for axis in rule.across if isinstance(axis, r.GroupField)]
    for expr in looked:
        for node in expressions(expr):
            if isinstance(node, (r.Calls, r.LastCall)):
                yield node


def is_windows_call(clause: r.For, rule: r.Rule) -> bool:
    """True if the clause is the `for c in calls(E)` whose calls are the windows."""
    return (
        isinstance(clause.collection, r.Calls)
        and rule.window.kind == "calls"
        and clause.collection.event == rule.window.event
    )


def fields_of(pattern: r.EventPattern) -> tuple[str, ...]:
    """The fields that a pattern's filters name, in order."""
    return tuple(one.field for one in pattern.filters)


def filters_at_return(pattern: r.EventPattern, vocabulary: r.Vocabulary) -> bool:
    """True if some filter of a pattern is known only when the call has returned."""
    return any(
        known_at_return(event, name, vocabulary)
        for event in pattern.events
        for name in fields_of(pattern)
    )


def known_at_return(event: str, name: str, vocabulary: r.Vocabulary) -> bool:
    """True if a field of an event's calls is known only when a call has returned."""
    declared = vocabulary.event(event)
    if declared is None or name == "class":
        return True
    fields = [*declared.fields, *(one for variant in declared.variants for one in variant.fields)]
    found = [one for one in fields if one.name == name]
    return not found or any(one.reads_result for one in found)
