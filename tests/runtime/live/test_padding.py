"""Masks of attention that are told from the tokens."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from tspec.runtime.live.losses.padding import PaddingMasks, padding_at_end
from tspec.runtime.live.losses.tokens import TokenHistory

LENGTHS = torch.tensor([[5], [9], [12], [7]])
IS_PADDING = torch.arange(12) >= LENGTHS
TEXT = torch.arange(48).reshape(4, 12).add(3).masked_fill(IS_PADDING, 1)
HIDDEN = {"padding": IS_PADDING, "text": ~IS_PADDING}


def masks(*tokens: torch.Tensor) -> PaddingMasks:
    history = TokenHistory()
    for each in tokens or (torch.arange(12).expand(4, 12), TEXT):
        history.given(each)
    return PaddingMasks(history)


@pytest.mark.parametrize("hidden", ["padding", "text"])
def test_the_same_is_said_of_all_forms_of_a_mask(hidden: str) -> None:
    mask = HIDDEN[hidden]
    is_inverted = hidden == "text"
    added = torch.zeros(mask.shape).masked_fill(mask, -torch.inf)
    lowest = torch.zeros(mask.shape).masked_fill(mask, torch.finfo(torch.float32).min)
    assert masks().hides_tokens(mask) is is_inverted
    assert masks().hides_tokens(added) is is_inverted
    assert masks().shows_padding(lowest[:, None, None]) is is_inverted
    assert masks().shows_padding(~mask[:, None, None].expand(4, 2, 12, 12)) is is_inverted
    assert masks(TEXT.t()).hides_tokens(mask) is is_inverted


@pytest.mark.parametrize("hidden", ["padding", "text"])
def test_masks_that_fill_scores_are_found_in_the_graph(hidden: str) -> None:
    scores = torch.randn(4, 2, 12, 12, requires_grad=True)
    filled = (scores / 2).masked_fill(HIDDEN[hidden][:, None, None], -1e9)
    loss = F.dropout(filled.softmax(-1), 0.5).square().sum()
    assert masks().filled_padding(loss) is (hidden == "text")


def test_what_is_filled_for_another_reason_is_no_mask() -> None:
    """Of a loss over masked tokens all others are left out."""
    losses = torch.randn(4, 12, requires_grad=True).square()
    assert masks().filled_padding(losses.masked_fill(~IS_PADDING, 0).sum()) is None


def test_causal_masks_with_padding() -> None:
    causal = torch.ones(12, 12).tril().bool()
    assert masks().shows_padding(causal & ~IS_PADDING[:, None, None]) is False
    assert masks().shows_padding(causal & IS_PADDING[:, None, None]) is True
    assert masks().shows_padding(causal) is None
    assert masks().shows_padding(None) is None


def test_masks_that_tell_few_kinds_apart_are_not_taken_for_inverted() -> None:
    """Such as one that hides all but the first of two segments."""
    segments = torch.ones(4, 12).long().masked_fill(IS_PADDING, 2)
    assert masks(segments).hides_tokens(~IS_PADDING) is False


def test_one_token_of_each_sequence_may_be_all_that_is_seen() -> None:
    text = TEXT.clone()
    text[:, 0] = 0
    hidden = torch.ones(4, 12).bool()
    hidden[:, 0] = False
    assert masks(text).hides_tokens(hidden) is False


def test_nothing_is_said_without_tokens() -> None:
    assert PaddingMasks(TokenHistory()).hides_tokens(IS_PADDING) is None


def test_nothing_is_computed_again_under_checkpointing() -> None:
    computed = 0

    def attend(scores: torch.Tensor) -> torch.Tensor:
        nonlocal computed
        computed += 1
        return scores.masked_fill(~IS_PADDING[:, None, None], -1e9).softmax(-1)

    scores = torch.randn(4, 2, 12, 12, requires_grad=True)
    loss = checkpoint(attend, scores, use_reentrant=False).square().sum()
    assert masks().filled_padding(loss) is None
    assert computed == 1


KEY = torch.randn(12, 4, 8)
"""Keys of `TEXT`, as torch's layers get them: `[length, batch, features]`."""


@pytest.mark.parametrize("padding", [1, None])
def test_attention_without_a_mask_sees_padding(padding: int | None) -> None:
    def read() -> PaddingMasks:
        tokens = TokenHistory()
        tokens.given(TEXT, padding)
        return PaddingMasks(tokens)

    split = KEY.transpose(0, 1)[:, None]
    assert read().layer_sees_padding(KEY, KEY, None, None) is True
    assert read().layer_sees_padding(KEY, KEY, IS_PADDING, None) is False
    assert read().layer_sees_padding(KEY.clone(), KEY, None, None) is None  # keys of another text
    assert read().layer_sees_padding(KEY[:3], KEY, None, None) is True
    assert read().layer_sees_padding(KEY[:3], KEY, IS_PADDING, None) is False
    assert read().layer_sees_padding(KEY[:8], KEY[:8], None, None) is None
    assert read().sees_padding(split, None, False) is True
    assert read().sees_padding(split, None, True) is False
    nothing = torch.zeros(4, 12).bool()
    assert read().layer_sees_padding(KEY, KEY, nothing, None) is True
    assert read().layer_sees_padding(KEY, KEY, nothing, IS_PADDING) is False
    assert read().layer_sees_padding(KEY, KEY, nothing.float(), torch.randn(12, 12)) is False
    assert read().sees_padding(split, ~nothing[:, None, None], False) is True
    assert read().sees_padding(split, nothing[:, None, None].float(), False) is True
    assert read().sees_padding(split, torch.ones(12, 12).tril().bool(), False) is False
    assert read().sees_padding(split, ~IS_PADDING[:, None, None], False) is False
    assert read().sees_padding(split[:, :, :5], None, False) is None


def attends(hidden: torch.Tensor | None, heads_first: bool = False) -> torch.Tensor:
    """A loss of two heads of attention over `TEXT`, by hand."""
    scores = torch.randn(4, 2, 12, 12, requires_grad=True)
    scores = scores if hidden is None else scores.masked_fill(hidden, -1e9)
    if heads_first:
        scores = scores.transpose(0, 1)
    weights = F.dropout(scores.softmax(-1), 0.1).reshape(8, 12, 12)
    return torch.bmm(weights, torch.randn(8, 12, 3)).sum()


@pytest.mark.parametrize("heads_first", [False, True])
def test_attention_by_hand_that_weighs_padding(heads_first: bool) -> None:
    causal = torch.ones(12, 12).triu(1).bool()
    keys = IS_PADDING[:, None, None]
    for hidden, sees in (
        (None, True), (keys, False), (causal, False), (~keys, False), (causal.T, True), (keys.mT, True),
    ):  # fmt: skip
        assert masks().weighed_padding(attends(hidden, heads_first)) is sees


def crosses(hidden: torch.Tensor | None, shape: tuple[int, ...]) -> torch.Tensor:
    """A loss of attention over `TEXT` by hand, of queries of another length."""
    scores = torch.randn(shape, requires_grad=True)
    scores = scores if hidden is None else scores.masked_fill(hidden, -1e9)
    weights = scores.softmax(-1)
    weights = weights[:, None] if weights.dim() == 2 else weights.reshape(-1, *shape[-2:])
    return torch.bmm(weights, torch.randn(len(weights), 12, 3)).sum()


@pytest.mark.parametrize("shape", [(4, 12), (4, 1, 12), (4, 5, 12), (4, 2, 5, 12)])
def test_attention_by_hand_to_a_padded_source(shape: tuple[int, ...]) -> None:
    keys = IS_PADDING.view(4, *(1,) * (len(shape) - 2), 12)
    assert masks().weighed_padding(crosses(None, shape)) is True
    assert masks().weighed_padding(crosses(keys, shape)) is False
    assert masks(TEXT[:, :11]).weighed_padding(crosses(None, shape)) is None
    whole = torch.arange(48).reshape(4, 12)
    assert masks(TEXT, whole).weighed_padding(crosses(None, shape)) is None


def test_keys_of_another_text_are_not_known_to_be_padded() -> None:
    """A decoder's cross-attention may weigh the whole of a source that has no padding."""
    source = torch.arange(48).reshape(4, 12)
    assert masks(TEXT, source).weighed_padding(attends(None)) is None
    assert masks(TEXT, IS_PADDING.long()).weighed_padding(attends(None)) is True
    later = TEXT.roll(1, 0)
    assert masks(TEXT, later).weighed_padding(attends(IS_PADDING[:, None, None])) is False
    tokens = TokenHistory()
    for each in (TEXT, source):
        tokens.given(each)
    split = KEY.transpose(0, 1)[:, None]
    assert PaddingMasks(tokens).sees_padding(split, None, False) is None


@pytest.mark.parametrize(
    "tokens",
    [
        torch.arange(48).view(4, 12),
        torch.cat([torch.arange(40).view(4, 10), torch.zeros(4, 2, dtype=torch.int64)], 1),
        (torch.arange(12) >= torch.tensor([[3], [5], [6], [9]])).long(),
        torch.arange(48).view(4, 12) * (torch.arange(12) % 3 > 0),
    ],
    ids=["texts", "of-one-length", "segments", "within"],
)
def test_tokens_that_end_in_no_padding(tokens: torch.Tensor) -> None:
    assert padding_at_end(tokens, None) is None
