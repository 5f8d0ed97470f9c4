"""Passes over a loader are compared by the samples that they draw first."""

import pytest
import torch

from tspec.runtime.live.samples.orders import MOST, SampleOrders


class Thing:
    """A loader, or one of its iterators."""


def verdicts(*passes) -> list[bool | None]:
    """What is known after each pass of a loader drew these indices."""
    orders, loader, found = SampleOrders(), Thing(), []
    for indices in passes:
        iterator = Thing()
        orders.begins(iterator)
        for index in indices:
            orders.draws(loader, iterator, index)
        found.append(orders.same_order(iterator))
        assert orders.same_order(iterator) is None
    return found


ORDER = list(range(12))


def test_passes_that_begin_alike() -> None:
    assert verdicts(ORDER, ORDER, ORDER[::-1], ORDER) == [None, True, False, False]


def test_batches_of_any_kind_are_lists_of_samples() -> None:
    tensors = [torch.tensor(ORDER[:6]), torch.tensor(ORDER[6:]).numpy()]
    assert verdicts(ORDER, [ORDER[:6], tuple(ORDER[6:])], tensors) == [None, True, True]
    names = [f"{number}.png" for number in ORDER]
    assert verdicts(names, names) == [None, True]


@pytest.mark.parametrize("few", [[0, 1, 2], [0, 1] * 20, [None] * 20])
def test_too_few_samples_and_streams_tell_nothing(few) -> None:
    assert verdicts(few, few) == [None, None]


def test_few_samples_that_are_drawn_again_and_again_are_not_kept() -> None:
    few = [0, 1] * MOST
    assert verdicts([*few, *ORDER], [*few, *ORDER]) == [None, None]


def test_a_short_pass_between_two_is_left_out() -> None:
    assert verdicts(ORDER, ORDER[:3], ORDER) == [None, None, True]


def test_another_training_in_the_same_order() -> None:
    orders, loader = SampleOrders(), Thing()
    for _ in range(2):
        iterator = Thing()
        orders.forget()
        orders.begins(iterator)
        orders.draws(loader, iterator, ORDER)
        assert orders.same_order(iterator) is None
