"""Numbers that identify samples: one for each row of a data tensor, computed on the tensor's
device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

from tspec.runtime.live.features import local_part

SAMPLES = 65_536
"""The number of rows that are kept in a store, whatever the number of steps."""
LEAST = 8
"""Smaller batches are states of an environment or single questions."""
ELEMENTS = 64
"""The number of elements by which a sample is identified, spread over all of it."""

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def row_numbers(inputs: Sequence[object]) -> torch.Tensor | None:
    """A number for each sample of the first `[samples, ...]` input, `int64` of shape `[samples]`; nothing waits for the device.

    None where that input has a graph or cannot be read, and without an input of `LEAST` samples.
    """
    for given in inputs:
        if not isinstance(given, torch.Tensor) or given.is_nested:
            continue
        if given.dim() < 2 or given.shape[0] < LEAST:
            continue
        part = None if given.requires_grad else local_part(given)
        return None if part is None or not part.numel() else _numbers(part)
    return None


def _numbers(part: torch.Tensor) -> torch.Tensor:
    flat = part.flatten(1)
    some = flat[:, :: -(-flat.shape[1] // ELEMENTS)].contiguous()
    if some.is_complex():
        some = torch.view_as_real(some).flatten(1)
    if some.is_floating_point():
        some = some.view(_INTEGERS[some.element_size()])
    return (some.to(torch.int64) * _weights(some.shape[1], some.device)).sum(1)


@lru_cache(maxsize=64)
def _weights(width: int, device: torch.device) -> torch.Tensor:
    drawn = torch.Generator().manual_seed(width)
    weights = torch.randint(-(2**62), 2**62, (width,), generator=drawn)
    return (weights * 2 + 1).to(device)


class RowStore:
    """The numbers of seen samples, at most `SAMPLES` of them."""

    __slots__ = ("_kept", "_new", "_size", "is_full")

    def __init__(self) -> None:
        self._kept: torch.Tensor | None = None
        """In order, each once."""
        self._new: list[torch.Tensor] = []
        self._size = 0
        self.is_full = False
        """The store has reached its limit of different samples and keeps no more."""

    def add(self, rows: torch.Tensor) -> None:
        """Keep the numbers of a batch. The device is waited for only where there have been thousands."""
        if self.is_full:
            return
        self._new.append(rows)
        self._size += len(rows)
        if self._size > SAMPLES:
            kept = self.kept()
            assert kept is not None
            self.is_full = len(kept) > SAMPLES // 2
            self._kept, self._size = kept[:SAMPLES], min(len(kept), SAMPLES)

    def known(self, rows: torch.Tensor) -> torch.Tensor:
        """True for each number that is kept: `bool`, of the shape of `rows`."""
        kept = self.kept()
        if kept is None:
            return torch.zeros_like(rows, dtype=torch.bool)
        kept = kept.to(rows.device)
        return kept[torch.searchsorted(kept, rows).clamp_(max=len(kept) - 1)] == rows

    def kept(self) -> torch.Tensor | None:
        """All numbers, each once and in order; None if there is none."""
        if self._new:
            device = self._new[-1].device
            old = [] if self._kept is None else [self._kept]
            self._kept = torch.unique(torch.cat([each.to(device) for each in (*old, *self._new)]))
            self._new = []
        return self._kept

    def __len__(self) -> int:
        return self._size
