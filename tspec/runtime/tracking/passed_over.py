"""Calls that are passed over: counted, while no rule reads anything of them."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.runtime.calls.call import Pattern
from tspec.runtime.edges import Context, StateSource, WatchedCall
from tspec.runtime.instant import StateInstant
from tspec.runtime.pending import Choices
from tspec.runtime.tracking.rules import Evaluation, RuleTracker, TrackedRules
from tspec.runtime.windows import RuleWindow


class PassedOverCalls(RuleTracker):
    """The calls of one rank that are passed over, each an idle window of some rules."""

    def __init__(self, tracked: TrackedRules) -> None:
        super().__init__(tracked)
        self._resting: dict[str, tuple[Context, bool]] = {}
        """Event -> a context, and whether no rule looks at the event's calls in it."""

    def rests(self, call: WatchedCall) -> bool | None:
        """True if no rule looks at calls of this event before the next boundary; None if that is
        unknown so far.
        """
        known = self._resting.get(call.event)
        return known[1] if known is not None and known[0] is call.context else None

    def keep_rest(self, call: WatchedCall, rests: bool) -> None:
        """Keep whether no rule looks at calls of this event before the next boundary."""
        self._resting[call.event] = (call.context, rests)

    def idle_all(
        self,
        call: WatchedCall,
        source: StateSource,
        pattern: Pattern,
        rules: Sequence[tuple[int, Choices]],
    ) -> None:
        """Count the one instance of each rule in the window of a call that is passed over as idle."""
        at = self.places.next(call, pattern)
        for number, choices in rules:
            rule = self.rules[number]
            if not rule.on or not rule.declared.is_due(call.context):
                continue
            rule.counts["idle"] += 1
            if rule.observer is not None:
                window = RuleWindow(self.instant(source, call.context), self.log)
                window.at = at
                rule.observe_idle(window, choices, "")

    def passed(self, call: WatchedCall, now: StateInstant, pattern: Pattern) -> RuleWindow:
        """Number the window of a call that is passed over, as for one that is evaluated."""
        window = RuleWindow(now, self.log)
        window.at = self.places.next(call, pattern)
        window.idle = True
        return window

    def idle_passed(self, window: RuleWindow, number: int, choices: Choices) -> None:
        """Count the one instance of a window of a call that is passed over as idle."""
        rule = self.rules[number]
        if rule.on and rule.declared.is_due(window.now.context):
            rule.idle(window, choices)

    def run_passed(self, window: RuleWindow, number: int, function: Evaluation) -> None:
        """Have a rule count its idle instances in a window of a call that is passed over."""
        rule = self.rules[number]
        if rule.on and rule.declared.is_due(window.now.context):
            self.run(function, number, window)
