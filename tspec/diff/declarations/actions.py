"""Compares the severity of two lists of actions. Actions are no part of the relation of two rules."""

from __future__ import annotations

from typing import Literal

from tspec.builtin.actions import ACTIONS
from tspec.resolve.program.rules import Response

Strictness = Literal["same", "stricter", "milder", "changed"]


def compare(old: tuple[Response, ...], new: tuple[Response, ...]) -> Strictness:
    """`stricter`: every old action is still taken, at least as strongly and as early."""
    if old == new:
        return "same"
    no_less = all(any(_covers(after, before) for after in new) for before in old)
    no_more = all(any(_covers(before, after) for before in old) for after in new)
    if no_less and no_more:
        return "same"
    if no_less:
        return "stricter"
    return "milder" if no_more else "changed"


def _covers(strong: Response, weak: Response) -> bool:
    """The strong one is due wherever the weak one is, and does as much or more."""
    above = ACTIONS[strong.action].severity > ACTIONS[weak.action].severity
    return (strong.action == weak.action or above) and strong.due_whenever(weak)
