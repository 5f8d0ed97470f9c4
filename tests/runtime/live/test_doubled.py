"""Which parameters two optimizers move by one gradient."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.updates.doubled import UPDATES, DoubledUpdates


class Optimizers:
    """Two that hold one weight, and what each update says."""

    def __init__(self) -> None:
        self.known = DoubledUpdates()
        self.weight = nn.Parameter(torch.ones(3))
        self.made = [torch.optim.SGD([self.weight], lr=0.1, momentum=0.9) for _ in range(2)]

    def backward(self) -> None:
        self.weight.square().sum().backward()

    def update(self, number: int) -> bool | None:
        self.known.before_update(number, [self.weight])
        self.made[number].step()
        doubled = self.known.of(number)
        self.known.after_update(number)
        return None if doubled is None else doubled != []


@pytest.mark.parametrize("to_none", [True, False])
def test_one_gradient_and_one_for_each(to_none: bool) -> None:
    two = Optimizers()
    for _ in range(3):
        two.backward()
        assert (two.update(0), two.update(1)) == (False, True)
        two.made[0].zero_grad(set_to_none=to_none)
        two.backward()
        assert two.update(0) is False
        two.made[0].zero_grad(set_to_none=to_none)
        two.backward()
        assert two.update(1) is False
        two.made[0].zero_grad(set_to_none=to_none)


def test_a_pass_adds_in_between() -> None:
    two = Optimizers()
    two.backward()
    assert two.update(0) is False
    two.backward()
    assert two.update(1) is False


def test_the_same_optimizer_twice() -> None:
    two = Optimizers()
    two.backward()
    assert (two.update(0), two.update(0)) == (False, False)


def test_an_optimizer_that_calls_another() -> None:
    two = Optimizers()
    for _ in range(2):
        two.backward()
        two.known.before_update(0, [two.weight])
        assert two.update(1) is False
        two.weight.data.add_(1)
        assert two.known.of(0) == []
        two.known.after_update(0)
    two.backward()
    assert two.update(0) is False


def test_one_that_leaves_the_parameter_as_it_is() -> None:
    two = Optimizers()
    two.backward()
    two.known.before_update(0, [two.weight])
    assert two.weight.grad is not None
    two.weight.grad.data.mul_(2)
    two.known.after_update(0)
    assert two.update(1) is False


def test_later_updates_are_not_looked_at() -> None:
    two = Optimizers()
    for _ in range(UPDATES):
        two.backward()
        two.update(0)
    two.backward()
    assert (two.update(0), two.update(1)) == (None, False)


def test_optimizers_that_are_gone() -> None:
    two = Optimizers()
    two.backward()
    two.update(0)
    two.known.forget([0])
    assert two.update(1) is False
