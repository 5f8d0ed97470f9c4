"""Passes whose gradients are cleared before the update are told from those that were used on the way."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.updates.dropped import LOOKED_AT, DroppedPasses


class Job:
    """Makes updates of two passes, as a listener would tell of them."""

    def __init__(self):
        torch.manual_seed(0)
        self.weight, self.known = nn.Parameter(torch.ones(4)), DroppedPasses()

    def backward(self):
        self.known.before_backward()
        (self.weight * torch.randn(4)).sum().backward()
        if self.known.is_due(0):
            self.known.after_backward(0, [self.weight])

    def clear(self):
        self.known.cleared([self.weight])
        self.weight.grad.zero_()

    def update(self):
        self.known.before_update(0)
        found = self.known.of(0)
        self.known.after_update(0)
        self.weight.grad = None
        return found

    def dropped(self, between, after=lambda weight: None, updates=3):
        """What is said of each update, where something is done between its passes and something after them."""
        found = []
        for _ in range(updates):
            self.backward()
            between(self)
            self.backward()
            after(self.weight)
            found.append(self.update())
        return found


def to_none(job):
    job.weight.grad = None


def kept(job):
    pass


def moved(job):
    job.weight.data.sub_(0.1 * job.weight.grad)
    job.clear()


@pytest.mark.parametrize("between", [Job.clear, to_none])
def test_passes_that_are_cleared_are_dropped_from_the_second_update_on(between):
    assert Job().dropped(between) == [0, 1, 1]


@pytest.mark.parametrize("between", [kept, moved])
def test_passes_that_are_used_are_not_dropped(between):
    assert Job().dropped(between) == [0, 0, 0]


def scaled(weight):
    weight.grad.mul_(0.1)


def added_in_place(weight):
    weight.grad.add_(torch.randn(4))


def added(weight):
    weight.grad = weight.grad + torch.randn(4)


def test_gradients_that_are_clipped_are_those_of_the_last_pass():
    assert Job().dropped(Job.clear, scaled) == [0, 1, 1]


@pytest.mark.parametrize("after", [added_in_place, added])
def test_gradients_that_the_script_kept_are_used(after):
    assert Job().dropped(Job.clear, after) == [0, 0, 0]


def test_clearing_after_an_update_drops_nothing():
    job = Job()
    for _ in range(3):
        job.backward()
        assert job.update() == 0


def test_passes_within_an_update_belong_to_no_later_one():
    job = Job()
    for _ in range(3):
        job.known.before_update(0)
        for _ in range(3):
            job.backward()
            job.clear()
        assert job.known.of(0) == 0
        job.known.after_update(0)


def test_the_first_updates_are_looked_at():
    looked_at = [0, *[1] * (LOOKED_AT - 1)]
    assert Job().dropped(Job.clear, updates=LOOKED_AT + 2) == [*looked_at, None, None]


def test_what_is_known_of_an_optimizer_that_is_gone_is_forgotten():
    job = Job()
    job.dropped(Job.clear)
    job.known.forget([0])
    assert job.known.of(0) == 0
