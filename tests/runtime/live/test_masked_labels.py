"""Labels that count although a mask of the model hides their tokens."""

from __future__ import annotations

import pytest
import torch

from tspec.runtime.live.losses.tokens import TokenHistory

TOKENS = torch.randint(1, 9, (8, 12), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(12) < torch.arange(4, 12)[:, None]).long()
PADDED = TOKENS * MASK
IGNORED = -100


def history(mask: torch.Tensor, name: str = "attention_mask") -> TokenHistory:
    tokens = TokenHistory()
    tokens.given(PADDED)
    tokens.masked({"input_ids": PADDED, name: mask})
    return tokens


@pytest.mark.parametrize("mask", [MASK, MASK.bool(), MASK.t()], ids=["ints", "bools", "transposed"])
def test_labels_of_masked_tokens_count_unless_they_are_ignored(mask: torch.Tensor) -> None:
    labels = PADDED.masked_fill(MASK == 0, IGNORED)
    assert history(mask).masked_labels(PADDED[:, 1:].flatten(), IGNORED) == 1
    assert history(mask).masked_labels(labels[:, 1:].flatten(), IGNORED) == 0


def test_labels_may_be_as_long_as_the_sequence() -> None:
    shifted = torch.cat((PADDED[:, 1:], torch.full((8, 1), IGNORED)), 1)
    counted = history(MASK).masked_labels(shifted.flatten(), IGNORED)
    assert counted is not None
    assert counted > 0.5


def test_the_end_of_a_sequence_may_have_the_label_of_padding() -> None:
    labels = PADDED.clone()
    for row, length in zip(labels, MASK.sum(1), strict=True):
        row[length + 1 :] = IGNORED
    assert history(MASK).masked_labels(labels[:, 1:].flatten(), IGNORED) == 0


def test_nothing_is_known_without_a_mask_or_of_other_labels() -> None:
    target = PADDED[:, 1:].flatten()
    assert history(MASK, "positions").masked_labels(target, IGNORED) is None
    assert history(torch.ones_like(MASK)).masked_labels(target, IGNORED) is None
    assert history(MASK.float()).masked_labels(target, IGNORED) is None
    assert history(MASK).masked_labels(target.flip(0), IGNORED) is None
    assert history(MASK).masked_labels(target.float(), IGNORED) is None
    seen = history(MASK)
    seen.clear()
    assert seen.masked_labels(target, IGNORED) is None
