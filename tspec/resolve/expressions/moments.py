"""Values at other times (`old`, `previous`, `first`, `changed`, `change`), and `present`."""

from __future__ import annotations

from tspec.resolve.expressions.arguments import take
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.expressions.operators import digest_of, named
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import Optional, item_of
from tspec.syntax import nodes

MOMENTS = ("old", "previous", "first", "present", "changed", "change")


def moment(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    """One of MOMENTS. Raises Refused."""
    if name == "previous":
        _need_one_back(node, env)
    argument = take(node, env, 1).values[0]
    if name in ("old", "changed", "change"):
        _need_window(node, name, env)
    elif env.clause in ("for", "across", "window") and name != "present":
        env.refuse("TS0150", f"`{name}` belongs in `when` or `expect`", node)
    value = env.lower(argument)
    if name == "old":
        return rules.Old(value.type, node.span, value)
    if name == "previous":
        return rules.Previous(value.type, node.span, value)
    if name == "first":
        return rules.First(value.type, node.span, value)
    if name == "present":
        return rules.Present(types.BOOL, node.span, value)
    if name == "changed":
        return changed(value, node)
    of = env.there(value)
    if types.TENSOR not in (of, item_of(of)):
        hint = "of numbers, subtract: `x - old(x)`"
        env.refuse("TS0130", f"`change` takes a tensor, not {named(of)}", argument, hint)
    return rules.Difference(
        types.DIFFERENCE, node.span, value, rules.Old(value.type, node.span, value)
    )


def _need_one_back(node: nodes.Call, env: Environment) -> None:
    """Refuse `previous(x, 3)`."""
    if [each.name for each in node.arguments] != [None, None]:
        return
    number = node.arguments[1].value
    steps = f"{number.value} steps" if isinstance(number, nodes.Integer) else "20 steps"
    x = env.scope.source.slice(node.arguments[0].span)
    hint = (
        "it is the value at the one instance before; a fold reads more: "
        f"`max(previous({x}), over: {steps})`"
    )
    env.refuse("TS0127", "`previous` takes 1 value, not 2", node, hint)


def changed(value: rules.Expr, node: nodes.Expr) -> rules.Expr:
    """An expression that is true if a value differs between the start and the end of the window.

    Absent at both is no change; absent at one is a change.
    """
    span = node.span
    now = digest_of(value)
    differs = rules.Compare(types.BOOL, span, "!=", now, rules.Old(now.type, span, now))
    if not isinstance(value.type, Optional):
        return differs
    here = rules.Present(types.BOOL, span, value)
    there = rules.Old(types.BOOL, span, here)
    comes_or_goes = rules.Compare(types.BOOL, span, "!=", here, there)
    return rules.Or(types.BOOL, span, (comes_or_goes, rules.And(types.BOOL, span, (here, differs))))


def _need_window(node: nodes.Call, name: str, env: Environment) -> None:
    """Refuse an expression that compares the edges of a window at an instant, which has none."""
    if env.clause in ("for", "across", "window"):
        env.refuse("TS0150", f"`{name}` belongs in `when` or `expect`", node)
    window = env.window
    if window is None:
        return
    if window.kind in ("before", "after"):
        event = " or ".join(window.event.events) if window.event else "the event"
        hint = f"write `during {event}`, or `previous(...)` for the instant before"
        what = "compares with the start of a window, and an instant has none"
        env.refuse("TS0150", f"`{name}` {what}", node, hint)
    if window.kind == "during" and env.clause == "when" and name != "old":
        hint = "move it to `expect`, before `implies`"
        message = f"`when` is read as the call begins, and `{name}` needs its end"
        env.refuse("TS0160", message, node, hint)
