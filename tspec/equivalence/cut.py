"""The positions of a rank's elements in the full tensor, as plain numbers that can be handed to a
job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor

Run = tuple[int, int, int, int]
"""`count` blocks of `length` indices: (start, length, stride, count)."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A rank's shard of a tensor of shape `full`.

    `runs` are its indices in each dimension, in its own order; the shard holds every combination of
    them. `flat` restricts it to a range of the combinations in row-major order; the end is
    excluded. Elements beyond `full`, or beyond the combinations, are padding.
    """

    full: tuple[int, ...]
    runs: tuple[tuple[Run, ...], ...]
    flat: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rank's tensor, padding included."""
        if self.flat is not None:
            return (self.flat[1] - self.flat[0],)
        return tuple(sum(length * count for _, length, _, count in runs) for runs in self.runs)

    def fitting(self, shape: tuple[int, ...]) -> Cut:
        """This cut, or if only then a tensor has that shape the same without padding, as `fully_shard` keeps it."""
        if self.flat is not None or shape == self.shape:
            return self
        found = self._unpadded()
        return found if found.shape == shape else self

    @property
    def is_padded(self) -> bool:
        """True if elements of the rank's tensor are padding."""
        if self.flat is not None:
            return bool((self.positions() < 0).any())
        return self._unpadded().shape != self.shape

    def _unpadded(self) -> Cut:
        """The same of a tensor whose dimensions have no padding."""
        return replace(
            self,
            runs=tuple(
                tuple(chain.from_iterable(_real(run, size) for run in runs))
                for size, runs in zip(self.full, self.runs, strict=True)
            ),
        )

    def positions(self, device: torch.device | None = None) -> Tensor:
        """For each element its place in the flattened full tensor, -1 for padding: int64 of `shape`."""
        found = torch.zeros((), dtype=torch.int64, device=device)
        padding = torch.zeros((), dtype=torch.bool, device=device)
        for size, runs in zip(self.full, self.runs, strict=True):
            indices = _indices(runs, device)
            found = found[..., None] * size + indices
            padding = padding[..., None] | (indices >= size)
        found = found.masked_fill(padding, -1)
        if self.flat is None:
            return found
        first, last = self.flat
        held = found.flatten()[first:last]
        return torch.cat([held, held.new_full((last - first - len(held),), -1)])

    def of(self, tensor: Tensor) -> Tensor:
        """The rank's shard of a full tensor; its padding is zero."""
        positions = self.positions(tensor.device)
        return tensor.flatten()[positions.clamp(min=0)].masked_fill(positions < 0, 0)

    def as_json(self) -> dict[str, Any]:
        """A value that `json` can write."""
        return asdict(self)

    @staticmethod
    def of_json(said: Mapping[str, Any]) -> Cut:
        """The `Cut` that `as_json` wrote."""
        runs = tuple(
            tuple((start, length, stride, count) for start, length, stride, count in each)
            for each in said["runs"]
        )
        return Cut(tuple(said["full"]), runs, None if said["flat"] is None else tuple(said["flat"]))


def whole(shape: tuple[int, ...], real: tuple[int, ...] | None = None) -> Cut:
    """The shard that is all of a tensor. What is beyond the sizes `real` is padding."""
    return Cut(real or shape, tuple(((0, size, 0, 1),) for size in shape))


def _real(run: Run, size: int) -> Iterator[Run]:
    """The blocks of a run below a size, which is within the last of them."""
    start, length, stride, count = run
    whole = sum(start + number * stride + length <= size for number in range(count))
    if whole:
        yield start, length, stride, whole
    begin = start + whole * stride
    if whole < count and begin < size:
        yield begin, size - begin, 0, 1


def _indices(runs: tuple[Run, ...], device: torch.device | None) -> Tensor:
    """The indices of runs, in order."""
    found = [
        (
            start
            + stride * torch.arange(count, device=device)[:, None]
            + torch.arange(length, device=device)
        ).flatten()
        for start, length, stride, count in runs
    ]
    return torch.cat(found) if found else torch.zeros(0, dtype=torch.int64, device=device)
