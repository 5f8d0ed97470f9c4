"""The failing checks after which an action of a rule is due: `stop after 5 consecutive steps`.

A check is all instances of a rule at one step, on all ranks. Jobs and reports of recordings count
checks here. All ranks of a job add the same checks, and so take the same action at the same place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tspec.builtin.actions import DEFAULT, strongest

CheckPlace = tuple[int, int | None]
"""The step and the epoch of a check; None if the epoch is not known."""


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """One action of `else`, and the failing checks after which it is due.

    `consecutive`: so many in a row. `frequent`: so many among the last `among`, a count and a unit.
    Without either, the action is due at once.
    """

    action: str
    consecutive: int | None = None
    frequent: int | None = None
    among: tuple[int, str] | None = None

    @property
    def conditional(self) -> bool:
        """True if the action is due only after several failing checks."""
        return self.consecutive is not None or self.frequent is not None


@dataclass(slots=True)
class CheckHistory:
    """The failing checks of one rule so far."""

    responses: Sequence[ActionRecord]
    failing: int = 0
    """The number of consecutive failing checks; idle and unknown checks may lie between them."""
    failed_at: deque[CheckPlace] = field(default_factory=deque)
    """The latest failing checks."""

    def add(self, failed: bool, decided: bool, at: CheckPlace) -> str:
        """Add a check, and return the strongest action that is due, or an empty string."""
        if not failed:
            if decided:
                self.failing = 0
            return ""
        self.failing += 1
        self.failed_at.append(at)
        self._forget(at)
        return self._due(self.failing, at)

    def would_be(self, at: CheckPlace) -> str:
        """The action that is due if this step's check, which is not over, fails."""
        self.failed_at.append(at)
        try:
            return self._due(self.failing + 1, at)
        finally:
            self.failed_at.pop()

    def _due(self, failing: int, at: CheckPlace) -> str:
        """The strongest action whose condition holds after a failing check."""
        return strongest(one.action for one in self.responses if self._is_due(one, failing, at))

    def _is_due(self, response: ActionRecord, failing: int, at: CheckPlace) -> bool:
        if response.consecutive is not None:
            return failing >= response.consecutive
        if response.frequent is None or response.among is None:
            return True
        among = self._among(response.among, at)
        return among is None or len(among) >= response.frequent

    def _among(self, among: tuple[int, str], at: CheckPlace) -> Sequence[CheckPlace] | None:
        """The failing checks in a span that ends with one; None if its epoch is not known."""
        count, unit = among
        place = 1 if unit == "epoch" else 0
        last = at[place]
        if last is None:
            return None
        first = last - count + 1
        return [
            one for one in self.failed_at if (other := one[place]) is not None and other >= first
        ]

    def _forget(self, at: CheckPlace) -> None:
        spans = [one.among for one in self.responses if one.among is not None]
        while self.failed_at and not any(
            self.failed_at[0] in (self._among(span, at) or ()) for span in spans
        ):
            self.failed_at.popleft()


def history(responses: Sequence[ActionRecord], draft: bool) -> CheckHistory:
    """No check so far. A rule without actions warns, and so does a draft, whatever it asks for."""
    return CheckHistory(responses if responses and not draft else (ActionRecord(DEFAULT),))
