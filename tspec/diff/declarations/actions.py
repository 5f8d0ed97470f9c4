"""Which of two lists of actions is stricter. Actions are no part of the relation of two rules."""

from __future__ import annotations

from typing import Literal

from tspec.resolve.program.rules import Response

SEVERITY = {"warn": 0, "skip": 1, "rollback": 2, "raise": 3, "stop": 3}
"""`raise` and `stop` both end the job, each in its own way: neither is the stricter."""

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
    if strong.action != weak.action and SEVERITY[strong.action] <= SEVERITY[weak.action]:
        return False
    if strong.consecutive is None and strong.frequent is None:
        return True
    if strong.consecutive is not None:
        return weak.consecutive is not None and strong.consecutive <= weak.consecutive
    if strong.frequent is None or weak.frequent is None:
        return False
    if strong.among is None or weak.among is None or strong.among.unit != weak.among.unit:
        return False
    return strong.frequent <= weak.frequent and strong.among.count >= weak.among.count
