"""Actions on failing checks: counters for each rule, and the strongest action that is due.

A check is all instances of a rule at one step, on all ranks. All ranks compute the same counters
from the exchanged packets, and so take the same action at the same place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tspec.builtin.actions import DEFAULT, strongest
from tspec.runtime.results import ActionRecord, RuleRecord


class JobStopped(SystemExit):
    """A rule's `stop`: the process ends with status 1. The rule's finding was printed before."""

    def __init__(self) -> None:
        super().__init__(1)


class RuleViolated(RuntimeError):
    """A rule's `raise`."""


@dataclass(slots=True)
class CheckHistory:
    """The failing checks of one rule so far."""

    declared: RuleRecord
    failing: int = 0
    """The number of consecutive failing checks; idle and unknown checks may lie between them."""
    failed_at: deque[tuple[int, int]] = field(default_factory=deque)
    """(step, epoch) of the latest failing checks."""

    def add(self, failed: bool, decided: bool, at: tuple[int, int]) -> str:
        """Add a check, and return the strongest action that is due, or an empty string."""
        if not failed:
            if decided:
                self.failing = 0
            return ""
        self.failing += 1
        self.failed_at.append(at)
        self._forget(at)
        return self.due(self.failing, at)

    def would_be(self, at: tuple[int, int]) -> str:
        """The action that is due if this step's check, which is not over, fails."""
        self.failed_at.append(at)
        try:
            return self.due(self.failing + 1, at)
        finally:
            self.failed_at.pop()

    def due(self, failing: int, at: tuple[int, int]) -> str:
        """The strongest action whose condition holds after a failing check."""
        responses = self.declared.responses
        if self.declared.draft or not responses:
            responses = (ActionRecord(DEFAULT),)
        return strongest(one.action for one in responses if self._is_due(one, failing, at))

    def _is_due(self, response: ActionRecord, failing: int, at: tuple[int, int]) -> bool:
        if response.consecutive is not None:
            return failing >= response.consecutive
        if response.frequent is not None and response.among is not None:
            return len(self._among(response.among, at)) >= response.frequent
        return True

    def _among(self, among: tuple[int, str], at: tuple[int, int]) -> Sequence[tuple[int, int]]:
        count, unit = among
        place = 1 if unit == "epoch" else 0
        return [one for one in self.failed_at if one[place] > at[place] - count]

    def _forget(self, at: tuple[int, int]) -> None:
        spans = [one.among for one in self.declared.responses if one.among is not None]
        while self.failed_at and not any(
            self.failed_at[0] in self._among(span, at) for span in spans
        ):
            self.failed_at.popleft()
