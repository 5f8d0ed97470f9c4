"""Targets of Q-learning to which gradients flow."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tspec.runtime.live.losses.bootstrapped import moving_targets

NET = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
OLD = copy.deepcopy(NET)
HERE, NEXT = torch.randn(16, 4), torch.randn(16, 4)
VALUE = NET(HERE).gather(1, torch.randint(3, (16, 1))).squeeze(1)
REWARD, GOES_ON = torch.rand(16), torch.randint(2, (16,))


@pytest.mark.parametrize(
    "later",
    [
        NET(NEXT).max(1)[0],
        NET(NEXT).amax(1),
        NET(NEXT).max(dim=1, keepdim=True).values.squeeze(-1),
        NET(NEXT).gather(1, OLD(NEXT).argmax(1, keepdim=True)).squeeze(1),
    ],
)
def test_targets_with_a_gradient(later: torch.Tensor) -> None:
    for target in (REWARD + 0.9 * later * GOES_ON, REWARD + 0.9 * GOES_ON * later):
        for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.l1_loss):
            assert moving_targets(loss(VALUE, target)) == 1
        assert moving_targets((target - VALUE).square().mean()) == 1
        error = VALUE - target
        assert moving_targets((error * error * torch.rand(16)).mean()) == 1
        assert moving_targets(F.mse_loss(VALUE, target.detach())) == 0


def test_targets_of_another_network() -> None:
    target = REWARD + 0.9 * OLD(NEXT).max(1)[0]
    assert moving_targets(F.mse_loss(VALUE, target)) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NET(HERE), NET(NEXT)),  # two views that are to agree
        (NET(HERE), 0.5 + 2 * NET(NEXT)),  # two views, one of which was scaled
        (NET(HERE).amax(1), NET(NEXT).amax(1)),
        (NET(HERE).amax(1), 1 - NET(NEXT).amax(1)),  # a margin
        (VALUE, NET(HERE).mean(1) + 0.5 * NET(HERE).amax(1)),  # an advantage
    ],
)
def test_differences_between_outputs_of_one_network(one: torch.Tensor, other: torch.Tensor) -> None:
    assert moving_targets(F.mse_loss(one, other)) == 0
    assert moving_targets((one - other).square().mean()) == 0


def test_margins() -> None:
    right, wrong = 30 * VALUE, 0.2 + 30 * NET(HERE).max(1)[0]
    assert moving_targets((wrong - right).relu().mean()) == 0
    assert moving_targets((wrong - right).clamp(min=0).square().mean()) == 0
    assert moving_targets((0.5 * (wrong - right)).relu().mean()) == 0
