"""Selects instances that are counted without evaluation: those of idle windows, and of calls that
no rule reads.
"""

from __future__ import annotations

from enum import StrEnum

from tspec.builtin.kinds import PASSING
from tspec.plan.calls import looks_within_window, needs_begin
from tspec.plan.events import is_windows_call
from tspec.plan.model import Plan, RulePlan
from tspec.resolve.program import rules as r
from tspec.resolve.program import types as t
from tspec.resolve.program.queries import conjuncts
from tspec.resolve.program.types import innermost
from tspec.resolve.program.walk import expressions
from tspec.targets.literals import literal
from tspec.targets.windows import windows_on
from tspec.values import STEP_OF_RUN


class Flag(StrEnum):
    """An attribute of a window. Where it is true, all instances of the window are idle."""

    UNGROUPED = "ungrouped"
    """This rank has no group for the rule's `across`."""
    IDLE = "idle"
    """The condition is known to be false, whatever the state."""


def choices_code(one: RulePlan) -> str:
    """Python for the names of the subjects of each clause; empty if some depend on values that are
    read.
    """
    event = one.rule.window.event
    if event is not None and event.filters:
        return ""
    found = []
    for clause in one.rule.subjects:
        if is_windows_call(clause, one.rule):
            found.append("(None,)")
        elif _kind(clause) is not None:
            found.append(f"now.{names_code(clause)}")
        else:
            return ""
    return f"({', '.join(found)},)" if found else "()"


def has_one_instance(one: RulePlan) -> bool:
    """True if each window has exactly one instance, whatever subjects exist."""
    rule = one.rule
    call_only = all(is_windows_call(clause, rule) for clause in rule.subjects)
    return call_only and bool(choices_code(one)) and not rule.window.once


def flag_tested_at_hook(one: RulePlan) -> Flag | None:
    """The flag that the hook point tests before it opens a window: where the flag is true, it counts
    the one instance at once. None if the rule's own function tests all flags.
    """
    kind = one.rule.window.kind
    if kind == "each" or needs_begin(one) or not has_one_instance(one):
        return None
    if one.rule.across:
        return Flag.UNGROUPED
    return Flag.IDLE if one.guard is not None and kind != "during" else None


PLACE = frozenset(("step", STEP_OF_RUN, "epoch", "microbatch", "phase"))
"""Context values that are the same for all calls between two boundaries of spans."""
STEADY = PLACE | {"autocast.enabled", "autocast.dtype"}
"""Context values that are the same when an operator is called and when it has returned."""


def may_pass(plan: Plan, event: str) -> bool:
    """True if calls of an event may be passed over: conditions on context alone, and whether windows
    are open, decide that no rule reads them.
    """
    return (
        event in plan.operators
        and (event in plan.outermost or not windows_on(plan, event))
        and not any(event in one.watched for one in plan.rules)
        and all(_is_idle_by_context(one) for one in windows_on(plan, event))
        and all(_step_guard(one) is not None for one in _lookers_in_step(plan, event))
    )


def conditions_of(plan: Plan, event: str) -> list[tuple[RulePlan, r.Expr]]:
    """The conditions that are all false where calls of an event are passed over, each with its rule."""
    windows = [(one, _guard(one, STEADY)) for one in windows_on(plan, event)]
    found = windows + [(one, _step_guard(one)) for one in _lookers_in_step(plan, event)]
    return [(one, guard) for one, guard in found if guard is not None]


def conditions_on_place(plan: Plan, event: str) -> list[tuple[RulePlan, r.Expr]]:
    """Conditions on step, epoch, micro-batch and phase alone. If all are false, no call of an event
    is read.

    Empty if some rule has no such condition, or loops over subjects.
    """
    windows = windows_on(plan, event)
    found = [(one, _guard(one, PLACE)) for one in windows]
    found += [(one, _step_guard(one)) for one in _lookers_in_step(plan, event)]
    known = [(one, guard) for one, guard in found if guard is not None]
    return known if len(known) == len(found) and all(map(flag_tested_at_hook, windows)) else []


def _lookers(plan: Plan, event: str) -> list[RulePlan]:
    """The rules that look up calls of an event."""
    return [one for one in plan.rules if any(event in pattern.events for pattern in one.counted)]


def _lookers_in_step(plan: Plan, event: str) -> list[RulePlan]:
    """The rules that look up calls of an event wherever in a step they lie."""
    return [one for one in _lookers(plan, event) if not looks_within_window(one, event)]


def lookers_in_windows(plan: Plan, event: str) -> tuple[int, ...]:
    """The numbers of the rules that look up calls of an event within their own open windows alone."""
    return tuple(one.number for one in _lookers(plan, event) if looks_within_window(one, event))


def _is_idle_by_context(one: RulePlan) -> bool:
    """True if a false condition on context makes all instances of a call's window idle, and the
    instances do not depend on the call.
    """
    rule, window = one.rule, one.rule.window
    alone = not (rule.across or window.once or one.history or needs_begin(one))
    return (
        alone
        and window.kind != "during"
        and all(_stays(clause, rule) for clause in rule.subjects)
        and _guard(one, STEADY) is not None
    )


def _stays(clause: r.For, rule: r.Rule) -> bool:
    """True if the subjects of a clause are the window's call, or lasting subjects whose choice does not depend on a call."""
    if is_windows_call(clause, rule):
        return True
    kind = innermost(clause.collection.type)
    lasting = isinstance(kind, t.Entity) and kind.kind not in PASSING
    return lasting and not any(isinstance(node, _CALLS) for node in expressions(clause.collection))


_CALLS = (r.WindowCall, r.Variable, r.Calls, r.LastCall)


def unread_conditions(plan: Plan, event: str) -> list[tuple[RulePlan, r.Expr]]:
    """The conditions, each with its rule, that are all false in steps in which no rule looks up
    calls of an event.

    Empty if features of calls are not looked up, or some rule looks them up in any step.
    """
    looked_up = any(features and later for features, later in plan.kept[event].values())
    found = [(one, _step_guard(one)) for one in _lookers(plan, event)] if looked_up else []
    known = [(one, guard) for one, guard in found if guard is not None]
    return known if len(known) == len(found) else []


def _step_guard(one: RulePlan) -> r.Expr | None:
    """A condition on the step alone, without which a rule looks up no call of its step; None if it
    has none, or if a window of it extends over steps.
    """
    window = one.rule.window
    if one.history or not (window.kind in ("before", "after") or window.span in _WITHIN):
        return None
    return _guard(one, _OF_STEP)


_OF_STEP = frozenset(("step", STEP_OF_RUN))
_WITHIN = ("step", "microbatch")


def _guard(one: RulePlan, names: frozenset[str]) -> r.Expr | None:
    """The part of a rule's condition that reads context values of these names alone; None if there is none."""
    found = tuple(part for part in conjuncts(one.guard) if _reads_only(part, names))
    if one.guard is None or len(found) < 2:
        return next(iter(found), None)
    return r.And(one.guard.type, one.guard.span, found)


def _reads_only(expr: r.Expr, names: frozenset[str]) -> bool:
    """An expression reads context values of these names, and nothing else."""
    return all(
        node.name in names if isinstance(node, r.Ambient) else isinstance(node, _OF_CONTEXT)
        for node in expressions(expr)
    )


_OF_CONTEXT = (
    r.Constant, r.ListDisplay, r.Compare, r.Arithmetic, r.Negate, r.Not, r.And, r.Or, r.Implies,
    r.Present, r.Member, r.Function,
)  # fmt: skip


def kinds_sent_as_one(one: RulePlan) -> tuple[str, ...]:
    """The kinds of the subjects, if other ranks get one entry for a whole idle window; else none."""
    rule = one.rule
    kinds = [_kind(clause) for clause in rule.subjects]
    axes_only = all(isinstance(axis, r.Axis) for axis in rule.across)
    whole = bool(rule.across) and axes_only and not rule.window.once and bool(choices_code(one))
    known = tuple(kind for kind in kinds if kind is not None)
    return known if whole and len(known) == len(kinds) else ()


def kind_sent_by_group(one: RulePlan) -> str | None:
    """The kind of the subjects, if other ranks get one entry for an idle window and group; else None.

    Such a rule has one clause of subjects, and compares them across the groups that their fields name.
    """
    rule = one.rule
    event = rule.window.event
    if rule.window.once or len(rule.subjects) != 1 or (event is not None and event.filters):
        return None
    by_field = all(isinstance(axis, r.GroupField) for axis in rule.across)
    return _kind(rule.subjects[0]) if rule.across and by_field else None


def names_code(clause: r.For) -> str:
    """Python that calls the method of an instant for the names of a clause's subjects. `_kind` gave their kind."""
    collection = clause.collection
    assert isinstance(collection, r.Subjects)
    if not collection.filters:
        return f"subjects({literal(collection.kind)})"
    filters = tuple((one.field, _constant(one.value)) for one in collection.filters)
    return f"chosen({literal(collection.kind)}, {literal(filters)})"


def _kind(clause: r.For) -> str | None:
    """The kind of the subjects of a clause, if they outlive a call and its filters are constants; else None."""
    collection = clause.collection
    if not isinstance(collection, r.Subjects) or collection.kind in PASSING:
        return None
    constant = all(_constant(one.value) is not None for one in collection.filters)
    return collection.kind if constant else None


def _constant(expr: r.Expr) -> object:
    """The value of an expression that reads nothing, a list as a tuple; None of others."""
    if isinstance(expr, r.Constant):
        return expr.value
    if isinstance(expr, r.ListDisplay) and all(isinstance(one, r.Constant) for one in expr.items):
        return tuple(map(_constant, expr.items))
    return None


def any_subject_code(one: RulePlan) -> str:
    """Python code that is true if the first clause has a subject, as a method of an instant; empty
    if that is unknown.
    """
    for clause in one.rule.subjects:
        if not is_windows_call(clause, one.rule):
            collection = clause.collection
            if not isinstance(collection, r.Subjects) or collection.kind in PASSING:
                return ""
            if _kind(clause) is not None:
                return names_code(clause)
            return f"subjects({literal(collection.kind)})"
    return ""
