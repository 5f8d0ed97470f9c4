"""Finds attention masks that are inverted, and hide the tokens, and attention that sees padding for want of a mask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    MATRIX_PRODUCTS,
    RESHAPES,
    SOFTMAXES,
    crossing_softmaxes,
    first_input,
    nodes,
    operation_of,
    preceding,
    saved,
    weighing_softmaxes,
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
_WEIGHT = 1e-6
"""The least weight of a key that a query sees. Hidden keys have a weight of 0, or that of a score of
-20 or less.
"""
_SOFTMAXES = SOFTMAXES | {"LogSoftmax"}
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
        """True if attention without any mask, or with one that hides nothing, gets a key for each token
        of sequences that end, or begin, in padding. Its queries are the keys, or of another length.

        Keys are `[length, batch, features]`. None if no such tokens have their shape.
        """
        if not (_is_plain(key) and key.dim() == 3 and _is_plain(query)):
            return None
        if query is not key and len(query) == len(key):
            return None
        free = _hides_nothing(key_padding_mask, shown=False) and _hides_nothing(
            attn_mask, shown=False
        )
        return self._sees_padding(key.transpose(0, 1).shape[:2], free)

    @torch.no_grad()
    def sees_padding(self, key: Any, attn_mask: Any, is_causal: Any) -> bool | None:
        """The same of fused attention, whose keys are `[batch, …, length, features]`."""
        if not _is_plain(key) or key.dim() < 3:
            return None
        free = not is_causal and _hides_nothing(attn_mask, shown=True)
        return self._sees_padding((key.shape[0], key.shape[-2]), free)

    @torch.no_grad()
    def weighed_padding(self, losses: Any) -> bool | None:
        """True if a softmax of the graph weighs both the tokens and the padding of sequences that end,
        or begin, in padding, for queries that are tokens of the same sequences, or of another length.

        None if no such tokens have the shape of its keys.
        """
        if not self._tokens.inputs:
            return None
        products = [node for operation, node in nodes(losses) if operation in MATRIX_PRODUCTS]
        found = dict.fromkeys(
            softmax
            for node in products
            for softmax in (
                *(each for _, each, dim in weighing_softmaxes(node) if dim == -1),
                *crossing_softmaxes(node),
            )
        )
        return _any(seen for softmax in found for seen in self._weighed(saved(softmax, "result")))

    def _weighed(self, weights: torch.Tensor | None) -> Iterator[bool]:
        """True if the weights `[…, queries, length]`, or `[batch, length]`, of a batch give padding a
        weight; nothing if its tokens are not known to be padded.
        """
        if weights is None or type(weights) is not torch.Tensor:
            return
        length = weights.shape[-1]
        queries = weights.shape[-2] if weights.dim() > 2 else 1
        each = weights.reshape(-1, queries, length)
        paddings = [
            padding.to(each.device)
            for padding in self.paddings_of(lambda batch: len(each) % batch == 0, length)
        ]
        if paddings:
            yield all(_weighs_both(each, padding) for padding in paddings)

    def _sees_padding(self, keys: Sequence[int], free: bool) -> bool | None:
        batch, length = keys
        return free if self.paddings_of(lambda each: each == batch, length) else None

    def paddings_of(self, fits: Callable[[int], bool], length: int) -> list[torch.Tensor]:
        """The padding `[batch, length]` of the tokens that may be the keys. Empty if some of these
        are not padded: the keys may be theirs.
        """
        found = []
        for tokens, padding in self._tokens.padded:
            shaped = [
                each
                for each in (tokens, tokens.t())
                if each.shape[1] == length and fits(each.shape[0])
            ]
            paddings = [at for each in shaped if (at := padding_at_end(each, padding)) is not None]
            if shaped and not paddings and _is_text(tokens):
                return []
            found += paddings
        return found

    def _of_call(self, mask: Any, *, shown: bool) -> bool | None:
        if not _is_plain(mask):
            return None
        return _any(self._compared(_hidden(mask, shown)))

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


def padding_at_end(tokens: torch.Tensor, padding: int | None) -> torch.Tensor | None:
    """The padding of sequences `[batch, length]` that differ in length, if it lies at one end only.

    If no row of the table is known to be that of padding, it is the most frequent last token, or the
    most frequent first one.
    """
    if padding is not None:
        return _at_one_end(tokens, tokens == padding)
    if len(torch.unique(tokens)) <= _OTHERS:
        return None
    ends = (_at_one_end(tokens, tokens == tokens[:, end].mode().values) for end in (-1, 0))
    return next((each for each in ends if each is not None), None)


def _at_one_end(tokens: torch.Tensor, is_padding: torch.Tensor) -> torch.Tensor | None:
    lengths = (~is_padding).sum(1)
    places = torch.arange(tokens.shape[1], device=tokens.device)
    at_end = places >= lengths[:, None]
    at_start = places < tokens.shape[1] - lengths[:, None]
    at_one = torch.equal(is_padding, at_end) or torch.equal(is_padding, at_start)
    often = is_padding.double().mean() >= _OFTEN
    differ = lengths.min() != lengths.max() and lengths.min() > 0
    return is_padding if at_one and often and differ else None


def _is_text(tokens: torch.Tensor) -> bool:
    """False for positions, which are the same in each sequence, and for kinds of tokens."""
    same = bool((tokens == tokens[:1]).all()) or bool((tokens == tokens[:, :1]).all())
    return not same and len(torch.unique(tokens)) > _OTHERS


def _weighs_both(weights: torch.Tensor, padding: torch.Tensor) -> bool:
    """True if queries give weight to keys that are tokens, and to padding. Of as many queries as keys,
    those that are tokens count.

    `weights` are `[n, queries, length]`, for each sequence of the batch as many, one sequence after
    the other or one head after the other.
    """
    batch, length = padding.shape
    queries = weights.shape[1]
    by_sequence = weights.view(batch, -1, queries, length).amax(1)
    by_head = weights.view(-1, batch, queries, length).amax(0)
    tokens = ~padding
    asks = tokens if queries == length else padding.new_ones(batch, queries)
    of_padding = asks[:, :, None] & padding[:, None]
    of_tokens = asks[:, :, None] & tokens[:, None] & padding.any(1)[:, None, None]
    return all(
        bool((each[pairs] > _WEIGHT).any())
        for each in (by_sequence, by_head)
        for pairs in (of_padding, of_tokens)
    )


def _any(found: Iterable[bool]) -> bool | None:
    """True if one element is true; None for no elements."""
    known = list(found)
    return any(known) if known else None


def _hidden(mask: torch.Tensor, shown: bool) -> torch.Tensor:
    """The keys that a mask hides. `shown`: true, in a boolean mask, is a key that is visible."""
    if mask.dtype == torch.bool:
        return ~mask if shown else mask
    return mask <= torch.finfo(mask.dtype).min / 2


def _hides_nothing(mask: Any, *, shown: bool) -> bool:
    """True without a mask, and for one that adds the same to all scores."""
    if mask is None:
        return True
    if not _is_plain(mask):
        return False
    return not bool(_hidden(mask, shown).any()) and bool((mask == mask.flatten()[:1]).all())


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
