"""What a rule expects: a condition, or what happens within its window and in which order."""

from __future__ import annotations

from itertools import pairwise

from tspec.resolve.expressions.events import pattern
from tspec.resolve.expressions.operators import condition, named
from tspec.resolve.expressions.paths import path_of
from tspec.resolve.expressions.place import Place, Refused
from tspec.resolve.program import rules, types
from tspec.resolve.program.queries import of_each_member
from tspec.resolve.program.types import CallOf
from tspec.syntax import nodes


def lower_claim(claim: nodes.Claim, place: Place) -> rules.Claim:
    """The claim, typed. Raises Refused."""
    match claim:
        case nodes.Ordered(events=events):
            found = _patterns(events, place)
            if any(a == b for a, b in pairwise(found)):
                place.refuse("TS0158", "an event is not before itself", claim)
            return rules.Ordered(found, "before")
        case nodes.Contains(event=event):
            return rules.Contains(pattern(event, place))
        case nodes.OnlyDuring(subject=subject, events=events):
            return _only_during(claim, subject, events, place)
    assert isinstance(claim, nodes.Expr)
    truth = condition(claim, place)
    check_uniform(truth, place)
    if isinstance(truth, rules.Constant):
        word = "true" if truth.value else "false"
        place.refuse("TS0159", f"this is {word} whatever the job does", claim)
    return rules.Holds(truth)


def _patterns(events: tuple[nodes.Expr, ...], place: Place) -> tuple[rules.EventPattern, ...]:
    found = []
    failed = False
    for event in events:
        try:
            found.append(pattern(event, place))
        except Refused:
            failed = True
    if failed:
        raise Refused
    return tuple(found)


def _only_during(
    claim: nodes.OnlyDuring, subject: nodes.Expr, events: tuple[nodes.Expr, ...], place: Place
) -> rules.OnlyDuring:
    """`changed(p.data) only during optimizer.step`, or a call variable in place of the change."""
    changed = (
        isinstance(subject, nodes.Call)
        and nodes.dotted_text(subject.function) == "changed"
        and len(subject.arguments) == 1
        and subject.arguments[0].name is None
    )
    if changed:
        _need_window(claim, place)
    inside = _patterns(events, place)
    if changed:
        assert isinstance(subject, nodes.Call)
        value = place.lower(subject.arguments[0].value)
        of = place.there(value)
        if of != types.TENSOR:
            message = f"only of a tensor it is seen when it changes, not of {named(of)}"
            place.refuse("TS0130", message, subject)
        return rules.OnlyDuring(value, True, inside)
    path = path_of(subject)
    variable = place.lower(subject)
    if (
        path is None
        or not isinstance(variable, rules.Variable)
        or not isinstance(variable.type, CallOf)
    ):
        hint = "write `changed(x) only during ...`, or name a variable of `for c in calls(...)`"
        place.refuse("TS0158", "`only during` is said of a change or of a call", subject, hint)
    return rules.OnlyDuring(variable, False, inside)


def _need_window(claim: nodes.Node, place: Place) -> None:
    window = place.window
    if window is not None and window.kind in ("before", "after"):
        hint = "a window has a start and an end: `during ...` or `each step`"
        place.refuse("TS0161", "a change needs a window, and an instant is none", claim, hint)


def check_uniform(condition: rules.Expr, place: Place) -> None:
    """Refuse `rank == 0` under `across`: it cannot be the same on all members of a group."""
    if not place.across:
        return
    for read in of_each_member(condition):
        if read.name == "rank":
            place.refuse(
                "TS0154",
                "`rank` differs between the members of a group, which `across` compares",
                read.span,
                "leave out `across`, or fold over the group",
            )
