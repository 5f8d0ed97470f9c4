"""The actions of `else`: which can be taken at the rule's window, and when they are due."""

from __future__ import annotations

from tspec.builtin.actions import ACTIONS, DEFAULT, ActionName
from tspec.diagnostics import did_you_mean, with_article
from tspec.resolve.expressions.arguments import duration
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.events import is_update
from tspec.resolve.program import rules
from tspec.syntax import nodes

WARN = (rules.Response(DEFAULT),)
"""The action of a rule without `else`."""


def lower_responses(node: nodes.Invariant, env: Environment) -> tuple[rules.Response, ...] | None:
    """The actions of `else`. None if one has an error. A draft only warns."""
    if node.otherwise is None:
        return WARN
    found = []
    failed = False
    for response in node.otherwise.responses:
        try:
            found.append(_response(response, env))
        except Refused:
            failed = True
    if failed:
        return None
    return WARN if node.draft else tuple(found)


def _response(node: nodes.Response, env: Environment) -> rules.Response:
    action = _action(node.action, env)
    if env.window is not None:
        _check_possible(action, env.window, node, env)
    match node.often:
        case nodes.Consecutive(count=count):
            if count < 2:
                message = f"`after {count} consecutive` is at once"
                env.refuse("TS0157", message, node.often, "leave it out, or write 2 or more")
            return rules.Response(action, consecutive=count)
        case nodes.Frequent(count=count, period=period):
            among = duration(period, env, "of")
            if not 1 <= count <= among.count:
                message = f"there are never {count} among {among.count}"
                message = message if count > among.count else "0 failing checks are no failure"
                env.refuse("TS0157", message, node.often)
            return rules.Response(action, frequent=count, among=among)
    return rules.Response(action)


def _action(word: nodes.Word, env: Environment) -> ActionName:
    if word.text in ACTIONS:
        return ACTIONS[word.text].name
    hint = did_you_mean(word.text, [*ACTIONS])
    env.refuse("TS0120", f"there is no action `{word.text}`", word, hint)


def _check_possible(
    action: ActionName, window: rules.Window, node: nodes.Response, env: Environment
) -> None:
    wrong = impossible(action, window)
    if wrong is not None:
        env.refuse("TS0155", wrong[0], node.action, wrong[1])


def impossible(action: ActionName, window: rules.Window) -> tuple[str, str] | None:
    """Why an action cannot be taken at the end of a window, with a hint; None if it can.

    `skip` must come before the update of the step; `stop` and `rollback` before the end of the run.
    """
    needs = ACTIONS[action].needs
    late = _after_the_update(window) if needs == "the update" else None
    if late:
        return (
            f"{late}, so nothing is left to skip",
            "write `before optimizer.step`, or another action",
        )
    if needs == "a step" and window.span == "run":
        return f"the run is over, so there is nothing to {action}", "write `warn` or `raise`"
    return None


def _after_the_update(window: rules.Window) -> str | None:
    """Why a window ends after the update of its step; None if it may end before."""
    if window.kind == "each":
        one = with_article(window.span)
        return None if window.span == "microbatch" else f"{one} ends after its update"
    event = window.event
    if event is None or window.kind == "before":
        return None
    updates = [name for name in event.events if is_update(name)]
    if not updates:
        return None
    moment = "after" if window.kind == "after" else "when"
    if moment == "after":
        return f"`after {updates[0]}` the update is done"
    return f"`{updates[0]}` is judged when it has returned"
