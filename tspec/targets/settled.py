"""Rules with `once` that need not be evaluated again after all of their instances are decided."""

from __future__ import annotations

from tspec.builtin.kinds import PASSING
from tspec.builtin.structure import BUILT
from tspec.plan.calls import needs_begin
from tspec.plan.model import Plan, RulePlan
from tspec.resolve.program import rules as r
from tspec.resolve.program import types as t
from tspec.resolve.program.types import innermost
from tspec.resolve.program.walk import expressions


def settled_over(plan: Plan, one: RulePlan) -> tuple[str, ...] | None:
    """The kinds of subjects that determine the choices of a rule with `once`, together with how
    models are built and the fields of the call by which the rule selects its windows.

    None where something else determines them too. None too where a window opens before its
    subjects are known: subjects created in it count.
    """
    rule = one.rule
    event = rule.window.event
    if not rule.window.once or (rule.subjects and needs_begin(one)):
        return None
    if event is not None and plan.pattern(event).deferred:
        return None
    groups = [each.value for each in rule.across if not isinstance(each, r.Axis)]
    wanted = [each.value for each in event.filters] if event is not None else []
    collections = [each.collection for each in rule.subjects]
    determined = (
        not any(isinstance(node, _CALLS) for value in groups for node in expressions(value))
        and all(isinstance(node, _VALUES) for value in wanted for node in expressions(value))
        and all(map(_is_built, (node for value in collections for node in expressions(value))))
    )
    kinds = (
        node.kind
        for value in collections
        for node in expressions(value)
        if isinstance(node, r.Subjects)
    )
    return tuple(dict.fromkeys(kinds)) if determined else None


_CALLS = (r.WindowCall, r.Calls, r.LastCall)
_VALUES = (r.Constant, r.ListDisplay, r.Variable)


def _is_built(node: r.Expr) -> bool:
    """True if a part of a collection stays the same as long as there are the same subjects, and
    models are built in the same way.
    """
    match node:
        case r.Subjects(kind=kind, filters=filters):
            return kind not in PASSING and all((kind, one.field) in BUILT for one in filters)
        case r.Field(base=base, name=name):
            return (_kind(base), name) in BUILT
        case r.Restrict(collection=collection, filters=filters):
            return all((_kind(collection), one.field) in BUILT for one in filters)
        case _:
            return isinstance(node, _VALUES)


def _kind(expr: r.Expr) -> str:
    """The kind of the subjects that an expression is, or holds; empty for others."""
    kind = innermost(expr.type)
    return kind.kind if isinstance(kind, t.Entity) else ""
