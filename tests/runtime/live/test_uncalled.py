"""Models that the loop does not call are found by what is written to their parameters between updates."""

import torch
from torch import nn

from tspec.runtime.live.updates.uncalled import UPDATES, UncalledModels


def test_a_model_that_is_written_to_between_updates_is_found() -> None:
    known = UncalledModels()
    average, idle = nn.Linear(4, 4), nn.Linear(4, 4)
    with torch.no_grad():
        average.weight.mul_(0.5)
    assert known.changed([average, idle]) == []
    with torch.no_grad():
        average.bias.mul_(0.5)
    assert known.changed([average, idle]) == [average.weight]
    assert known.changed([average, idle]) == []


def test_modules_without_parameters_and_those_of_inference_are_left_out() -> None:
    known = UncalledModels()
    with torch.inference_mode():
        frozen = nn.Linear(2, 2)
    for _ in range(2):
        assert known.changed([nn.ReLU(), nn.Linear(2, 2, bias=False), frozen]) == []


def test_only_the_first_updates_are_looked_at() -> None:
    known = UncalledModels()
    assert [known.is_due() for _ in range(UPDATES + 2)] == [True] * UPDATES + [False, False]
