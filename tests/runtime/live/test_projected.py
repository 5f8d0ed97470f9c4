"""What a script changes after each update is told from what it changes once, or now and then."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tspec.runtime.live.features import features
from tspec.runtime.live.updates.projected import ProjectedParameters

Change = Callable[[int, torch.Tensor], None]


def clip(after: int, weight: torch.Tensor) -> None:
    weight.clamp_(-0.5, 0.5)


def keep_within(after: int, weight: torch.Tensor) -> None:
    """Does nothing as long as the weight is small."""
    weight.renorm_(2, 0, 3.0)


def write_once(after: int, weight: torch.Tensor) -> None:
    if after == 7:
        weight.mul_(2)


def write_after_each_epoch(after: int, weight: torch.Tensor) -> None:
    if after % 21 == 0:
        weight.mul_(2)


def write_twice(after: int, weight: torch.Tensor) -> None:
    if after in (3, 4):
        weight.mul_(2)


def projected(change: Change) -> bool:
    """Whether a weight that grows by 0.1 in each of 100 updates is said to be projected."""
    weight, other = nn.Parameter(torch.zeros(4, 4)), nn.Parameter(torch.zeros(20))
    known = ProjectedParameters(features)
    with torch.no_grad():
        for number in range(1, 101):
            known.before_update(0, [weight, other])
            weight += 0.1
            known.after_update(0, [weight, other])
            change(number, weight)
    assert other not in known
    return weight in known


@pytest.mark.parametrize("change", [clip, keep_within])
def test_what_is_changed_after_every_update_is_projected(change: Change) -> None:
    assert projected(change)


@pytest.mark.parametrize("change", [write_once, write_twice, write_after_each_epoch])
def test_what_is_changed_now_and_then_is_not(change: Change) -> None:
    assert not projected(change)


@pytest.mark.parametrize("clips", [True, False])
def test_what_another_optimizer_changes_is_not(clips: bool) -> None:
    weight, known = nn.Parameter(torch.zeros(4, 4)), ProjectedParameters(features)
    with torch.no_grad():
        for number in range(1, 101):
            for optimizer in range(2):
                known.before_update(optimizer, [weight])
                weight += 0.1
                known.after_update(optimizer, [weight])
            if clips:
                clip(number, weight)
    assert (weight in known) == clips


def test_nothing_is_kept_of_an_optimizer_that_is_gone() -> None:
    weight = nn.Parameter(torch.zeros(4, 4))
    known = ProjectedParameters(features)
    with torch.no_grad():
        for number in range(1, 5):
            known.before_update(0, [weight])
            weight += 0.1
            known.after_update(0, [weight])
            weight.mul_(0.5)
            if number == 2:
                known.forget([0])
    assert weight not in known


def test_a_small_parameter_counts_with_the_others_of_its_optimizer() -> None:
    """Clipping reaches a bias later than the weights."""
    weight, bias = nn.Parameter(torch.zeros(4, 4)), nn.Parameter(torch.zeros(4))
    known = ProjectedParameters(features)
    with torch.no_grad():
        for _ in range(10):
            known.before_update(0, [weight, bias])
            weight += 0.3
            known.after_update(0, [weight, bias])
            weight.clamp_(-0.5, 0.5)
    assert weight in known and bias in known
