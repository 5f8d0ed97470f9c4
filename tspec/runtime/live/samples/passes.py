"""The samples that whole passes over loaders give out."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tspec.runtime.live.samples.rows import row_numbers

LEAST_KEPT = 64
"""The number of samples that are kept of a pass: those with the smallest numbers. Among them none may occur twice, so
data of few different samples, and samples that are drawn with replacement, are left out.
"""
COMPARED = 8
"""The number of them that passes are compared by. Two passes that leave out other samples, because the last batch is
dropped, still have these in common in most epochs.
"""


@dataclass(slots=True)
class _Pass:
    """One pass that is under way."""

    batches: int = 0
    least: torch.Tensor | None = None
    """The smallest numbers of its samples, in order; None before the first."""
    known: bool = True
    """All its batches have samples with numbers."""


@dataclass(slots=True)
class PassSamples:
    """Identifies the samples of each pass, whatever their order."""

    _passes: weakref.WeakKeyDictionary[Any, _Pass] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    def begins(self, iterator: Any) -> None:
        """A pass begins."""
        self._passes[iterator] = _Pass()

    def given(self, iterator: Any, batch: Sequence[object], length: object) -> int | None:
        """A pass gives out a batch, `[samples, ...]`, of `length`. A number of all its samples with its last one; else None.

        None too where the samples cannot be told apart, or occur twice.
        """
        known = self._passes.get(iterator)
        if known is None or not known.known:
            return None
        known.batches += 1
        is_last = known.batches == length
        rows = row_numbers(batch)
        if rows is None:
            known.known = is_last  # the last batch of a pass may be too small to be read
        else:
            kept = rows.cpu() if known.least is None else torch.cat((known.least, rows.cpu()))
            known.least = kept.sort().values[:LEAST_KEPT]
        return _number(known.least) if is_last and known.least is not None else None


def _number(least: torch.Tensor) -> int | None:
    if len(least) < LEAST_KEPT or bool((least.diff() == 0).any()):
        return None
    return hash(tuple(least[:COMPARED].tolist()))
