"""Which optional values a condition proves to be present, flow by flow."""

from __future__ import annotations

from tspec.resolve.program import rules
from tspec.resolve.program.types import MapOf, Optional, plain

NONE: frozenset[rules.Expr] = frozenset()


def facts(condition: rules.Expr, truth: bool) -> frozenset[rules.Expr]:
    """What is present where the condition is known to be true, or to be false."""
    match condition:
        case rules.Present(value=value) if truth:
            return frozenset({value})
        case rules.Member(item=item, collection=collection) if truth:
            return _entry(item, collection)
        case rules.Not(value=value):
            return facts(value, not truth)
        case rules.And(items=items) if truth:
            return NONE.union(*(facts(item, True) for item in items))
        case rules.Or(items=items) if not truth:
            return NONE.union(*(facts(item, False) for item in items))
        case rules.Implies(left=left, right=right) if not truth:
            return facts(left, True) | facts(right, False)
        case rules.Compare(op="==", left=left, right=rules.Constant(value=True)) if truth:
            return facts(left, True)
    return NONE


def _entry(item: rules.Expr, collection: rules.Expr) -> frozenset[rules.Expr]:
    """A key that a map holds has a value there."""
    of = plain(collection.type)
    if not isinstance(of, MapOf):
        return NONE
    return frozenset({rules.Index(Optional(of.value), collection.span, collection, item)})


def is_known(value: rules.Expr, known: frozenset[rules.Expr]) -> bool:
    """Whether a value was proved to be present, at this moment or at another one.

    `old(p.grad)` is let pass where `p.grad` is: a gradient that comes or goes within the window
    makes the verdict unknown, and says why.
    """
    if value in known:
        return True
    if isinstance(value, rules.Old | rules.Previous | rules.First):
        return is_known(value.value, known)
    return False
