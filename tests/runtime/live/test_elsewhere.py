"""What no optimizer of a process holds is updated by another rank if it changes from update to update."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from tspec.runtime.edges import Missing
from tspec.runtime.live.features import features
from tspec.runtime.live.updates.elsewhere import ElsewhereUpdatedParameters

Change = Callable[[int, torch.Tensor], None]


def receive(after: int, weight: torch.Tensor) -> None:
    weight += 0.1


def receive_once(after: int, weight: torch.Tensor) -> None:
    if after == 1:
        weight += 0.1


def leave(after: int, weight: torch.Tensor) -> None:
    """No rank updates it."""


@pytest.mark.parametrize(
    ("change", "expected"), [(receive, True), (receive_once, True), (leave, False)]
)
def test_what_changes_between_updates_is_updated_elsewhere(change: Change, expected: bool) -> None:
    weight = nn.Parameter(torch.zeros(4, 4))
    known = ElsewhereUpdatedParameters(features)
    said: list[bool | Missing] = []
    with torch.no_grad():
        for number in range(1, 5):
            assert known.is_due(0)
            known.before_update(0, [weight])
            said.append(known.of(weight))
            change(number, weight)
    assert said == [Missing.NOT_RECORDED, *[expected] * 3]


def test_optimizers_are_told_apart() -> None:
    """What one optimizer updates between two updates of another would be said to move."""
    weight = nn.Parameter(torch.zeros(3))
    known = ElsewhereUpdatedParameters(features)
    known.before_update(0, [weight])
    known.before_update(1, [])
    assert known.of(weight) is Missing.NOT_RECORDED
    known.before_update(0, [weight])
    assert known.of(weight) is False


def test_later_updates_are_looked_at_two_in_a_row() -> None:
    known = ElsewhereUpdatedParameters(features)
    due = [number for number in range(1, 52) if known.is_due(0)]
    assert due == [*range(1, 22), 30, 31, 40, 41, 50, 51]
