"""The violations for which an action is due: `warn after 5 consecutive steps` says nothing of the first four."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tspec.check.verdicts import Decision, Verdicts
from tspec.resolve.program.rules import Response, Rule


def without_waiting(rules: Sequence[Rule], verdicts: Verdicts) -> Verdicts:
    """The verdicts without violations for which no action of their rule is due yet.

    All instances of a rule that held or were violated are to be there. An action that counts epochs
    is due at once where the rule's window is not an epoch.
    """
    waiting: dict[str, list[Decision]] = {rule.qualified: [] for rule in rules if _waits(rule)}
    for found in verdicts.decided:
        if found.instance.rule in waiting and found.verdict in ("holds", "violated"):
            waiting[found.instance.rule].append(found)
    due = {
        rule.qualified: _due_steps(rule, waiting[rule.qualified])
        for rule in rules
        if rule.qualified in waiting
    }
    return replace(
        verdicts,
        decided=tuple(
            each
            for each in verdicts.decided
            if each.verdict != "violated"
            or each.instance.rule not in due
            or each.step in due[each.instance.rule]
        ),
    )


def _waits(rule: Rule) -> bool:
    """Nothing is due at the first failing check."""
    return (
        not rule.draft and bool(rule.responses) and all(one.conditional for one in rule.responses)
    )


def _due_steps(rule: Rule, decisions: Iterable[Decision]) -> set[int]:
    """The steps in which an action is due. A check is all instances of a step; it fails if any is violated."""
    epochs_of: dict[int, int | None] = {}
    for each in decisions:
        if each.verdict == "violated":
            epochs_of[each.step] = each.instance.at[0]
        else:
            epochs_of.setdefault(each.step, None)
    due: set[int] = set()
    in_a_row = 0
    steps: list[int] = []
    epochs: list[int] = []
    for step in sorted(epochs_of):
        epoch = epochs_of[step]
        if epoch is None:
            in_a_row = 0
            continue
        in_a_row += 1
        steps.append(step)
        if rule.window.span == "epoch":
            epochs.append(epoch)
        if any(_is_due(each, in_a_row, steps, epochs) for each in rule.responses):
            due.add(step)
    return due


def _is_due(response: Response, in_a_row: int, steps: list[int], epochs: list[int]) -> bool:
    """True after the latest of some failing checks. Their epochs are empty where they are not known."""
    if response.consecutive is not None:
        return in_a_row >= response.consecutive
    if response.frequent is None or response.among is None:
        return True
    places = epochs if response.among.unit == "epoch" else steps
    if not places:
        return True
    return (
        len(places) - bisect_right(places, places[-1] - response.among.count) >= response.frequent
    )
