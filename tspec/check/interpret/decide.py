"""The verdict of one instance.

Page: "Instances", the line on the verdict; "Claims", the last line; "Time", windows without end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tspec.check.interpret.claims import CUT_OFF, ClaimResult, claim
from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import EvaluationContext, GroupInstance
from tspec.check.interpret.values import truth
from tspec.reasons import DIFFER, LACKS, ONE_HOLDER, of_rank
from tspec.resolve.program.rules import Contains, Holds, Ordered, Rule
from tspec.trace.model import Missing


def decide(rule: Rule, instance: GroupInstance) -> ClaimResult:
    """`when` on all members that have the instance, then the others, then `expect`."""
    if instance.no_group:
        return ClaimResult("idle", instance.no_group)
    if rule.across and len(instance.members) == 1:
        return ClaimResult("idle", ONE_HOLDER)
    frames = [
        EvaluationContext(instance.locals[rank], instance)
        for rank in instance.members
        if rank in instance.locals
    ]
    due = [_when(rule, frame) for frame in frames]
    if {"holds", "idle"} <= {each.verdict for each in due}:
        return ClaimResult("violated", DIFFER)
    for each in due:
        if each.verdict == "unknown":
            return each
    if instance.unknown:
        return ClaimResult("unknown", next(iter(instance.unknown.values())))
    if all(each.verdict == "idle" for each in due):
        return ClaimResult("idle")
    if instance.lacking:
        return ClaimResult("violated", of_rank(instance.lacking[0], LACKS))
    return _all([_expect(rule, frame) for frame in frames])


def _when(rule: Rule, frame: EvaluationContext) -> ClaimResult:
    """holds: it is due; idle: it is not. Read at the start of `during`, else at the end."""
    if rule.when is None:
        decided_early = isinstance(rule.expect, Contains | Ordered)
        return ClaimResult("holds") if decided_early else _whole(frame)
    if rule.window.kind == "during":
        frame = replace(frame, start=True)
    elif frame.local.window.close is None:
        return CUT_OFF
    value = truth(evaluate(rule.when, frame))
    if isinstance(value, Missing):
        return ClaimResult("unknown", value.value)
    if value is True and not isinstance(rule.expect, Contains | Ordered):
        return _whole(frame)
    return ClaimResult("holds") if value is True else ClaimResult("idle")


def _whole(frame: EvaluationContext) -> ClaimResult:
    """A window that is cut off is unknown, whatever it could have decided."""
    return CUT_OFF if frame.local.window.close is None else ClaimResult("holds")


def _expect(rule: Rule, frame: EvaluationContext) -> ClaimResult:
    if not isinstance(rule.expect, Holds):
        return claim(rule.expect, frame)
    value = truth(evaluate(rule.expect.condition, frame))
    if isinstance(value, Missing):
        return ClaimResult("unknown", value.value)
    return ClaimResult("holds" if value is True else "violated")


_STRONGEST = ("violated", "unknown", "holds", "idle")


def _all(found: Sequence[ClaimResult]) -> ClaimResult:
    """The verdict of a group: violated if a member is, else unknown if a member is, idle if all are, else holds."""
    return min(found, key=lambda each: _STRONGEST.index(each.verdict))
