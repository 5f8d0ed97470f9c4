"""States of recurrent layers that begin a call."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tspec.runtime.live.samples.carried import CarriedStates

READ = torch.randn(4, 6, 8)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_state_that_goes_on_is_told_from_others(kind: type[nn.LSTM]) -> None:
    layer, other, states = (
        kind(8, 5, batch_first=True),
        kind(8, 5, batch_first=True),
        CarriedStates(),
    )

    def begins(of: nn.LSTM, given: object) -> tuple[bool, object]:
        result = of(READ, given)
        return states.begins_with_last_state(of, given, result), result[1]

    zeros, last = begins(layer, None)
    assert not zeros
    detached = tuple(each.detach() for each in last) if isinstance(last, tuple) else last.detach()
    carried, after = begins(layer, detached)
    assert carried
    assert not begins(layer, detached)[0]  # the state before the last
    assert not begins(other, after)[0]
    assert not begins(layer, None)[0]


def test_a_state_of_zeros_goes_on_from_nothing() -> None:
    layer, states = nn.GRU(8, 5, batch_first=True), CarriedStates()
    zeros = torch.zeros(1, 4, 5)
    assert not states.begins_with_last_state(layer, None, (READ, zeros))
    assert not states.begins_with_last_state(layer, zeros, (READ, zeros))


def test_another_batch_has_a_state_of_its_own() -> None:
    layer, states = nn.GRU(8, 5, batch_first=True), CarriedStates()
    state = torch.randn(1, 4, 5)
    assert not states.begins_with_last_state(layer, None, (READ, state))
    assert not states.begins_with_last_state(layer, state[:, :2], (READ, state))
