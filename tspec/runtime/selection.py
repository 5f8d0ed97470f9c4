"""The steps of a run in which a checker takes calls, by a schedule of steps."""

from __future__ import annotations

from enum import Enum, auto

from tspec.schedule import StepSchedule


class StepState(Enum):
    """The state of the step that is open."""

    CHECKED = auto()
    ENDS = auto()
    """The step that opens at this boundary is left out; windows of the step before still close."""
    FIRST_LEFT_OUT = auto()
    """The first of the steps that are left out; its opening boundary is over."""
    SECOND_LEFT_OUT = auto()
    """The second of them. As it opens, the ranks decide for the last time before the next checked step."""
    LEFT_OUT = auto()
    """A later one."""


OUT = frozenset({StepState.FIRST_LEFT_OUT, StepState.SECOND_LEFT_OUT, StepState.LEFT_OUT})
_NEXT = {
    StepState.CHECKED: StepState.ENDS,
    StepState.ENDS: StepState.SECOND_LEFT_OUT,
    StepState.FIRST_LEFT_OUT: StepState.SECOND_LEFT_OUT,
    StepState.SECOND_LEFT_OUT: StepState.LEFT_OUT,
    StepState.LEFT_OUT: StepState.LEFT_OUT,
}
"""The state of a step -> that of the next one, if that one is left out."""


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
