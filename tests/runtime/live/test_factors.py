"""The highest factor of a `LambdaLR`, where it may no longer rise."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, StepLR

from tspec.runtime.live.updates.factors import ScheduleFactors

STEPS = 60


def found(build: Callable[[torch.optim.Optimizer], LRScheduler], rate: float) -> list[float | None]:
    """What is known before each step of the schedule."""
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=rate)
    schedule, factors, known = build(optimizer), ScheduleFactors(), []
    for _ in range(STEPS):
        optimizer.step()
        known.append(factors.highest_factor(schedule))
        schedule.step()
    return known


def cosine(step: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * step / STEPS))


@pytest.mark.parametrize(
    ("function", "rate", "highest"),
    [
        (lambda step: 1e-3 * cosine(step), 1e-3, 1e-3),
        (lambda step: 1e-3 * 0.9**step, 1e-3, 1e-3),
        (lambda step: 3e-4 * min((step + 1) / 10, 1 - (step - 9) / 60), 1e-3, 3e-4),
        (lambda step: 1e-3, 1e-3, 1e-3),  # the base rate itself
        (cosine, 1e-3, 1.0),
        (lambda step: 64**-0.5 * min((step + 1) ** -0.5, (step + 1) * 8**-1.5), 1.0, 1 / 512**0.5),
    ],
)
def test_factors_that_fall(function: Callable[[int], float], rate: float, highest: float) -> None:
    known = found(lambda o: LambdaLR(o, function), rate)[-1]
    assert known == pytest.approx(highest)


@pytest.mark.parametrize(
    "function",
    [
        lambda step: step / 10_000,  # a warm-up of a longer run
        lambda step: min(step, 90 - step) / 10_000,  # it rose for longer than it falls
        lambda step: 0.01,  # a constant warm-up
        lambda step: step // 100 / 100,
        lambda step: max(
            0.002 * (1 - step / 20), 0.001 * (step - 20)
        ),  # it falls, and rises higher
    ],
)
def test_factors_that_may_still_rise(function: Callable[[int], float]) -> None:
    assert found(lambda o: LambdaLR(o, function), 1e-3)[-1] is None


def test_schedules_that_are_not_judged() -> None:
    assert set(found(lambda o: StepLR(o, 1, 0.1), 1e-3)) == {None}
    assert set(found(lambda o: LambdaLR(o, lambda step: 0.9**step), 0.0)) == {None}


def test_a_schedule_under_construction() -> None:
    known, factors = [], ScheduleFactors()

    class Stepped(LambdaLR):
        def step(self, epoch: int | None = None) -> None:
            known.append(factors.highest_factor(self))
            super().step(epoch)

    found(lambda o: Stepped(o, lambda step: 1e-3 * cosine(step)), 1e-3)
    assert known[0] is None
    assert known[-1] == pytest.approx(1e-3)


def test_the_end_of_a_decay_that_goes_on() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=1e-3)
    schedule = LambdaLR(optimizer, lambda step: 0.9**step)
    schedule.load_state_dict(schedule.state_dict() | {"last_epoch": 100})
    factors = ScheduleFactors()
    for _ in range(STEPS):
        assert factors.highest_factor(schedule) is None
        optimizer.step()
        schedule.step()
