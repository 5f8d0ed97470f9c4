"""One instance of a rule: its verdict, the condition that decided it, and the values read there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tspec.check.interpret import shown_in, values_read
from tspec.check.interpret.frames import EvaluationContext, GroupInstance
from tspec.check.verdicts import Decision
from tspec.plan.shown import reads_of
from tspec.reasons import ONE_HOLDER, Verdict, is_of_a_rank
from tspec.resolve.program.queries import conjuncts
from tspec.resolve.program.rules import Expr, Holds, Rule
from tspec.resolve.program.text import text
from tspec.trace.model import Missing
from tspec.why.conditions import OTHER, UNKNOWN, distance, holds, stopping


@dataclass(frozen=True, slots=True)
class InspectedInstance:
    """The outcome of a rule at one instance.

    `clause` and `condition` decided it: the first part of `when` that is not true, or the part of
    `expect`. `values` are the values it reads, text -> value. `unmet` counts the parts of `when`
    that are not true; `off` is the distance of the instance from firing, 0 if it fired.
    """

    decided: Decision
    clause: str
    condition: str
    values: Mapping[str, str] = field(default_factory=dict)
    unmet: int = 0
    off: float = 0.0

    def nearness(self) -> tuple[int, float, object]:
        """Sorts the nearest to firing first."""
        return (self.unmet, self.off, self.decided.instance)

    def said(self) -> str:
        """The verdict in one clause: `it holds: finite(p.grad) = true`."""
        verdict, reason = self.decided.verdict, self.decided.reason
        if not self.condition or verdict in ("holds", "violated"):
            why = f" ({reason})" if reason else ""
            return f"it {_VERBS[verdict]}{why}{self.read(': ')}"
        if list(self.values) == [self.condition]:
            return f"it {_VERBS[verdict]}: `{self.condition}` is {self.values[self.condition]}"
        return f"it {_VERBS[verdict]}: `{self.condition}` {self.stopped_it}{self.read(', ')}"

    @property
    def stopped_it(self) -> str:
        """Why the condition of an idle or unknown instance is not true."""
        return stopped_it(self.clause, self.decided.verdict, self.decided.reason)

    def read(self, before: str) -> str:
        """The values after the text `before`; empty without values."""
        values = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"{before}{values}" if values else ""


def stopped_it(clause: str, verdict: Verdict, reason: str) -> str:
    """`is not true`, `is not recorded`, `has no history yet`; for an order of calls: that the later call is missing."""
    if verdict == "unknown":
        if is_of_a_rank(reason):
            return reason
        return f"{'has' if reason == Missing.NO_HISTORY.value else 'is'} {reason}"
    return "has no later call here" if clause == "expect" else "is not true"


_VERBS = {"holds": "holds", "violated": "is violated", "idle": "is idle", "unknown": "is unknown"}


def look(
    rule: Rule, instance: GroupInstance, decided: Decision, values: bool = True
) -> InspectedInstance:
    """The condition that decided an instance. Without `values`, which are many texts, only its
    distance is given.
    """
    if decided.verdict == "violated":
        read = values_read(rule, instance) if values else {}
        return InspectedInstance(decided, "expect", _claim(rule), read)
    if instance.no_group or decided.reason == ONE_HOLDER:
        return InspectedInstance(decided, "across", "", {}, 1, UNKNOWN)
    frames = [
        EvaluationContext(local.reading(), instance) for _, local in sorted(instance.locals.items())
    ]
    if decided.verdict != "holds":
        for frame in frames:
            at = replace(frame, start=True) if rule.window.kind == "during" else frame
            off = [part for part in conjuncts(rule.when) if holds(part, at) is not True]
            if off:
                return _stopped(rule, decided, off, at, values)
    return _at_expect(rule, instance, decided, frames, values)


def _stopped(
    rule: Rule, decided: Decision, off: Sequence[Expr], frame: EvaluationContext, values: bool
) -> InspectedInstance:
    """The first part of `when` that is not true; if unknown, the part that makes it unknown."""
    known = [part for part in off if not isinstance(holds(part, frame), Missing)]
    first = known[0] if known and decided.verdict == "idle" else off[0]
    part = stopping(first, frame, True)
    how_far = max(distance(each, frame, True) for each in off)
    read = _values(rule, part, frame) if values else {}
    return InspectedInstance(decided, "when", text(part), read, len(off), how_far)


def _at_expect(
    rule: Rule,
    instance: GroupInstance,
    decided: Decision,
    frames: Sequence[EvaluationContext],
    values: bool,
) -> InspectedInstance:
    if not isinstance(rule.expect, Holds):
        return InspectedInstance(decided, "expect", _claim(rule), {}, 0, OTHER)
    condition = rule.expect.condition
    off, nearest = min(
        ((distance(condition, frame, False), frame) for frame in frames), key=lambda pair: pair[0]
    )
    if decided.verdict != "unknown":
        read = values_read(rule, instance) if values else {}
        return InspectedInstance(decided, "expect", text(condition) if values else "", read, 0, off)
    parts = [each for each in conjuncts(condition) if holds(each, nearest) is not True]
    part = stopping(parts[0], nearest, True) if parts else condition
    read = _values(rule, part, nearest) if values else {}
    return InspectedInstance(decided, "expect", text(part), read, 0, UNKNOWN)


def _values(rule: Rule, expr: Expr, frame: EvaluationContext) -> dict[str, str]:
    return {read.text: shown_in(read, frame) for read in reads_of(rule, expr)}


def _claim(rule: Rule) -> str:
    if isinstance(rule.expect, Holds):
        return text(rule.expect.condition)
    return " ".join(rule.source.slice(rule.spans.claim or rule.span).split())
