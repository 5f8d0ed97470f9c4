"""Masks before a softmax that leave what they hide a weight."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tspec.runtime.live.losses.masked import weak_masks

HIDES = torch.arange(6) >= torch.tensor([[3], [5], [6], [2]])
"""Of four sequences of at most six tokens, one without padding."""
SHOWS = (~HIDES).float()


def scores() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(4, 6, requires_grad=True) * 3


WEAK: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zero": lambda x: x.masked_fill(HIDES, 0.0),
    "small": lambda x: x.masked_fill(HIDES, -1e-9),
    "large": lambda x: x.masked_fill(HIDES, 1e9),
    "where": lambda x: torch.where(HIDES, 0.0, x),
    "where not": lambda x: torch.where(~HIDES, x, torch.zeros(())),
    "scaled": lambda x: x.masked_fill(HIDES, 0.0) / 2,
    "product": lambda x: x * SHOWS,
    "product from the left": lambda x: SHOWS * x,
}
STRONG: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "infinite": lambda x: x.masked_fill(HIDES, -torch.inf),
    "least": lambda x: x.masked_fill(HIDES, torch.finfo(torch.float32).min),
    "a thousand": lambda x: x.masked_fill(HIDES, -1e3),
    "where": lambda x: torch.where(HIDES, -1e9, x),
    "added": lambda x: x + torch.zeros(4, 6).masked_fill(HIDES, -torch.inf),
    "no mask": lambda x: x * torch.full((4, 6), 0.5),
    "temperature": lambda x: x * 1.0,
    "rows": lambda x: x.masked_fill(torch.tensor([[True], [False], [False], [True]]), 0.0),
    "dropped": lambda x: F.dropout(x, 0.5),
    "gates": lambda x: x * (scores() > 0).float().requires_grad_(),
}


@pytest.mark.parametrize("mask", WEAK)
def test_numbers_that_hide_nothing(mask: str) -> None:
    assert weak_masks(WEAK[mask](scores()).softmax(1).square().sum()) == 1


@pytest.mark.parametrize("mask", STRONG)
def test_numbers_that_hide_and_what_is_no_mask(mask: str) -> None:
    assert weak_masks(STRONG[mask](scores()).softmax(1).square().sum()) == 0


@pytest.mark.parametrize("mask", WEAK)
def test_weights_that_are_masked_again(mask: str) -> None:
    weights = WEAK[mask](scores()).softmax(1)
    for again in (weights * SHOWS, weights.masked_fill(HIDES, 0.0)):
        whole = again / (again.sum(1, keepdim=True) + 1e-13)
        assert weak_masks(whole.square().sum()) == 0


def test_rows_that_are_hidden_whole_get_some_weight() -> None:
    nothing = torch.cat([HIDES, torch.ones(4, 6, dtype=torch.bool)])
    doubled = torch.cat([scores(), scores()])
    filled = doubled.masked_fill(nothing, -torch.inf)
    safe = filled.masked_fill(nothing.all(1, keepdim=True), 0.0)
    assert weak_masks(safe.softmax(1).square().sum()) == 0
    assert weak_masks(doubled.masked_fill(nothing, -1e9).softmax(1).square().sum()) == 0


def test_masks_of_heads_and_other_dimensions() -> None:
    heads = torch.randn(4, 2, 6, 6, requires_grad=True)
    assert weak_masks(heads.masked_fill(HIDES[:, None, None], 0).softmax(-1).square().sum()) == 1
    assert weak_masks(scores().t().masked_fill(HIDES.t(), 0).softmax(0).square().sum()) == 1


def test_other_losses() -> None:
    """Of a log-softmax over classes some have a score of 0 on purpose; a checkpoint is not computed again."""
    assert weak_masks(scores().masked_fill(HIDES, 0).log_softmax(1).sum()) == 0
    assert weak_masks(torch.ones(3)) == 0
    computed = checkpoint(
        lambda x: x.masked_fill(HIDES, 0).softmax(1), scores(), use_reentrant=False
    )
    assert weak_masks(computed.square().sum()) == 0
