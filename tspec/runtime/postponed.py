"""Rules whose windows have ended, and which wait for values that are in transfer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tspec.runtime.results import step_of
from tspec.runtime.state import RuleState
from tspec.runtime.transfers import Transfer
from tspec.runtime.windows import RuleWindow


class Postponed(NamedTuple):
    """A rule that waits, and a window of it that has ended."""

    number: int
    window: RuleWindow
    transfer: Transfer | None
    """The latest copy of what the rule reads; None if all have arrived, and the rule waits for its turn."""


class PostponedRules:
    """The rules of the job's only rank that wait, in the order in which their windows ended."""

    def __init__(
        self, rules: Sequence[RuleState], evaluate: Callable[[int, RuleWindow], None]
    ) -> None:
        self._rules = rules
        self._evaluate = evaluate
        self._waiting: list[Postponed] = []
        self._numbers: set[int] = set()
        """The numbers of the rules that wait."""

    def take(self, number: int, window: RuleWindow) -> bool:
        """Postpone a rule if values are in transfer; false if it has to be decided now.

        What it reads besides is sampled here.
        """
        kept, now = self._rules[number].declared.postponed, window.now
        if kept is None or now.source.world > 1:
            return False
        settled = window.idle or window.cut or now.source.transfer is None
        if settled and number not in self._numbers:
            return False
        kinds, ambients, fields = kept
        now.keep(kinds, ambients)
        now.hold()
        if window.call is not None:
            window.call.sample(fields)
        self._add(Postponed(number, window, now.source.transfer))
        return True

    def decide(self, before: float = math.inf) -> None:
        """Evaluate the rules whose values have arrived, and wait for those of steps before one."""
        waiting, self._waiting = self._waiting, []
        self._numbers.clear()
        for each in waiting:
            late = each.transfer is not None and not each.transfer.arrived()
            if step_of(each.window) >= before and (late or each.number in self._numbers):
                self._add(each)
            elif self._rules[each.number].on:
                self._decide(each)

    def _add(self, one: Postponed) -> None:
        self._waiting.append(one)
        self._numbers.add(one.number)

    def _decide(self, one: Postponed) -> None:
        rule, step = self._rules[one.number], step_of(one.window)
        before = rule.counts["holds"]
        self._evaluate(one.number, one.window)
        if more := rule.counts["holds"] - before:
            rule.held_before[step] = rule.held_before.get(step, 0) + more
