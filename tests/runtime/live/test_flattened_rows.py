"""Logits that were flattened in another order than their targets."""

from __future__ import annotations

import pytest
import torch

from tspec.runtime.live.losses.rows import FlattenedRows
from tspec.runtime.live.losses.tokens import TokenHistory

BATCH, LENGTH, CLASSES = 4, 9, 20
IGNORED = -100


def text(batch: int = BATCH) -> torch.Tensor:
    return torch.randint(CLASSES, (batch, LENGTH), generator=torch.Generator().manual_seed(0))


def swapped(tokens: torch.Tensor, logits: torch.Tensor, target: torch.Tensor) -> bool | None:
    history = TokenHistory()
    history.given(tokens)
    return FlattenedRows(history).rows_swapped(logits, target, IGNORED)


def logits_of(*shape: int) -> torch.Tensor:
    return torch.nn.Linear(3, CLASSES)(torch.randn(*shape, 3))


def test_batches_first() -> None:
    tokens, target = text()[:, :-1], text()[:, 1:].reshape(-1)
    logits = logits_of(BATCH, LENGTH - 1)
    assert swapped(tokens, logits.reshape(-1, CLASSES), target) is False
    assert swapped(tokens, logits.flatten(0, 1) / 2, target) is False
    assert swapped(tokens, logits.transpose(0, 1).reshape(-1, CLASSES), target) is True
    assert swapped(tokens, logits_of(LENGTH - 1, BATCH).view(-1, CLASSES), target) is True


def test_steps_first() -> None:
    tokens, target = text().t()[:-1], text().t()[1:].reshape(-1)
    assert swapped(tokens, logits_of(LENGTH - 1, BATCH).view(-1, CLASSES), target) is False
    assert swapped(tokens, logits_of(BATCH, LENGTH - 1).view(-1, CLASSES), target) is True


def test_targets_in_another_order_than_the_tokens() -> None:
    tokens, target = text().t()[:-1], text()[:, 1:].reshape(-1)
    logits = logits_of(LENGTH - 1, BATCH)
    assert swapped(tokens, logits.view(-1, CLASSES), target) is True
    assert swapped(tokens, logits.transpose(0, 1).reshape(-1, CLASSES), target) is False


@pytest.mark.parametrize("batch", [1, LENGTH])
def test_an_order_that_the_shape_does_not_show(batch: int) -> None:
    tokens = text(batch)
    logits = logits_of(LENGTH, batch).view(-1, CLASSES)
    assert swapped(tokens, logits, tokens.reshape(-1)) is None


def test_nothing_is_known_of_other_targets_or_rows() -> None:
    tokens, target = text(), text().reshape(-1)
    assert swapped(tokens, logits_of(BATCH * LENGTH), target) is None
    assert swapped(tokens, logits_of(LENGTH, BATCH).view(-1, CLASSES), target.flip(0)) is None
    assert swapped(tokens, logits_of(BATCH, LENGTH), text()) is None
