"""Finds attention masks that are inverted: they hide the tokens and show the padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    first_input,
    nodes,
    operation_of,
    preceding,
    saved,
)
from tspec.runtime.live.losses.tokens import TokenHistory

MASKS = 256
"""The number of attention masks that are compared with the tokens. Later ones are made in the same
way.
"""
_SHORTEST = 4
"""Masks of fewer keys are not compared."""
_OTHERS = 5
"""The least number of different tokens that an inverted mask hides. A mask with fewer may separate
kinds of tokens.
"""
_OFTEN = 0.05
"""The least fraction of padding among the tokens of a batch."""
_SOFTMAXES = ("Softmax", "SafeSoftmax", "LogSoftmax")
_BEFORE = (KEEPS | RESHAPES) - {"MaskedFill"}


class PaddingMasks:
    """Compares attention masks with the tokens that embeddings were given.

    A padding mask shows all tokens except those of one value. An inverted mask shows only the
    tokens of that value.
    """

    def __init__(self, tokens: TokenHistory) -> None:
        self._tokens = tokens

    @torch.no_grad()
    def shows_padding(self, attn_mask: Any) -> bool | None:
        """True if a mask of fused attention, true where a key is visible, shows only tokens of one
        value.

        None if no tokens have the shape of its keys.
        """
        return self._of_call(attn_mask, shown=True)

    @torch.no_grad()
    def hides_tokens(self, key_padding_mask: Any) -> bool | None:
        """The same of a mask that is true where a key is hidden."""
        return self._of_call(key_padding_mask, shown=False)

    @torch.no_grad()
    def filled_padding(self, losses: Any) -> bool | None:
        """True if a mask that fills scores before a softmax of the graph shows only tokens of one
        value.
        """
        masks = _filled(losses) if self._tokens.inputs else ()
        return _any(seen for mask in masks for seen in self._compared(mask))

    @torch.no_grad()
    def layer_sees_padding(
        self, query: Any, key: Any, key_padding_mask: Any, attn_mask: Any
    ) -> bool | None:
        """True if self-attention without any mask gets a key for each token of sequences that end,
        or begin, in padding.

        Keys are `[length, batch, features]`. None if no such tokens have their shape.
        """
        if query is not key or not _is_plain(key) or key.dim() != 3:
            return None
        free = key_padding_mask is None and attn_mask is None
        return self._sees_padding(key.transpose(0, 1).shape[:2], free)

    @torch.no_grad()
    def sees_padding(self, query: Any, key: Any, attn_mask: Any, is_causal: Any) -> bool | None:
        """The same of fused attention, whose keys are `[batch, …, length, features]`."""
        if not _is_plain(key) or key.dim() < 3 or query.shape[-2] != key.shape[-2]:
            return None
        free = attn_mask is None and not is_causal
        return self._sees_padding((key.shape[0], key.shape[-2]), free)

    def _sees_padding(self, keys: Sequence[int], free: bool) -> bool | None:
        padded = any(
            tuple(sequences.shape) == tuple(keys) and ends_in_padding(sequences, padding)
            for tokens, padding in self._tokens.padded
            for sequences in (tokens, tokens.t())
        )
        return free if padded else None

    def _of_call(self, mask: Any, *, shown: bool) -> bool | None:
        if not _is_plain(mask):
            return None
        if mask.dtype == torch.bool:
            hidden = ~mask if shown else mask
        else:
            hidden = mask <= torch.finfo(mask.dtype).min / 2
        return _any(self._compared(hidden))

    def _compared(self, hidden: torch.Tensor) -> Iterator[bool]:
        """For each token sequence with the shape of the keys: True if only tokens of one value are
        visible.
        """
        if hidden.dim() < 2 or hidden.shape[-1] < _SHORTEST:
            return
        keys = hidden.flatten(1, -2).all(1) if hidden.dim() > 2 else hidden
        for tokens in self._tokens.inputs:
            for sequences in (tokens, tokens.t()):
                if sequences.shape == keys.shape and sequences.device == keys.device:
                    yield _shows_one_token(keys, sequences)


def ends_in_padding(tokens: torch.Tensor, padding: int | None) -> bool:
    """True if padding lies at one end only of the sequences `[batch, length]`, which differ in
    length.

    If no row of the table is known to be that of padding, it is the most frequent last token, or the
    most frequent first one.
    """
    if padding is not None:
        return _lies_at_one_end(tokens, tokens == padding)
    if len(torch.unique(tokens)) <= _OTHERS:
        return False
    return any(_lies_at_one_end(tokens, tokens == tokens[:, end].mode().values) for end in (-1, 0))


def _lies_at_one_end(tokens: torch.Tensor, is_padding: torch.Tensor) -> bool:
    lengths = (~is_padding).sum(1)
    places = torch.arange(tokens.shape[1], device=tokens.device)
    at_end = places >= lengths[:, None]
    at_start = places < tokens.shape[1] - lengths[:, None]
    at_one = torch.equal(is_padding, at_end) or torch.equal(is_padding, at_start)
    often = is_padding.double().mean() >= _OFTEN
    return bool(at_one and often and lengths.min() != lengths.max() and lengths.min() > 0)


def _any(found: Iterable[bool]) -> bool | None:
    """True if one element is true; None for no elements."""
    known = list(found)
    return any(known) if known else None


def _is_plain(mask: Any) -> bool:
    return type(mask) is torch.Tensor and (mask.is_floating_point() or mask.dtype == torch.bool)


def _shows_one_token(hidden: torch.Tensor, tokens: torch.Tensor) -> bool:
    """True if the mask shows a single token value, several times in some sequence, and hides all
    other values.
    """
    seen, unseen = tokens[~hidden], tokens[hidden]
    if not seen.numel() or int((~hidden).sum(1).max()) < 2 or bool((seen != seen[0]).any()):
        return False
    return not bool((unseen == seen[0]).any()) and len(set(unseen.tolist())) >= _OTHERS


def _filled(losses: Any) -> Iterator[torch.Tensor]:
    """The masks that fill scores before a softmax. They are true where scores are filled."""
    for operation, node in nodes(losses):
        fill = preceding(first_input(node), _BEFORE) if operation in _SOFTMAXES else None
        is_fill = fill is not None and operation_of(fill) == "MaskedFill"
        mask = saved(fill, "mask") if is_fill else None
        if mask is not None:
            yield mask
