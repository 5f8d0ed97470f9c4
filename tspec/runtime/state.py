"""The state of one rule on one rank: whether it is on, its open windows, and what it has still to settle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tspec.runtime.ledger import (
    VERDICTS,
    Declared,
    Outcome,
    location_of,
    outcome_of,
    shown,
    step_of,
)
from tspec.runtime.meeting import Choice, Entry
from tspec.runtime.windows import Window


@dataclass(slots=True)
class RuleState:
    """A rule on one rank."""

    declared: Declared
    on: bool = True
    logging: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    on_violation: Callable[[Outcome], None] | None = None
    open: dict[int, Window] = field(default_factory=dict)
    """Call -> the window that is open with it; -1 for a span's."""
    entries: list[Entry] = field(default_factory=list)
    """Instances that wait to be decided with others."""
    windows: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)
    """(step, fields) of the calls that were windows on this rank, for rules that look across ranks."""
    done: set[tuple[str | None, ...]] = field(default_factory=set)
    """Of a rule that is looked at once: the subjects of which it has been."""
    groups: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    """(rank, call) -> its group, for calls that are windows of a rule across ranks."""
    places: list[tuple[int, int]] = field(default_factory=list)
    """The places of the spans that were windows on this rank."""

    def decide(self, w: Window, subjects: tuple[str, ...], when: Any, expect: Any) -> bool:
        """Count an instance of this rank alone; whether it is violated, so that values are looked for."""
        if not (w.cut or self.logging):
            if expect is True and when is True:
                self.counts["holds"] += 1
                return False
            if when is False:
                self.counts["idle"] += 1
                return False
        verdict, reason = outcome_of(self.declared, w.cut, when, expect)
        if verdict == "violated":
            return True
        self.counts[verdict] += 1
        if self.logging:
            number = self.declared.number
            self.outcomes.append(
                Outcome(number, (w.rank,), w.at, subjects, verdict, reason, step_of(w))
            )
        return False

    def violated(
        self, w: Window, subjects: tuple[str, ...], values: Sequence[tuple[str, Any]]
    ) -> None:
        """Count a violated instance of this rank alone, and hand it on."""
        read = {text: shown(value) for text, value in values}
        number, at = self.declared.number, location_of(self.declared, w)
        self.enter(Outcome(number, (w.rank,), w.at, subjects, "violated", "", step_of(w), read, at))

    def enter(self, outcome: Outcome) -> None:
        """Count an outcome; keep it if asked to, and hand on what is violated."""
        self.counts[outcome.verdict] += 1
        if self.logging:
            self.outcomes.append(outcome)
        if outcome.verdict == "violated" and self.on_violation is not None:
            self.on_violation(outcome)

    def take(self, w: Window, choice: Choice, leaves: tuple[Any, ...] | None) -> None:
        """Keep what this rank read of an instance, to be decided with what others read, or read before."""
        call = -1 if w.call is None else w.call.id
        self.entries.append(
            Entry(
                rule=self.declared.number,
                rank=w.rank,
                group=choice.group,
                at=w.at,
                subjects=choice.subjects,
                lasting=choice.lasting,
                passing=choice.passing,
                leaves=leaves,
                index=w.index,
                step=step_of(w),
                call=call,
                earlier=w.earlier[: w.at[1]],
                cut=w.cut,
                no_group=choice.no_group,
                wanted=choice.wanted,
                location=location_of(self.declared, w),
            )
        )

    def is_done(self, subjects: Sequence[str]) -> bool:
        """Whether a rule that is looked at once has been, for every subject that there is."""
        over = self.declared.over
        if over is None or not self.done:
            return False
        return all((name,) in self.done for name in subjects) if over else () in self.done

    def grouped(self, w: Window, group: tuple[int, ...]) -> None:
        """Remember the group of a call that is a window."""
        if w.call is not None:
            self.groups[w.rank, w.call.id] = group

    def note(self, w: Window) -> None:
        """Remember a call's window of which the filters are known at its end only."""
        call, pattern = w.call, w.pattern
        if self.declared.across and call is not None and pattern is not None and pattern.late:
            key = tuple(call.get(name) for name in pattern.fields)
            if w.is_window(call, pattern, key):
                self.windows.append((call.step, key))
