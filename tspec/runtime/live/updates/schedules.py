"""Counts the steps of a schedule that changed its learning rates, and those after the last change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

_FEW = 40
"""A schedule of fewer steps is not judged."""
_OFTEN = 0.8
"""A schedule that changes the rates in at least this part of its steps goes by updates, and not by epochs."""


@dataclass(slots=True)
class _Progress:
    """The steps of one schedule."""

    rates: list[float]
    """The learning rates after the latest step."""
    highest: float
    steps: int = 0
    changes: int = 0
    since: int = 0
    """Steps after the last change."""


class ScheduleProgress:
    """Follows the learning rates that schedules set."""

    def __init__(self) -> None:
        self._progress: WeakKeyDictionary[Any, _Progress] = WeakKeyDictionary()

    def idle_part(self, scheduler: Any) -> float | None:
        """The part of a schedule's steps up to now that came after its last change of a learning rate.

        None for schedules of few steps, for those that changed the rates in few of their steps,
        such as those of epochs, and while a rate is the highest one, as after a warm-up.
        """
        rates = getattr(scheduler, "_last_lr", None)
        if not isinstance(rates, list) or not all(isinstance(each, float) for each in rates):
            return None
        highest = max(rates, default=0.0)
        known = self._progress.setdefault(scheduler, _Progress(rates, highest))
        known.steps += 1
        known.highest = max(known.highest, highest)
        if rates == known.rates:
            known.since += 1
        else:
            known.rates, known.since = rates, 0
            known.changes += 1
        often = known.changes >= _OFTEN * (known.steps - known.since)
        if known.steps < _FEW or not often or highest == known.highest:
            return None
        return known.since / known.steps
