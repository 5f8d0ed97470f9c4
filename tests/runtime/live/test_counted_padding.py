"""Labels that count although their tokens are padding."""

from __future__ import annotations

import torch

from tspec.runtime.live.losses.tokens import TokenHistory

TOKENS = torch.tensor([[3, 4, 5, 6, 0], [7, 0, 8, 0, 0], [9, 4, 4, 1, 2]])
LABELS = torch.tensor([[1, 1, 2, 1, 0], [2, 1, 1, 0, 0], [1, 2, 1, 2, 1]])
IGNORED = -100


def history(*given: tuple[torch.Tensor, int | None]) -> TokenHistory:
    tokens = TokenHistory()
    for each, padding in given:
        tokens.given(each, padding)
    return tokens


def test_padding_after_a_sequence_counts_unless_its_label_is_left_out() -> None:
    seen = history((TOKENS, 0))
    assert seen.counted_padding(LABELS.flatten(), IGNORED, None) == 3
    assert seen.counted_padding(LABELS, IGNORED, None) == 3
    left_out = LABELS.masked_fill(TOKENS == 0, IGNORED)
    assert seen.counted_padding(left_out, IGNORED, None) == 0


def test_padding_before_a_sequence_counts_and_a_gap_within_it_does_not() -> None:
    assert history((TOKENS.flip(1), 0)).counted_padding(LABELS.flip(1), IGNORED, None) == 3


def test_labels_whose_class_has_no_weight_do_not_count() -> None:
    weight = torch.tensor([0.0, 1.0, 1.0])
    assert history((TOKENS, 0)).counted_padding(LABELS, IGNORED, weight) == 0


def test_the_sequence_that_the_labels_are_of_decides() -> None:
    source = TOKENS.flip(0)
    labels = LABELS.masked_fill(TOKENS == 0, IGNORED)
    assert history((source, 0), (TOKENS, 0)).counted_padding(labels, IGNORED, None) == 0
    assert history((source, 0), (TOKENS, None)).counted_padding(labels, IGNORED, None) is None


def test_nothing_is_known_without_such_a_sequence() -> None:
    assert history().counted_padding(LABELS, IGNORED, None) is None
    assert history((TOKENS[:, :4], 0)).counted_padding(LABELS, IGNORED, None) is None
    assert history((TOKENS, 0)).counted_padding(LABELS.float(), IGNORED, None) is None


def test_token_types_are_no_text() -> None:
    types = torch.zeros_like(TOKENS)
    assert history((TOKENS, 0), (types, None)).counted_padding(LABELS, IGNORED, None) == 3
    assert history((types, None)).counted_padding(LABELS, IGNORED, None) is None
