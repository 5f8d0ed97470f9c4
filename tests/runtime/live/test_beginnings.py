"""Averages are compared with their weights when they first move."""

import pytest
import torch

from tspec.runtime.live.updates.beginnings import UPDATES, AverageBeginnings, may_be_average


def weights(seed, shape=(16, 16)):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def found(average, weight, move, updates=3, other=None):
    """How often an average is found to begin apart: `move` changes it after each update."""
    beginnings, times = AverageBeginnings(), 0
    of = [weight] if other is None else [other, weight]
    for _ in range(updates):
        assert beginnings.is_due(1)
        beginnings.before_update(1, [(average, of)])
        times += len(beginnings.of(1))
        weight.add_(0.01 * torch.randn_like(weight))
        move(average, weight)
    return times


def follow(average, weight):
    average.lerp_(weight, 0.01)


def test_an_average_of_other_weights_is_found_once():
    assert found(weights(1), weights(2), follow) == 1


def test_it_is_found_also_beside_a_model_that_it_does_not_follow():
    assert found(weights(1), weights(2), follow, other=weights(3)) == 1


def test_a_copy_is_sound():
    assert found(weights(1), weights(1), follow) == 0


@pytest.mark.parametrize(
    "begin, move",
    [
        (torch.zeros(16, 16), follow),
        (weights(1), lambda average, weight: average.copy_(weight)),
        (weights(1), lambda average, weight: average.add_(0.01 * torch.randn_like(average))),
        (weights(1), lambda average, weight: None),
        (weights(1), lambda average, weight: average.lerp_(weight, -0.01)),
    ],
    ids=["zeros", "copied", "elsewhere", "frozen", "away"],
)
def test_what_does_not_follow_or_begins_with_zeros_is_left_out(begin, move):
    assert found(begin.clone(), weights(2), move) == 0


def test_an_average_of_a_layer_that_began_with_zeros_is_sound_if_it_is_found_late():
    """It is found when it has moved once, and is far shorter than the weights by then."""
    weight = 0.01 * weights(1)
    assert found(0.05 * weight, weight, follow) == 0


def test_later_updates_are_not_looked_at():
    beginnings = AverageBeginnings()
    assert [beginnings.is_due(7) for _ in range(UPDATES + 1)] == [True] * UPDATES + [False]
    beginnings.forget([7])
    assert beginnings.of(7) == []


@pytest.mark.parametrize("shape, is_one", [((8, 8), True), ((64,), False), ((4, 4), False)])
def test_only_matrices_of_some_size_are_compared(shape, is_one):
    assert may_be_average(torch.zeros(shape)) is is_one
    assert not may_be_average(torch.zeros(shape, dtype=torch.int64))
