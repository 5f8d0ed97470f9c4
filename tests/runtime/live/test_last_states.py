"""Losses that use the state of a recurrent layer after padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tspec.runtime.live.losses.last_states import LastStates
from tspec.runtime.live.losses.padding import PaddingMasks
from tspec.runtime.live.losses.tokens import TokenHistory

LENGTHS = torch.tensor([3, 5, 6, 9])
AFTER = torch.arange(12) >= LENGTHS[:, None]
WORDS = torch.arange(2, 50).reshape(4, 12)
TEXT = WORDS.masked_fill(AFTER, 1)


def states_of(*texts: torch.Tensor) -> LastStates:
    tokens = TokenHistory()
    for text in texts:
        tokens.given(text)
    return LastStates(PaddingMasks(tokens))


def ends_in_padding(layer: nn.GRU, read: Any, *texts: torch.Tensor) -> bool:
    """What is said of a call after one of a shorter batch."""
    states, shorter = states_of(*texts), torch.randn(4, 5, 8)
    assert not states.ends_in_padding(layer, shorter, layer(shorter))
    return states.ends_in_padding(layer, read, layer(read))


def given(first: bool) -> torch.Tensor:
    """Embeddings of `TEXT`: `[4, 12, 8]`, or `[12, 4, 8]`."""
    return torch.randn(4, 12, 8) if first else torch.randn(12, 4, 8)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_what_is_used_of_a_layer_that_reads_padding(kind: type[nn.LSTM], first: bool) -> None:
    layer = kind(8, 4, num_layers=2, batch_first=first)
    places = 1 if first else 0

    def used(of: str) -> bool | None:
        found, read = states_of(TEXT), given(first)
        shorter = read.narrow(places, 0, 10)
        assert not found.ends_in_padding(layer, shorter, layer(shorter))
        outputs, states = result = layer(read)
        assert found.ends_in_padding(layer, read, result)
        state = states[0] if isinstance(states, tuple) else states
        losses = {
            "state": state[-1],
            "last": outputs.select(places, -1),
            "eleventh": outputs.select(places, 11),
            "first": outputs.select(places, 0),
            "all": outputs,
            "feature": outputs[..., -1],
            "gathered": outputs.gather(places, torch.full_like(outputs[:1], 3).long()),
        }
        answer = found.uses_state_after_padding(losses[of].sum())
        assert found.uses_state_after_padding(losses[of].sum()) is None
        return answer

    assert [of for of in ("state", "last", "eleventh") if not used(of)] == []
    assert [of for of in ("first", "all", "feature", "gathered") if used(of)] == []


def test_what_ends_in_no_padding() -> None:
    layer = nn.GRU(8, 4, batch_first=True)
    read = given(True)
    of_one_length = states_of(TEXT)
    for _ in range(3):
        assert not of_one_length.ends_in_padding(layer, read, layer(read))
    packed = nn.utils.rnn.pack_padded_sequence(read, LENGTHS, True, enforce_sorted=False)
    assert ends_in_padding(layer, read, TEXT)
    assert not ends_in_padding(layer, packed, TEXT)
    assert not ends_in_padding(layer, read, TEXT.flip(1))
    assert not ends_in_padding(layer, read, WORDS)
    assert not ends_in_padding(layer, read, TEXT, WORDS)
    assert not ends_in_padding(layer, read, TEXT[:, :11])
    assert not ends_in_padding(layer, read[0], TEXT)
    with torch.no_grad():
        assert not ends_in_padding(layer, read, TEXT)
    quiet = states_of(TEXT)
    assert quiet.uses_state_after_padding(layer(read)[1].sum()) is None
