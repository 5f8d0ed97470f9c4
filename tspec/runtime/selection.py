"""The steps of a run in which a checker takes calls, by a schedule of steps."""

from __future__ import annotations

from enum import Enum, auto

from tspec.schedule import StepSchedule


class StepState(Enum):
    """The state of the step that is open."""

    CHECKED = auto()
    ENDS = auto()
    """It is left out and opens right now: windows that end here still close."""
    FIRST_LEFT_OUT = auto()
    """It is the first one that is left out."""
    SECOND_LEFT_OUT = auto()
    """It is the second one: the ranks have their last meeting before the next step that is checked."""
    LEFT_OUT = auto()


OUT = frozenset({StepState.FIRST_LEFT_OUT, StepState.SECOND_LEFT_OUT, StepState.LEFT_OUT})
_NEXT = {
    StepState.CHECKED: StepState.ENDS,
    StepState.ENDS: StepState.SECOND_LEFT_OUT,
    StepState.FIRST_LEFT_OUT: StepState.SECOND_LEFT_OUT,
    StepState.SECOND_LEFT_OUT: StepState.LEFT_OUT,
    StepState.LEFT_OUT: StepState.LEFT_OUT,
}
"""The state before a step that is left out -> the state in it."""


class StepSelection:
    """Follows the steps as they open. Without a schedule all of them are checked."""

    def __init__(self, schedule: StepSchedule | None) -> None:
        self._schedule = schedule
        self._first_step = 1
        self.state = StepState.CHECKED

    def opens(self, step: int, first_step: int | None) -> None:
        """A step opens. `first_step` is the number of the run's first step; None if this is it."""
        if self._schedule is None:
            return
        self._first_step = step if first_step is None else first_step
        checked = self._schedule.checks(step, self._first_step)
        self.state = StepState.CHECKED if checked else _NEXT[self.state]

    def leaves_out(self, before: int, after: int) -> bool:
        """True if a step between two others was left out."""
        schedule = self._schedule
        return schedule is not None and schedule.leaves_out_between(before, after, self._first_step)
