"""Verdicts of instances, and the records of rules that generated code holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tspec.due import ActionRecord
from tspec.reasons import CUT_OFF, Verdict
from tspec.runtime.edges import Context, Location, Missing
from tspec.runtime.windows import At, RuleWindow
from tspec.values import Datum

IDLE = "idle"
"""The value of a claim that is vacuous; other claims are true, false or missing."""


@dataclass(frozen=True, slots=True)
class InstanceResult:
    """The verdict on one instance. For a violated instance, `values` are the values that the rule
    read, as text.
    """

    rule: int
    ranks: tuple[int, ...]
    at: At
    subjects: tuple[str, ...]
    verdict: Verdict
    reason: str = ""
    step: int = 0
    values: Mapping[str, str] = field(default_factory=dict)
    location: Location | None = None
    """The line of the script that a violated instance points at, on its first rank."""


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A rule as generated code describes it."""

    number: int
    name: str
    file: str
    line: int
    text: str
    draft: bool
    kind: str
    responses: tuple[ActionRecord, ...]
    claim: str = ""
    """The words for a claim that fails: `expected norm(p.grad) < 10`."""
    every: tuple[int, str] | None = None
    span: str | None = None
    once: bool = False
    across: bool = False
    connected: bool = False
    """The rule is across several axes: its group is all ranks reached over any of them."""
    early: bool = False
    """The claim can be decided before its window ends: `contains`, `A before B`."""
    when: bool = False
    history: bool = False
    over: tuple[str, ...] | None = None
    """With `once`: the kinds of subjects for whose choices the rule is decided once each; empty if
    the rule has one instance. None if something else determines the choices too.
    """
    counts: tuple[str, ...] = ()
    """The events whose calls the rule reads within its window."""
    passing: tuple[str, ...] = ()
    """The kinds of transient subjects (batches, messages) that the rule reads."""
    postponed: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None = None
    """For a rule that may be decided after its window ended: what is sampled as the window ends. Kinds of subjects,
    context values, and fields of the window's call.
    """

    @property
    def reads_ends_only(self) -> bool:
        """Its windows are runs, and it reads state at their begin and end only."""
        return self.span == "run" and not (self.counts or self.passing)

    def is_due(self, context: Context) -> bool:
        """The number of its unit, when a window opens, is divisible."""
        if self.every is None:
            return True
        count, unit = self.every
        number = context.value(unit)
        return isinstance(number, int) and number % count == 0


def step_of(w: RuleWindow) -> int:
    """The step in which a window closed; for the window of a call, the step in which the call
    began.
    """
    return w.call.step if w.call is not None else w.now.context.step


def location_of(declared: RuleRecord, w: RuleWindow) -> Location | None:
    """The line that a violated instance points at."""
    if w.broken_at is not None and not declared.across:
        return w.broken_at.location
    return w.location


def due(declared: RuleRecord, cut: bool, when: Datum) -> tuple[Verdict, str]:
    """The verdict before the claim is evaluated: due (`holds`), idle or unknown, from the condition
    and the end of the window.
    """
    if declared.when:
        if cut and declared.kind != "during":
            return "unknown", CUT_OFF
        if when is False:
            return "idle", ""
        if when is not True:
            return "unknown", reason_of(when)
    if cut and not declared.early:
        return "unknown", CUT_OFF
    return "holds", ""


def verdict_of(declared: RuleRecord, cut: bool, when: Datum, expect: Datum) -> tuple[Verdict, str]:
    """The verdict from one rank's values, with the reason if it is unknown."""
    verdict, reason = due(declared, cut, when)
    return claimed(expect) if verdict == "holds" else (verdict, reason)


def claimed(expect: Datum) -> tuple[Verdict, str]:
    """The verdict for a claim's value."""
    if expect is True:
        return "holds", ""
    if expect is False:
        return "violated", ""
    if expect == IDLE:
        return "idle", ""
    return "unknown", reason_of(expect)


def reason_of(value: Datum) -> str:
    """The reason for an unknown verdict, as text."""
    if isinstance(value, Missing):
        return value.value
    return CUT_OFF if value == CUT_OFF else Missing.NOT_RECORDED.value
