"""Flow analysis: which optional values a condition proves to be present."""

from __future__ import annotations

from tspec.resolve.program import rules
from tspec.resolve.program.types import MapOf, Optional, plain

NONE: frozenset[rules.Expr] = frozenset()


def facts(condition: rules.Expr, truth: bool) -> frozenset[rules.Expr]:
    """The values that are present if a condition is known to be true, or known to be false."""
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
    """If a map holds a key, it has a value for the key."""
    of = plain(collection.type)
    if not isinstance(of, MapOf):
        return NONE
    return frozenset({rules.Index(Optional(of.value), collection.span, collection, item)})


def is_known(value: rules.Expr, known: frozenset[rules.Expr]) -> bool:
    """True if a value was proved to be present, now or at another time.

    `old(p.grad)` is accepted where `p.grad` is: if the gradient appears or disappears within the
    window, the verdict is unknown with that reason.
    """
    if value in known:
        return True
    if isinstance(value, rules.Old | rules.Previous | rules.First):
        return is_known(value.value, known)
    return False
