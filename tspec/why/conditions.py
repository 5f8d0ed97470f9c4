"""The distance of a condition from the opposite truth value: the part that decides it, and the
distance of its numbers.

A distance is relative: 0.1 means that a number has to change by a tenth of the larger of the two
that are compared. The distance of a value without size (a name, a truth value, a digest) is 1, of an
unknown one 2.
"""

from __future__ import annotations

import math

from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import EvaluationContext
from tspec.check.interpret.values import is_number, to_float, truth
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr
from tspec.source import Span
from tspec.trace.model import Missing

OTHER = 1.0
UNKNOWN = 2.0


def atomic_conditions(expr: Expr | None) -> tuple[Expr, ...]:
    """The atomic conditions of a condition, below `and`, `or`, `not` and `implies`."""
    match expr:
        case None:
            return ()
        case rules.And(items=items) | rules.Or(items=items):
            return tuple(leaf for item in items for leaf in atomic_conditions(item))
        case rules.Not(value=value):
            return atomic_conditions(value)
        case rules.Implies(left=left, right=right):
            return (*atomic_conditions(left), *atomic_conditions(right))
    return (expr,)


def span_of(expr: Expr, rule: rules.Rule) -> Span:
    """The span of a part of a rule; of a part of an inlined `let`, the span of the rule's name."""
    span, whole = expr.span, rule.spans.whole
    return span if whole.start <= span.start and span.end <= whole.end else rule.span


def holds(expr: Expr, frame: EvaluationContext) -> bool | Missing:
    """A condition's truth in a frame."""
    found = truth(evaluate(expr, frame))
    return found if isinstance(found, bool | Missing) else Missing.NOT_RECORDED


def distance(expr: Expr, frame: EvaluationContext, wanted: bool) -> float:
    """The distance of a condition from the wanted truth value."""
    found = holds(expr, frame)
    if found is wanted:
        return 0.0
    match expr:
        case rules.And(items=items) | rules.Or(items=items):
            each = [distance(item, frame, wanted) for item in items]
            every = isinstance(expr, rules.And) is wanted
            return max(each) if every else min(each)
        case rules.Not(value=value):
            return distance(value, frame, not wanted)
        case rules.Implies(left=left, right=right):
            each = [distance(left, frame, not wanted), distance(right, frame, wanted)]
            return min(each) if wanted else max(each)
        case rules.Compare(left=left, right=right) if not isinstance(found, Missing):
            if _is_digest(left) or _is_digest(right):
                return OTHER
            return _between(evaluate(left, frame), evaluate(right, frame))
    return UNKNOWN if isinstance(found, Missing) else OTHER


def _is_digest(expr: Expr) -> bool:
    """True for a digest, now or at another instant. It names contents: digests are equal or not."""
    match expr:
        case rules.Feature(name="digest"):
            return True
        case rules.Previous(value=value) | rules.Old(value=value) | rules.First(value=value):
            return _is_digest(value)
    return False


def _between(left: object, right: object) -> float:
    """The relative distance of two numbers."""
    if not (is_number(left) and is_number(right)):
        return OTHER
    a, b = to_float(left), to_float(right)
    if not (math.isfinite(a) and math.isfinite(b)):
        return OTHER
    size = max(abs(a), abs(b))
    return abs(a - b) / size if size else 0.0


def stopping(expr: Expr, frame: EvaluationContext, wanted: bool) -> Expr:
    """The smallest part that keeps a condition from the wanted truth: the first, or the nearest."""
    match expr:
        case rules.And(items=items) | rules.Or(items=items):
            off = [item for item in items if holds(item, frame) is not wanted]
            if not off:
                return expr
            if isinstance(expr, rules.And) is wanted:
                return stopping(off[0], frame, wanted)
            return expr if len(off) > 1 else stopping(off[0], frame, wanted)
        case rules.Not(value=value):
            inner = stopping(value, frame, not wanted)
            return expr if inner is value else inner
    return expr
