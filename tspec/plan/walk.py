"""Walks over expressions: what stands below a node, and what a node's type is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tspec.resolve import rules as r
from tspec.resolve import types as t

EXPRESSIONS = r.Expr.__args__ if hasattr(r.Expr, "__args__") else ()


def children(expr: r.Expr) -> Iterator[r.Expr]:
    """The expressions right below, filters' values included, in the order of the text."""
    for each in fields(expr):
        yield from _below(getattr(expr, each.name))


def _below(value: object) -> Iterator[r.Expr]:
    if isinstance(value, EXPRESSIONS):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _below(item)
    elif isinstance(value, r.Filter):
        yield value.value
    elif isinstance(value, r.EventPattern):
        for one in value.filters:
            yield one.value


def walk(expr: r.Expr) -> Iterator[r.Expr]:
    """The node and all below it."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def claims(claim: r.Claim) -> tuple[r.Expr, ...]:
    """The expressions of a claim that are no event patterns."""
    match claim:
        case r.Holds(condition):
            return (condition,)
        case r.OnlyDuring(subject=subject):
            return (subject,)
        case _:
            return ()


def patterns(claim: r.Claim) -> tuple[r.EventPattern, ...]:
    """The event patterns that a claim names."""
    match claim:
        case r.Ordered(events=events) | r.OnlyDuring(events=events):
            return events
        case r.Contains(event):
            return (event,)
        case _:
            return ()


def item(type: t.Type) -> t.Type:
    """What a type is about: without `?`, `list` and `set`."""
    while isinstance(type, (t.Optional, t.ListOf, t.SetOf)):
        type = type.item
    return type


def plain(type: t.Type) -> t.Type:
    """A type without `?`."""
    return type.item if isinstance(type, t.Optional) else type


def is_collection(type: t.Type) -> bool:
    """A list or a set."""
    return isinstance(plain(type), (t.ListOf, t.SetOf))


def is_tensor(type: t.Type) -> bool:
    """A tensor, or one that may be absent."""
    return plain(type) == t.TENSOR


def holds_tensors(type: t.Type) -> bool:
    """A tensor, or a list, set or map of tensors."""
    inner = item(type)
    return inner == t.TENSOR or (isinstance(inner, t.MapOf) and holds_tensors(inner.value))


def variables(expr: r.Expr) -> frozenset[str]:
    """The `for` variables that an expression names."""
    return frozenset(node.name for node in walk(expr) if isinstance(node, r.Variable))
