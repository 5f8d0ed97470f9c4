"""Compares the order in which logits were flattened with that of their targets.

Logits `[length, batch, classes]` and targets `[batch, length]` have as many rows if both are flattened, but the rows of
other samples and places.
"""

from __future__ import annotations

from math import prod

import torch

from tspec.runtime.live.losses.graph import KEEPS, RESHAPES, SCALES, operation_of, preceding
from tspec.runtime.live.losses.tokens import TokenHistory

_SAME_ROWS = KEEPS | SCALES
"""Operations after the flattening that leave the rows in their order."""


class FlattenedRows:
    """Compares logits with the tokens that their targets are."""

    def __init__(self, tokens: TokenHistory) -> None:
        self._tokens = tokens

    def rows_swapped(self, logits: torch.Tensor, target: torch.Tensor, ignored: int) -> bool | None:
        """True if the logits were flattened with samples and places in the other order than the
        targets.

        None if the targets are no tokens of a given sequence, if the graph does not show what was
        flattened, or if a batch has as many samples as places, or a single one.
        """
        if logits.dim() != 2 or target.dim() != 1:
            return None
        wanted = self._tokens.order_of(target, ignored)
        flattened = _flattened(logits)
        if wanted is None or flattened is None or flattened[0] == flattened[1] or 1 in flattened:
            return None
        return flattened == wanted[::-1] if flattened in (wanted, wanted[::-1]) else None


def _flattened(logits: torch.Tensor) -> tuple[int, int] | None:
    """The two dimensions that became the rows of `[rows, classes]`."""
    view = preceding(logits.grad_fn, _SAME_ROWS)
    if view is None or operation_of(view) not in RESHAPES:
        return None
    before, output = view.next_functions[0]
    if before is None or not before._input_metadata:
        return None
    shape = tuple(before._input_metadata[output].shape)
    fits = len(shape) == 3 and shape[2] == logits.shape[1] and prod(shape[:2]) == len(logits)
    return (shape[0], shape[1]) if fits else None
