"""The steps in which a job's rules are checked, if not in all: the first ones, and then a part of each period."""

from __future__ import annotations

import re
from dataclasses import dataclass

FIRST = 100
"""Steps of a run that are checked in any case, from its first one on."""
_WRITTEN = re.compile(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*")


@dataclass(frozen=True, slots=True)
class StepSchedule:
    """After the first steps of a run, `length` steps of each `period` are checked: those whose
    number modulo the period is less than the length. So all ranks check the same steps.

    Raises ValueError if the length is not between 1 and the period.
    """

    length: int
    period: int
    first: int = FIRST

    def __post_init__(self) -> None:
        if not 1 <= self.length <= self.period:
            raise ValueError(
                f"{self.length}/{self.period}: at least 1 and at most {self.period} of {self.period}"
                " steps can be checked"
            )

    def __str__(self) -> str:
        return f"{self.length}/{self.period}"

    @property
    def note(self) -> str:
        """What a person has to know of a run whose rules were checked by this schedule."""
        return (
            f"rules were checked in the first {self.first} steps and then in {self.length} of each"
            f" {self.period}: other steps may violate them"
        )

    def checks(self, step: int, opened_first: int) -> bool:
        """True if a step is checked. `opened_first` is the number of the first step of the run."""
        return step < opened_first + self.first or step % self.period < self.length

    def leaves_out_between(self, before: int, after: int, opened_first: int) -> bool:
        """True if some step after one step and before another is not checked."""
        return any(not self.checks(step, opened_first) for step in range(before + 1, after))


def schedule_of(text: str) -> StepSchedule:
    """The schedule that is written `25/500`. Raises ValueError if none is."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not of the form 25/500: 25 of each 500 steps")
    return StepSchedule(int(found[1]), int(found[2]))


def canonical(text: str) -> str:
    """A schedule as it is written, without spaces; empty if it checks all steps (`1/1`). Raises ValueError if the text is
    none.
    """
    schedule = schedule_of(text)
    return "" if schedule.length == schedule.period else str(schedule)
