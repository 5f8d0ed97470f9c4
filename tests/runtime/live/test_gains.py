"""Losses of policies that take one of two gains."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tspec.runtime.live.losses.gains import takes_larger_gain

LOGS = torch.randn(16, requires_grad=True)
ADVANTAGES = torch.randn(16)

Choice = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LOSSES: dict[str, tuple[Callable[[Choice], torch.Tensor], Choice]] = {
    "negative gains": (lambda choose: -choose(*gains()).mean(), torch.minimum),
    "losses": (lambda choose: choose(*(-gain for gain in gains())).mean(), torch.maximum),
    "elementwise": (lambda choose: -choose(*gains()).mean(), torch.min),
    "with an entropy": (
        lambda choose: -choose(*gains()).mean() - 0.01 * LOGS.square().sum(),
        torch.minimum,
    ),
}
"""A loss by how it chooses, and the right choice."""
OTHER = {torch.minimum: torch.maximum, torch.maximum: torch.minimum, torch.min: torch.max}


def gains() -> tuple[torch.Tensor, torch.Tensor]:
    ratio = (LOGS - LOGS.detach()).exp()
    return ratio * ADVANTAGES, ratio.clamp(0.8, 1.2) * ADVANTAGES


@pytest.mark.parametrize("form", LOSSES)
def test_which_gain_counts(form: str) -> None:
    loss, right = LOSSES[form]
    assert takes_larger_gain(loss(right)) is False
    assert takes_larger_gain(loss(OTHER[right])) is True


def test_other_choices_are_no_gains() -> None:
    plain, clamped = gains()
    ratio = (LOGS - LOGS.detach()).exp()
    for chosen in (
        torch.maximum(plain, 2 * plain),
        torch.maximum(plain, LOGS.exp() * ADVANTAGES),
        torch.maximum(clamped, ratio.clamp(0.9, 1.1) * ADVANTAGES),
        torch.maximum(plain, torch.zeros(16)),
        plain,
    ):
        assert takes_larger_gain(-chosen.mean()) is None
