"""The state of one rule on one rank: whether it is on, its open windows and its pending instances."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from tspec.reasons import VERDICTS, Verdict
from tspec.runtime.instant import StateInstant
from tspec.runtime.pending import Choices, PendingInstance, Ranks, SubjectChoice, Subjects, named
from tspec.runtime.results import InstanceResult, RuleRecord, location_of, step_of, verdict_of
from tspec.runtime.windows import At, RuleWindow
from tspec.values import Datum, show

MOST_SETTLED = 1000
"""Keys of settled windows that a rule keeps. Filters by numbers have any number of keys."""


@dataclass(slots=True)
class RuleState:
    """A rule on one rank."""

    declared: RuleRecord
    on: bool = True
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
    reasons: Counter[str] = field(default_factory=Counter)
    """Why instances are idle or unknown, with their number."""
    on_violation: Callable[[InstanceResult], None] | None = None
    observer: Callable[[InstanceResult], None] | None = None
    """Notified of every decision; changes none."""
    open: dict[int, RuleWindow] = field(default_factory=dict)
    """Call -> the window that is open with it; -1 for a span's."""
    entries: list[PendingInstance] = field(default_factory=list)
    """Instances that are decided with other ranks or with earlier instances."""
    begun: bool = False
    """True once an instance was taken. Of a rule with a history the first one is taken even if `when`
    is false, as `first(x)` is its value.
    """
    windows: list[tuple[int, tuple[Datum, ...]]] = field(default_factory=list)
    """(step, fields) of the calls that were windows on this rank, for rules that look across ranks."""
    done: dict[Ranks, set[Subjects]] = field(default_factory=dict)
    """Group -> the subjects for which a rule with `once` has been evaluated."""
    settled: set[Hashable] = field(default_factory=set)
    """The keys of windows of a rule with `once` that have no choice left to decide. Nothing is read
    for such a window.
    """
    settled_for: Hashable = None
    """The basis of choice (`_choice_basis`) when `settled` was filled; if it changes, `settled` is
    cleared.
    """
    taken: set[tuple[At, Subjects]] = field(default_factory=set)
    """(place, subjects) of the windows taken in this step and the one before, for a rule whose
    filters are known only when a call returns.
    """
    idle_choices: dict[Ranks, Choices] = field(default_factory=dict)
    """Group -> the choices of the latest idle window that its other ranks know."""
    groups: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    """(rank, call) -> its group, for calls that are windows of a rule across ranks."""
    places: list[tuple[int, int]] = field(default_factory=list)
    """The places of the spans that were windows on this rank."""
    held_before: dict[int, int] = field(default_factory=dict)
    """Step -> its instances that held, of those that were postponed and decided since the last packet."""

    @property
    def is_open(self) -> bool:
        """A window is open in which calls may be looked up."""
        return any(not window.idle for window in self.open.values())

    def decide(self, w: RuleWindow, subjects: tuple[str, ...], when: Datum, expect: Datum) -> bool:
        """Count an instance of this rank alone unless it is violated; true if it is, and its values are needed."""
        verdict: Verdict
        if expect is True and when is True and not w.cut:
            verdict, reason = "holds", ""
        elif when is False and not w.cut:
            verdict, reason = "idle", ""
        else:
            verdict, reason = verdict_of(self.declared, w.cut, when, expect)
            if verdict == "violated":
                return True
            if reason:
                self.reasons[reason] += 1
        self.counts[verdict] += 1
        if self.observer is not None:
            self._observe(w, subjects, verdict, reason)
        return False

    def violated(
        self, w: RuleWindow, subjects: tuple[str, ...], values: Sequence[tuple[str, Datum]]
    ) -> None:
        """Count a violated instance of this rank alone, and report it."""
        read = {text: show(value) for text, value in values}
        self.enter(
            InstanceResult(
                rule=self.declared.number,
                ranks=(w.rank,),
                at=w.at,
                subjects=subjects,
                verdict="violated",
                step=step_of(w),
                values=read,
                location=location_of(self.declared, w),
            )
        )

    def enter(self, result: InstanceResult) -> None:
        """Count a result, and report a violation."""
        self.counts[result.verdict] += 1
        if result.reason and result.verdict != "violated":
            self.reasons[result.reason] += 1
        if self.observer is not None:
            self.observer(result)
        if result.verdict == "violated" and self.on_violation is not None:
            self.on_violation(result)

    def idle(self, w: RuleWindow, choices: Choices, reason: str = "") -> None:
        """Count an idle window: one instance for each choice of one subject from every clause."""
        if self.declared.once:
            done = self.done.setdefault((w.rank,), set())
            rest = (one for one in product(*choices) if one not in done)
            names = dict.fromkeys(named(one, w.at) for one in rest)
            new = [one for one in names if one not in done]
            done.update(new)
            self.counts["idle"] += len(new)
            if reason and new:
                self.reasons[reason] += len(new)
            if self.observer is not None:
                for subjects in new:
                    self._observe(w, subjects, "idle", reason)
            return
        number = math.prod(map(len, choices))
        self.counts["idle"] += number
        if reason and number:
            self.reasons[reason] += number
        if self.observer is not None:
            self.observe_idle(w, choices, reason)

    def observe_idle(self, w: RuleWindow, choices: Choices, reason: str) -> None:
        """Notify the observer of a window whose instances are all idle."""
        for subjects in product(*choices):
            self._observe(w, named(subjects, w.at), "idle", reason)

    def count_idle(self, window: PendingInstance) -> None:
        """Count a window that is idle on all ranks of a group."""
        self.counts["idle"] += math.prod(map(len, window.choices))
        if self.observer is not None:
            for entry in window.instances():
                self.observer(entry.result("idle"))

    def _observe(
        self, w: RuleWindow, subjects: tuple[str, ...], verdict: Verdict, reason: str
    ) -> None:
        assert self.observer is not None
        self.observer(
            InstanceResult(
                rule=self.declared.number,
                ranks=(w.rank,),
                at=w.at,
                subjects=subjects,
                verdict=verdict,
                reason=reason,
                step=step_of(w),
            )
        )

    def take(self, w: RuleWindow, choice: SubjectChoice, leaves: tuple[Datum, ...] | None) -> None:
        """Keep the values that this rank read of an instance, to be decided with other ranks or
        with earlier instances.
        """
        call = -1 if w.call is None else w.call.id
        deferred = w.pattern is not None and w.pattern.deferred
        if deferred and not self.declared.across and not self._is_first_at(w, choice.subjects):
            return
        if self.declared.once and named(choice.subjects, w.at) in self.done.get(choice.group, ()):
            return
        self.begun = True
        self.entries.append(
            PendingInstance(
                rule=self.declared.number,
                rank=w.rank,
                group=choice.group,
                at=w.at,
                subjects=choice.subjects,
                persistent=choice.persistent,
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

    def take_idle(
        self, w: RuleWindow, group: Ranks, kinds: tuple[str, ...], choices: Choices
    ) -> None:
        """Keep an idle window for the other ranks of the group, as one entry.

        `kinds` are the kinds of the subjects. The other ranks keep the choices until they change.
        """
        known = choices == self.idle_choices.get(group)
        self.idle_choices[group] = choices
        self.entries.append(
            PendingInstance(
                rule=self.declared.number,
                rank=w.rank,
                group=group,
                at=w.at,
                subjects=(),
                persistent=(),
                passing=False,
                leaves=None,
                index=w.index,
                step=step_of(w),
                cut=w.cut,
                location=location_of(self.declared, w),
                kinds=kinds,
                choices=() if known else choices,
            )
        )

    def take_idle_groups(
        self, w: RuleWindow, kind: str, found: Mapping[tuple[Ranks, str], Sequence[str]]
    ) -> None:
        """Keep an idle window of subjects that have groups of their own, as one entry for each
        group.

        `found`: a group, or the reason why there is none -> the names of the subjects.
        """
        for (group, why), names in found.items():
            choices = (tuple(names),)
            if why:
                self.idle(w, choices, why)
            else:
                self.take_idle(w, group, (kind,), choices)

    def _is_first_at(self, w: RuleWindow, subjects: Subjects) -> bool:
        """True if the call is the first to return at its place.

        If nested calls match by their results, the inner one counts.
        """
        step = w.at[0]
        self.taken = {one for one in self.taken if one[0][0] >= step - 1}
        first = (w.at, subjects) not in self.taken
        self.taken.add((w.at, subjects))
        return first

    def is_new(self, group: Ranks, subjects: Subjects) -> bool:
        """True if this is the first window of a rule with `once` for these subjects. They are
        recorded as evaluated.
        """
        done = self.done.setdefault(group, set())
        new = subjects not in done
        done.add(subjects)
        return new

    def settles(self, w: RuleWindow) -> None:
        """Record that all choices of a window of a rule with `once` are decided, if they are."""
        if self.declared.over is None or self.entries:
            return
        basis = self._choice_basis(w.now)
        if basis != self.settled_for or len(self.settled) == MOST_SETTLED:
            self.settled_for = basis
            self.settled.clear()
        self.settled.add(w.key)

    def is_settled(self, now: StateInstant, key: Hashable) -> bool:
        """True if a rule with `once` has been evaluated for all choices of a window at this instant.

        `key`: the values of the call's fields that the rule's window filters.
        """
        return key in self.settled and self.settled_for == self._choice_basis(now)

    def _choice_basis(self, now: StateInstant) -> Hashable:
        """The subjects of each kind, and what determines their groups: version and world size."""
        subjects = tuple(now.subjects(kind) for kind in self.declared.over or ())
        # Looking at the subjects may find that a model was changed, which changes the version.
        return (subjects, now.source.version, now.source.world)

    def note_group(self, w: RuleWindow, group: tuple[int, ...]) -> None:
        """Remember the group of a call that is a window."""
        if w.call is not None:
            self.groups[w.rank, w.call.id] = group

    def note(self, w: RuleWindow) -> None:
        """Record a call's window whose filters are known only at its end."""
        call, pattern = w.call, w.pattern
        if self.declared.across and call is not None and pattern is not None and pattern.deferred:
            key = tuple(call.get(name) for name in pattern.fields)
            if w.is_window(call, pattern, key):
                self.windows.append((call.step, key))
