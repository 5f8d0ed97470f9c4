"""Tables of places in a sequence: whether sequences look up more than their first row."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap

LENGTH = 8
"""A shorter sequence tells nothing: its entries may be types, of which there are few."""
CALLS = 32
"""The number of look-ups of one table that are read. Later ones are computed in the same way."""


@dataclass(slots=True)
class _Table:
    """What was looked up in one table."""

    calls: int = 0
    had_other_rows: bool = False


class LookedUpPlaces:
    """Follows which rows sequences look up in each table, in passes with a graph."""

    def __init__(self) -> None:
        self._tables: IdentityMap[torch.Tensor, _Table] = IdentityMap(_Table)
        self._sequences: set[tuple[int, int]] = set()
        """Number and length of the sequences whose tokens differ from place to place."""

    def first_row_alone(self, numbers: object, table: object) -> bool | None:
        """True if sequences `[..., length]` have only looked up the first row of a table that has a row
        for each place, although tokens of sequences of this length differ.

        None of other tables that had no row but the first, and of short sequences, without a graph, and
        after the first look-ups.
        """
        if not isinstance(numbers, torch.Tensor) or not isinstance(table, torch.Tensor):
            return None
        known = self._tables.of(table)
        if known.calls >= CALLS or not torch.is_grad_enabled():
            return None
        part = local_part(numbers)
        if part is None or part.dim() < 1 or part.shape[-1] < LENGTH:
            return None
        known.calls += 1
        if not known.had_other_rows and not bool(part.any()):
            return True if self._has_sequences_like(part, table.shape[0]) else None
        known.had_other_rows = True
        if part.dim() > 1 and bool((part != part[..., :1]).any()):
            self._sequences.add((part.numel() // part.shape[-1], part.shape[-1]))
        return False

    def _has_sequences_like(self, zeros: torch.Tensor, rows: int) -> bool:
        """True if zeros may be the places of sequences. `[length]` and `[1, length]` may be those of all.

        As many sequences as places could be samples, each with a number of its own.
        """
        length = zeros.shape[-1]
        number = zeros.numel() // length
        numbers = {of for of, other in self._sequences if other == length}
        if zeros.dim() == 1:
            numbers.discard(length)
        return rows >= length and (bool(numbers) if number == 1 else number in numbers)
