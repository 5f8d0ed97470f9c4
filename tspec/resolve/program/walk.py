"""The shape of the typed tree: the parts below a node, and a node rebuilt from changed parts.

`children` and `rebuild` name every kind of node, and a type checker refuses a kind that they lack.
All other walks over typed expressions derive from these two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from tspec.resolve.program import rules as r

Part = r.Expr | r.EventPattern
Change = Callable[[r.Expr], r.Expr]


def children(part: Part) -> tuple[Part, ...]:
    """The expressions and event patterns right below, in the order of the text."""
    match part:
        case r.Constant() | r.Ambient() | r.Variable() | r.WindowCall():
            return ()
        case r.Field(base=base):
            return (base,)
        case (
            r.Compare() | r.SameObject() | r.Arithmetic() | r.Implies() | r.Difference()
        ):  # fmt: skip
            return (part.left, part.right)
        case r.And(items=items) | r.Or(items=items) | r.ListDisplay(items=items):
            return items
        case (
            r.Old() | r.Previous() | r.First() | r.Present() | r.Fold() | r.Transpose()
            | r.Negate() | r.Not()
        ):  # fmt: skip
            return (part.value,)
        case r.Feature(tensor=tensor):
            return (tensor,)
        case r.Cast(tensor=tensor, dtype=dtype):
            return (tensor, dtype)
        case r.Function(arguments=arguments):
            return arguments
        case r.Member(item=item, collection=collection):
            return (item, collection)
        case r.Index(base=base, index=index):
            return (base, index)
        case r.Subjects(filters=filters) | r.EventPattern(filters=filters):
            return tuple(each.value for each in filters)
        case r.Restrict(collection=collection, filters=filters):
            return (collection, *(each.value for each in filters))
        case r.LastCall(event=event) | r.Calls(event=event):
            return (event,)
    assert_never(part)


def rebuild(expr: r.Expr, change: Change) -> r.Expr:
    """The expression with each one right below it changed, those in filters and patterns too."""
    match expr:
        case r.Constant() | r.Ambient() | r.Variable() | r.WindowCall():
            return expr
        case r.Field(base=base):
            return replace(expr, base=change(base))
        case (
            r.Compare() | r.SameObject() | r.Arithmetic() | r.Implies() | r.Difference()
        ):  # fmt: skip
            return replace(expr, left=change(expr.left), right=change(expr.right))
        case r.And() | r.Or() | r.ListDisplay():
            return replace(expr, items=tuple(map(change, expr.items)))
        case (
            r.Old() | r.Previous() | r.First() | r.Present() | r.Fold() | r.Transpose()
            | r.Negate() | r.Not()
        ):  # fmt: skip
            return replace(expr, value=change(expr.value))
        case r.Feature():
            return replace(expr, tensor=change(expr.tensor))
        case r.Cast(tensor=tensor, dtype=dtype):
            return replace(expr, tensor=change(tensor), dtype=change(dtype))
        case r.Function(arguments=arguments):
            return replace(expr, arguments=tuple(map(change, arguments)))
        case r.Member(item=item, collection=collection):
            return replace(expr, item=change(item), collection=change(collection))
        case r.Index(base=base, index=index):
            return replace(expr, base=change(base), index=change(index))
        case r.Subjects(filters=filters):
            return replace(expr, filters=_filters(filters, change))
        case r.Restrict(collection=collection, filters=filters):
            return replace(expr, collection=change(collection), filters=_filters(filters, change))
        case r.LastCall() | r.Calls():
            return replace(expr, event=rebuild_pattern(expr.event, change))
    assert_never(expr)


def rebuild_pattern(pattern: r.EventPattern, change: Change) -> r.EventPattern:
    """The event pattern with the values of its filters changed."""
    return replace(pattern, filters=_filters(pattern.filters, change))


def _filters(filters: tuple[r.Filter, ...], change: Change) -> tuple[r.Filter, ...]:
    return tuple(replace(each, value=change(each.value)) for each in filters)


# --- derived: expressions -----------------------------------------------------------------------


def walk(part: Part) -> Iterator[Part]:
    """The part and all its descendants, in pre-order."""
    yield part
    for child in children(part):
        yield from walk(child)


def expressions(part: Part) -> Iterator[r.Expr]:
    """The expressions of a walk; event patterns are left out, and the values of their filters are not."""
    for each in walk(part):
        if not isinstance(each, r.EventPattern):
            yield each


def operands(expr: r.Expr) -> Iterator[r.Expr]:
    """The expressions right below; those below an event pattern stand for it."""
    for child in children(expr):
        if isinstance(child, r.EventPattern):
            yield from (each.value for each in child.filters)
        else:
            yield child


def transform(expr: r.Expr, change: Callable[[r.Expr], r.Expr | None]) -> r.Expr:
    """The expression with each part replaced for which `change` returns another one.

    A replacement is not walked into.
    """
    changed = change(expr)
    return rebuild(expr, lambda each: transform(each, change)) if changed is None else changed


# --- derived: rules -----------------------------------------------------------------------------


def parts(rule: r.Rule) -> Iterator[Part]:
    """All expressions and event patterns of a rule."""
    for root in _roots(rule):
        yield from walk(root)


def parts_of_claim(claim: r.Claim) -> Iterator[Part]:
    """All expressions and event patterns of a claim."""
    for root in roots_of_claim(claim):
        yield from walk(root)


def _roots(rule: r.Rule) -> Iterator[Part]:
    for subject in rule.subjects:
        yield subject.collection
    for group in rule.across:
        if isinstance(group, r.GroupField):
            yield group.value
    if rule.window.event is not None:
        yield rule.window.event
    if rule.when is not None:
        yield rule.when
    yield from roots_of_claim(rule.expect)


def roots_of_claim(claim: r.Claim) -> tuple[Part, ...]:
    """The outermost expressions and event patterns of a claim."""
    match claim:
        case r.Holds(condition=condition):
            return (condition,)
        case r.Contains(event=event):
            return (event,)
        case r.Ordered(events=events):
            return events
        case r.OnlyDuring(subject=subject, events=events):
            return (subject, *events)
    assert_never(claim)


def rebuild_rule(rule: r.Rule, change: Change) -> r.Rule:
    """The rule with each of its outermost expressions changed, those in event patterns too."""
    event = rule.window.event
    return replace(
        rule,
        subjects=tuple(replace(s, collection=change(s.collection)) for s in rule.subjects),
        across=tuple(
            replace(group, value=change(group.value)) if isinstance(group, r.GroupField) else group
            for group in rule.across
        ),
        window=replace(
            rule.window, event=None if event is None else rebuild_pattern(event, change)
        ),
        when=None if rule.when is None else change(rule.when),
        expect=rebuild_claim(rule.expect, change),
    )


def rebuild_claim(claim: r.Claim, change: Change) -> r.Claim:
    """The claim with each of its outermost expressions changed, those in event patterns too."""
    match claim:
        case r.Holds(condition=condition):
            return r.Holds(change(condition))
        case r.Contains(event=event):
            return r.Contains(rebuild_pattern(event, change))
        case r.Ordered(events=events):
            return replace(claim, events=tuple(rebuild_pattern(e, change) for e in events))
        case r.OnlyDuring(subject=subject, events=events):
            moved = tuple(rebuild_pattern(e, change) for e in events)
            return replace(claim, subject=change(subject), events=moved)
    assert_never(claim)
