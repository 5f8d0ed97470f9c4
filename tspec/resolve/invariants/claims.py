"""The claim of a rule: a condition, or the calls in its window and their order."""

from __future__ import annotations

from itertools import pairwise

from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.events import pattern
from tspec.resolve.expressions.operators import condition, named
from tspec.resolve.expressions.paths import path_of
from tspec.resolve.program import rules, types
from tspec.resolve.program.queries import of_each_member
from tspec.resolve.program.types import CallOf
from tspec.syntax import nodes


def lower_claim(claim: nodes.Claim, env: Environment) -> rules.Claim:
    """The claim, typed. Raises Refused."""
    match claim:
        case nodes.Ordered(events=events):
            found = _patterns(events, env)
            if any(a == b for a, b in pairwise(found)):
                env.refuse("TS0158", "an event is not before itself", claim)
            return rules.Ordered(found, "before")
        case nodes.Contains(event=event):
            return rules.Contains(pattern(event, env))
        case nodes.OnlyDuring(subject=subject, events=events):
            return _only_during(claim, subject, events, env)
    assert isinstance(claim, nodes.Expr)
    truth = condition(claim, env)
    check_uniform(truth, env)
    if isinstance(truth, rules.Constant):
        word = "true" if truth.value else "false"
        env.refuse("TS0159", f"this is {word} whatever the job does", claim)
    return rules.Holds(truth)


def _patterns(events: tuple[nodes.Expr, ...], env: Environment) -> tuple[rules.EventPattern, ...]:
    found = []
    failed = False
    for event in events:
        try:
            found.append(pattern(event, env))
        except Refused:
            failed = True
    if failed:
        raise Refused
    return tuple(found)


def _only_during(
    claim: nodes.OnlyDuring, subject: nodes.Expr, events: tuple[nodes.Expr, ...], env: Environment
) -> rules.OnlyDuring:
    """`changed(p.data) only during optimizer.step`, or a call variable in place of the change."""
    changed = (
        isinstance(subject, nodes.Call)
        and nodes.dotted_text(subject.function) == "changed"
        and len(subject.arguments) == 1
        and subject.arguments[0].name is None
    )
    if changed:
        _need_window(claim, env)
    inside = _patterns(events, env)
    if changed:
        assert isinstance(subject, nodes.Call)
        value = env.lower(subject.arguments[0].value)
        of = env.there(value)
        if of != types.TENSOR:
            message = f"only of a tensor it is seen when it changes, not of {named(of)}"
            env.refuse("TS0130", message, subject)
        return rules.OnlyDuring(value, True, inside)
    path = path_of(subject)
    variable = env.lower(subject)
    if (
        path is None
        or not isinstance(variable, rules.Variable)
        or not isinstance(variable.type, CallOf)
    ):
        hint = "write `changed(x) only during ...`, or name a variable of `for c in calls(...)`"
        env.refuse("TS0158", "`only during` takes a change or a call", subject, hint)
    return rules.OnlyDuring(variable, False, inside)


def _need_window(claim: nodes.Node, env: Environment) -> None:
    window = env.window
    if window is not None and window.kind in ("before", "after"):
        hint = "a window has a start and an end: `during ...` or `each step`"
        env.refuse("TS0161", "a change needs a window, and an instant is none", claim, hint)


def check_uniform(condition: rules.Expr, env: Environment) -> None:
    """Refuse `rank == 0` under `across`: it cannot be the same on all members of a group."""
    if not env.across:
        return
    for read in of_each_member(condition):
        if read.name == "rank":
            env.refuse(
                "TS0154",
                "`rank` differs between the members of a group, which `across` compares",
                read.span,
                "leave out `across`, or fold over the group",
            )
