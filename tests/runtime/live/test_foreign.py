"""Which updates use gradients of another optimizer's loss."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.updates.foreign import LOOKED_AT, ForeignGradients


class Two:
    """Two optimizers, and what their updates say."""

    def __init__(self) -> None:
        self.known = ForeignGradients()
        self.weights = [nn.Parameter(torch.ones(3)) for _ in range(2)]
        self.made = [torch.optim.SGD([each], lr=0.1) for each in self.weights]

    def backward(self, *reached: int) -> None:
        for number, weight in enumerate(self.weights):
            self.known.before_backward(number, [weight])
        torch.stack([self.weights[each].sum() for each in reached]).prod().backward()
        self.known.after_backward((n, [weight]) for n, weight in enumerate(self.weights))

    def clear(self, number: int, to_none: bool = True, is_seen: bool = True) -> None:
        self.made[number].zero_grad(set_to_none=to_none)
        if is_seen:
            self.known.cleared([self.weights[number]])

    def update(self, number: int) -> int | None:
        self.known.before_update(number)
        self.made[number].step()
        return self.known.of(number)


@pytest.mark.parametrize("to_none", [True, False])
def test_both_losses_reach_both(to_none: bool) -> None:
    two, found = Two(), []
    for _ in range(3):
        two.clear(0, to_none)
        two.clear(1, to_none)
        two.backward(0, 1)
        found.append(two.update(0))
        two.backward(0, 1)
        found.append(two.update(1))
    assert found == [
        0,
        0,
        0,
        1,
        0,
        1,
    ]  # from the second time on it is known that the first discards


def test_gradients_that_the_script_drops_by_itself() -> None:
    two, found = Two(), []
    for _ in range(3):
        two.clear(0, is_seen=False)
        two.clear(1, is_seen=False)
        two.backward(0, 1)
        found.append(two.update(0))
        two.backward(0, 1)
        found.append(two.update(1))
    assert found[-1] == 1


def test_cleared_in_between() -> None:
    two, found = Two(), []
    for _ in range(3):
        two.clear(0)
        two.backward(0, 1)
        found.append(two.update(0))
        two.clear(1)
        two.backward(0, 1)
        found.append(two.update(1))
    assert found == [0] * 6


def test_a_part_that_two_losses_share() -> None:
    two, found = Two(), []
    for _ in range(3):
        two.clear(0)
        two.clear(1)
        two.backward(0, 1)
        found.append(two.update(0))
        two.backward(1)
        found.append(two.update(1))
    assert found == [0] * 6


def test_one_accumulates_over_more_passes() -> None:
    two, found = Two(), []
    for _ in range(3):
        two.clear(1)
        for _ in range(2):
            two.clear(0)
            two.backward(0, 1)
            found.append(two.update(0))
        found.append(two.update(1))
    assert found == [0] * 9


def test_later_updates_are_not_looked_at() -> None:
    two = Two()
    for _ in range(LOOKED_AT):
        two.clear(1)
        two.backward(1)
        assert two.update(1) == 0
    assert not two.known.is_due(1)
    assert two.update(1) is None
    two.known.forget([1])
    assert two.known.is_due(1)
