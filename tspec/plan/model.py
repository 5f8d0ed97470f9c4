"""A plan: each rule with its reads and its way of execution, and the requirements of all rules on a
job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tspec.plan.events import fields_of
from tspec.plan.reads import Reads
from tspec.resolve.program import rules as r


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """Calls of some events, distinguished by fields. `deferred`: a field is known only when a call returns."""

    number: int
    events: tuple[str, ...]
    fields: tuple[str, ...]
    deferred: bool


@dataclass(frozen=True, slots=True)
class RulePlan:
    """One rule, and how it executes."""

    number: int
    rule: r.Rule
    looked_up: tuple[r.Calls | r.LastCall, ...]
    """The expressions that look up calls within the window."""
    counted: tuple[r.EventPattern, ...]
    """The patterns whose calls are looked up within the window."""
    reads: Reads
    alone: bool
    """Each instance is decided by itself as its window ends: no group, no look-back, not `once`, no filter on results."""
    history: bool
    guard: r.Expr | None
    """Conditions on context and the window's call alone. If they are false, nothing else is read.

    For a rule that looks back, only conditions that stay false count.
    """
    watched: tuple[str, ...]
    """Events at whose begins and ends `x only during …` reads x."""
    postponable: bool
    """It may be decided after its window ended, when the values have arrived from a device."""

    @property
    def event_patterns(self) -> tuple[r.EventPattern, ...]:
        """Every event pattern of the rule, the pattern of its window first."""
        event = self.rule.window.event
        return self.counted if event is None else (event, *self.counted)


@dataclass(frozen=True, slots=True)
class LastingPlan:
    """The fields of an event's calls that are kept beyond their step."""

    filters: tuple[str, ...]
    """Fields that patterns filter by."""
    fields: tuple[str, ...]
    """Fields that are kept of every call, `filters` among them."""
    first: tuple[str, ...]
    """Fields kept of the first call among those with equal filter fields."""


@dataclass(frozen=True, slots=True)
class UnopenedPlan:
    """The fields kept of an event's calls while none of some rules has a window open."""

    rules: tuple[int, ...]
    kept: Mapping[str, tuple[tuple[str, ...], bool]]
    inside: Mapping[str, tuple[tuple[str, ...], bool]] | None
    """Those of calls that another call of the event encloses, if fewer."""
    alone: Mapping[str, tuple[tuple[str, ...], bool]] | None
    """Those in a job of one rank, if fewer."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All rules of a program, target-neutral."""

    rules: tuple[RulePlan, ...]
    patterns: tuple[PatternPlan, ...]
    kept: Mapping[str, Mapping[str, tuple[tuple[str, ...], bool]]]
    """Event -> field of its calls -> features of the tensors in it, and whether it is looked up later."""
    inside: Mapping[str, Mapping[str, tuple[tuple[str, ...], bool]]]
    """The same of calls that another call of the event encloses, where that is less."""
    alone: Mapping[str, Mapping[str, tuple[tuple[str, ...], bool]]]
    """The same in a job of one rank, if it is less."""
    unopened: Mapping[str, UnopenedPlan]
    """The same while some rules have no window open, if it is less."""
    logged: tuple[str, ...]
    """Events whose calls are kept while a window that counts them is open."""

    passing: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Columns of subjects that last for a step: kind, field, features."""
    firsts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Columns whose first sample is read."""
    kinds: tuple[str, ...] = ()
    """Kinds of lasting subjects in rules across ranks."""
    outermost: tuple[str, ...] = ()
    """Events whose calls count only where no call of the same event encloses them."""
    deferred: tuple[str, ...] = ()
    """Events whose calls are read when they return only, so that their begin is not reported."""
    lasting: Mapping[str, LastingPlan] = field(default_factory=dict)
    """Event -> the fields by which windows that may outlast a step look up its calls."""
    operators: tuple[str, ...] = ()
    """Events whose calls are torch's operators and layers, within which step, epoch, micro-batch and phase stay."""

    receivers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Event -> the classes of modules whose calls rules read, if they read calls of no other
    classes.
    """

    def pattern(self, event: r.EventPattern) -> PatternPlan:
        """The calls that an event pattern of a rule distinguishes."""
        key = (tuple(sorted(set(event.events))), fields_of(event))
        return next(one for one in self.patterns if (one.events, one.fields) == key)
