"""The factors by which a `LambdaLR` multiplies its base rates, over the whole run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from torch.optim.lr_scheduler import LambdaLR

_MANY = 1000
"""So many steps of a schedule without a change: no warm-up is as long."""
_EQUAL = 1e-6
"""Relative difference of two equal numbers, after round-off."""


@dataclass(slots=True)
class _Factors:
    """The factors of one schedule."""

    highest: float
    steps: int = 0
    since: int = 0
    """Steps after the highest factor rose."""


class ScheduleFactors:
    """Follows the factors of each `LambdaLR` that is stepped from its start."""

    def __init__(self) -> None:
        self._factors: WeakKeyDictionary[Any, _Factors] = WeakKeyDictionary()

    def highest_factor(self, scheduler: Any) -> float | None:
        """The highest factor of all groups up to now.

        None while it may still rise: it is constant, or rose in the second half of the steps. A
        constant factor counts as the highest one after a thousand steps, or if it is the base rate
        itself. None for other schedules and for those that go on from a checkpoint.
        """
        if not isinstance(scheduler, LambdaLR):
            return None
        known = self._factors.setdefault(scheduler, _Factors(-1.0))
        rates, bases = getattr(scheduler, "_last_lr", ()), list(map(float, scheduler.base_lrs))
        factors = [float(rate) / base for rate, base in zip(rates, bases, strict=False) if base]
        if not factors or scheduler.last_epoch != known.steps:
            return None  # it is under construction, or goes on
        factor = max(factors)
        known.steps += 1
        if factor > known.highest * (1 + _EQUAL):
            known.highest, known.since = factor, 0
            return None
        known.since += 1
        fell = factor < known.highest * (1 - _EQUAL)
        is_base = all(abs(factor - base) <= _EQUAL * abs(base) for base in bases)
        stays = known.since >= _MANY or is_base
        if known.since < 2 or 2 * known.since < known.steps or not (fell or stays):
            return None
        return known.highest
