"""What an update uses again is told from what was cleared, by whatever means, and from what is not its own."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tspec.runtime.live.features import features
from tspec.runtime.live.updates.reused import ReusedGradients

Clear = Callable[[ReusedGradients, nn.Parameter], None]


def to_none(known: ReusedGradients, weight: nn.Parameter) -> None:
    weight.grad = None


def to_zeros(known: ReusedGradients, weight: nn.Parameter) -> None:
    assert weight.grad is not None
    weight.grad.zero_()


def unseen_zeros(known: ReusedGradients, weight: nn.Parameter) -> None:
    assert weight.grad is not None
    weight.grad.data.zero_()


def by_a_call(known: ReusedGradients, weight: nn.Parameter) -> None:
    known.cleared([weight])
    to_zeros(known, weight)


def not_at_all(known: ReusedGradients, weight: nn.Parameter) -> None:
    pass


def halved(known: ReusedGradients, weight: nn.Parameter) -> None:
    assert weight.grad is not None
    weight.grad.mul_(0.5)


def backward(known: ReusedGradients, loss: torch.Tensor) -> None:
    known.before_backward()
    loss.backward()
    known.after_backward()


def updates(clear: Clear, count: int) -> list[bool | None]:
    """Whether each of so many updates uses the gradient of a weight again; None if it is not looked at."""
    weight, known, found = nn.Parameter(torch.ones(4)), ReusedGradients(features), []
    for _ in range(count):
        backward(known, weight.square().sum())
        backward(known, weight.sum())
        used = known.of(0, [weight])
        found.append(None if used is None else used == [weight])
        known.after_update(0, [weight])
        clear(known, weight)
    return found


@pytest.mark.parametrize("clear", [to_none, to_zeros, unseen_zeros, by_a_call])
def test_cleared_gradients_are_used_once(clear: Clear) -> None:
    looked_at = [number <= 20 or number == 30 for number in range(1, 32)]
    assert updates(clear, 31) == [False if each else None for each in looked_at]


@pytest.mark.parametrize("clear", [not_at_all, halved])
def test_what_stays_is_used_again(clear: Clear) -> None:
    looked_at = [number <= 20 or number == 30 for number in range(2, 32)]
    assert updates(clear, 31) == [False, *(True if each else None for each in looked_at)]


def test_what_another_loss_adds_after_the_update_is_cleared_in_time() -> None:
    """A generator's loss goes through the discriminator, which clears what that leaves before its own pass."""
    weight, known = nn.Parameter(torch.ones(4)), ReusedGradients(features)
    for _ in range(3):
        weight.grad = None
        backward(known, weight.sum())
        assert known.of(0, [weight]) == []
        known.after_update(0, [weight])
        backward(known, weight.square().sum())


def test_an_assigned_gradient_is_new() -> None:
    weight, known = nn.Parameter(torch.ones(4)), ReusedGradients(features)
    for _ in range(3):
        backward(known, weight.square().sum())
        weight.grad = torch.ones(4)
        assert known.of(0, [weight]) == []
        known.after_update(0, [weight])


def test_what_no_pass_reaches_is_not_said() -> None:
    weight, other = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
    known = ReusedGradients(features)
    weight.grad = torch.ones(4)
    for _ in range(3):
        backward(known, other.sum())
        weight.grad.mul_(0.9)
        assert known.of(0, [weight]) == []
        known.after_update(0, [weight])


def test_nothing_is_kept_of_an_optimizer_that_is_gone() -> None:
    weight, known = nn.Parameter(torch.ones(4)), ReusedGradients(features)
    for _ in range(2):
        backward(known, weight.sum())
        known.after_update(0, [weight])
    backward(known, weight.sum())
    assert known.of(0, [weight]) == [weight]
    known.forget([0])
    assert known.of(0, [weight]) == []


@pytest.mark.parametrize("clears", [True, False])
def test_what_another_optimizer_has_used_is_used_again(clears: bool) -> None:
    """Two optimizers hold a weight, and each has a loss of its own."""
    weight, known = nn.Parameter(torch.ones(4)), ReusedGradients(features)
    backward(known, weight.sum())
    known.after_update(0, [weight])
    if clears:
        by_a_call(known, weight)
    backward(known, weight.square().sum())
    assert known.of(1, [weight]) == ([] if clears else [weight])
    assert known.of(1, [nn.Parameter(torch.ones(4))]) == []
