"""The violations for which an action is due: `warn after 5 consecutive steps` says nothing of the first four."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tspec.check.verdicts import Decision, Verdicts
from tspec.due import history
from tspec.resolve.program.rules import Rule


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
    """The steps in which an action is due. A check fails if any instance of its step is violated."""
    in_epochs = rule.window.span == "epoch"
    failed: dict[int, bool] = {}
    epochs: dict[int, int] = {}
    for each in decisions:
        failed[each.step] = failed.get(each.step, False) or each.verdict == "violated"
        if in_epochs and each.verdict == "violated":
            epochs[each.step] = each.instance.at[0]
    checks = history([each.record for each in rule.responses], rule.draft)
    return {
        step for step in sorted(failed) if checks.add(failed[step], True, (step, epochs.get(step)))
    }
