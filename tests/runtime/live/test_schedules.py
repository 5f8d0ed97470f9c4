"""The part of a schedule's steps after its last change of a learning rate."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.optim.lr_scheduler import ConstantLR, LambdaLR, LRScheduler, StepLR

from tspec.runtime.live.updates.schedules import ScheduleProgress

STEPS = 60


def idle(build: Callable[[torch.optim.Optimizer], LRScheduler], steps: int = STEPS) -> float | None:
    """What is known at the last step."""
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    schedule, progress, found = build(optimizer), ScheduleProgress(), None
    for _ in range(steps):
        optimizer.step()
        found = progress.idle_part(schedule)
        schedule.step()
    return found


def test_a_schedule_that_ends_early() -> None:
    found = idle(lambda o: LambdaLR(o, lambda step: max(1 - step / 20, 0.1)))
    assert found is not None
    assert 0.6 < found < 0.75


def test_a_schedule_that_ends_with_the_run() -> None:
    assert idle(lambda o: LambdaLR(o, lambda step: 1 - step / STEPS)) == 0


def test_schedules_that_are_not_judged() -> None:
    assert idle(lambda o: LambdaLR(o, lambda step: min(step / 20, 1.0))) is None  # a warm-up
    assert idle(lambda o: StepLR(o, 20)) is None
    assert idle(lambda o: ConstantLR(o, 0.5, 10)) is None
    assert idle(lambda o: LambdaLR(o, lambda step: max(1 - step / 20, 0.1)), steps=30) is None
