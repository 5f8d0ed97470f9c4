"""Compares the last targets of padded sequences: a token that ends a text is the same in each."""

from __future__ import annotations

import torch

from tspec.runtime.live.losses.tokens import TokenHistory

ENOUGH = 8
"""The smallest number of padded sequences whose last targets are compared."""


class SequenceEndings:
    """Finds the targets at the ends of the sequences that a model of next tokens was given."""

    def __init__(self, tokens: TokenHistory) -> None:
        self._tokens = tokens

    @torch.no_grad()
    def ends_alike(self, target: torch.Tensor, ignored: int) -> float | None:
        """The fraction of the padded sequences whose last target that counts is the most frequent one.

        A sequence is padded if the tokens after that target are all of one value, and their targets
        are ignored. None if the targets are not the next tokens, and if fewer than eight sequences
        are padded.
        """
        found = self._tokens.next_tokens(target, ignored)
        if found is None:
            return None
        sequences, rows = found
        last = _last(rows != ignored)
        padded = (last >= 0) & _is_padded(sequences, last)
        if int(padded.sum()) < ENOUGH:
            return None
        ends = rows.gather(1, last.clamp(min=0)[:, None]).flatten()[padded]
        return float(torch.unique(ends, return_counts=True)[1].max()) / len(ends)


def _last(counted: torch.Tensor) -> torch.Tensor:
    """The last place of each row at which it is true; -1 in rows without one."""
    places = torch.arange(counted.shape[1], device=counted.device)
    return torch.where(counted, places, -1).amax(1)


def _is_padded(sequences: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """True for sequences that go on, after the token of the last target, with tokens of one value."""
    places = torch.arange(sequences.shape[1], device=sequences.device)
    after = places > last[:, None] + 1
    same = (sequences == sequences[:, -1:]) | ~after
    return after.any(1) & same.all(1)
