"""What a script takes back a part of the way is told from what it writes otherwise."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tspec.runtime.live.updates.interpolated import InterpolatedParameters

Change = Callable[[int, torch.Tensor, torch.Tensor], None]
"""Of the number of the update, the weight, and what it was when this was last called to any effect."""


def lookahead(after: int, weight: torch.Tensor, kept: torch.Tensor) -> None:
    if after % 5 == 0:
        weight.copy_(kept.lerp(weight, 0.5))


def seldom(after: int, weight: torch.Tensor, kept: torch.Tensor) -> None:
    if after % 20 == 0:
        weight.copy_(kept.lerp(weight, 0.2))


def shrink(after: int, weight: torch.Tensor, kept: torch.Tensor) -> None:
    if after % 5 == 0:
        weight.mul_(0.9)


def put_back(after: int, weight: torch.Tensor, kept: torch.Tensor) -> None:
    if after % 5 == 0:
        weight.copy_(kept)


def lookahead_and_shrink(after: int, weight: torch.Tensor, kept: torch.Tensor) -> None:
    lookahead(after, weight, kept)
    if after == 22:
        weight.mul_(0.9)


def nothing(after: int, weight: torch.Tensor, kept: torch.Tensor) -> None:
    pass


def interpolated(change: Change, asked: int) -> bool:
    """Whether a weight that an optimizer moved 60 times is said to be interpolated, if that is asked after every `asked` updates."""
    torch.manual_seed(0)
    weight, bias = nn.Parameter(torch.randn(16, 16)), nn.Parameter(torch.zeros(3))
    known, kept, said = InterpolatedParameters(), weight.detach().clone(), False
    with torch.no_grad():
        for number in range(1, 61):
            known.before_update(0, [weight, bias])
            weight += 0.01 * torch.randn(16, 16)
            known.after_update(0)
            left = weight.clone()
            change(number, weight, kept)
            if not torch.equal(left, weight):
                kept.copy_(weight)
            if number % asked == 0:
                said, other = known.of([weight, bias])
                assert said == other
    return said


@pytest.mark.parametrize("asked", [1, 10, 60])
@pytest.mark.parametrize("change", [lookahead, seldom])
def test_what_goes_back_a_part_of_the_way_is_interpolated(change: Change, asked: int) -> None:
    assert interpolated(change, asked)


@pytest.mark.parametrize("asked", [1, 10, 60])
@pytest.mark.parametrize("change", [shrink, put_back, lookahead_and_shrink, nothing])
def test_what_is_written_otherwise_is_not(change: Change, asked: int) -> None:
    assert not interpolated(change, asked)


def test_nothing_is_kept_of_an_optimizer_that_is_gone() -> None:
    weight, known = nn.Parameter(torch.randn(4, 4)), InterpolatedParameters()
    known.before_update(0, [weight])
    known.after_update(0)
    known.forget([0])
    assert known.of([weight]) == [False]
