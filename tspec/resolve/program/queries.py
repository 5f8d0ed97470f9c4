"""Questions about typed rules and expressions that several rooms ask."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.resolve.program import rules as r
from tspec.resolve.program.types import CallOf, Entity
from tspec.resolve.program.walk import Part, children, expressions
from tspec.values import STEP_OF_RUN


def conditions(rule: r.Rule) -> tuple[r.Expr, ...]:
    """`when` and, if the claim is a condition, `expect`."""
    when = () if rule.when is None else (rule.when,)
    return (*when, rule.expect.condition) if isinstance(rule.expect, r.Holds) else when


def group_names(rule: r.Rule) -> str:
    """The axes and fields of `across`, as messages name the group of a rule."""
    return ", ".join(
        one.name if isinstance(one, r.Axis) else str(getattr(one.value, "name", ""))
        for one in rule.across
    )


def conjuncts(expr: r.Expr | None) -> tuple[r.Expr, ...]:
    """The parts that `and` joins, also within one another. None has no parts."""
    if expr is None:
        return ()
    if isinstance(expr, r.And):
        return tuple(part for item in expr.items for part in conjuncts(item))
    return (expr,)


def last_step(condition: r.Expr | None) -> int | None:
    """The last step at which a condition can be true, by the comparisons with constants that it joins; None if they
    bound no step.
    """
    bounds = [bound for part in conjuncts(condition) if (bound := _upper_bound(part)) is not None]
    return min(bounds, default=None)


def _upper_bound(part: r.Expr) -> int | None:
    """The last step at which a comparison of the step with a constant is true; None of other conditions."""
    if not isinstance(part, r.Compare):
        return None
    step, bound = (part.left, part.right) if part.op in ("<", "<=") else (part.right, part.left)
    of_step = isinstance(step, r.Ambient) and step.name in ("step", STEP_OF_RUN)
    strict = {"<": 1, ">": 1, "<=": 0, ">=": 0}.get(part.op)
    if strict is None or not of_step or not isinstance(bound, r.Constant):
        return None
    return bound.value - strict if isinstance(bound.value, int) else None


def patterns(claim: r.Claim) -> tuple[r.EventPattern, ...]:
    """The event patterns that a claim names itself."""
    match claim:
        case r.Ordered(events=events) | r.OnlyDuring(events=events):
            return events
        case r.Contains(event=event):
            return (event,)
        case r.Holds():
            return ()


def claimed(claim: r.Claim) -> tuple[r.Expr, ...]:
    """The outermost expressions of a claim, those in its event patterns left out."""
    match claim:
        case r.Holds(condition=condition):
            return (condition,)
        case r.OnlyDuring(subject=subject):
            return (subject,)
        case r.Ordered() | r.Contains():
            return ()


def variables(expr: r.Expr) -> Iterator[r.Variable]:
    """Each use of a `for` variable in an expression."""
    return (part for part in expressions(expr) if isinstance(part, r.Variable))


def of_each_member(part: Part) -> Iterator[r.Ambient]:
    """Names of the context that each rank of a group reads.

    Operands of a fold over the group are left out: the fold has one value for all ranks.
    """
    if isinstance(part, r.Ambient):
        yield part
    elif not (isinstance(part, r.Fold) and part.scope == "group"):
        for child in children(part):
            yield from of_each_member(child)


def names_call(expr: r.Expr) -> bool:
    """True if some variable of an expression is a call."""
    return any(isinstance(each.type, CallOf) for each in variables(expr))


def reads_entities_only(expr: r.Expr) -> bool:
    """True if an expression names an entity, and reads only fields of entities and constants.

    `first(expr)` is then read from the first samples of the subjects (docs/design/semantics.md).
    """
    named = list(variables(expr))
    return (
        bool(named)
        and all(isinstance(each.type, Entity) for each in named)
        and not any(isinstance(each, _MOVING) for each in expressions(expr))
        and not any(isinstance(e, r.Fold) and e.scope != "list" for e in expressions(expr))
    )


_MOVING = (
    r.Ambient, r.WindowCall, r.LastCall, r.Subjects, r.Calls, r.Old, r.Previous, r.First,
    r.Transpose,
)  # fmt: skip
"""Expressions whose value may change while their subjects stay the same."""


def looks_back(expr: r.Expr) -> bool:
    """True if an expression needs earlier instances: `previous`, `over`, and `first` unless it
    reads first samples.
    """
    return any(map(_looks_back, expressions(expr)))


def _looks_back(part: r.Expr) -> bool:
    if isinstance(part, r.First):
        return not reads_entities_only(part.value)
    return isinstance(part, r.Previous) or (isinstance(part, r.Fold) and part.scope == "time")


def acts_as_much(strong: r.Rule, weak: r.Rule) -> bool:
    """True if, where both rules are violated, the one acts at least as strongly as the other, and as
    soon. Drafts only warn.
    """
    if strong.draft or weak.draft:
        return weak.draft
    return all(any(one.covers(each) for one in strong.responses) for each in weak.responses)
