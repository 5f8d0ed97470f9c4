"""Sets of indices of one dimension, in the rank's order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True, slots=True)
class StridedBlocks:
    """`count` blocks of `length` indices; the first begins at `start`, the next `stride` later."""

    start: int
    length: int
    stride: int = 0
    count: int = 1

    @property
    def number(self) -> int:
        """The number of indices."""
        return self.length * self.count

    def __iter__(self) -> Iterator[int]:
        for first in self.starts():
            yield from range(first, first + self.length)

    def __contains__(self, index: int) -> bool:
        block, place = divmod(index - self.start, self.stride or max(self.length, 1))
        return 0 <= block < self.count and place < self.length

    def starts(self) -> Iterator[int]:
        """The first index of each block."""
        return (self.start + block * self.stride for block in range(self.count))

    def below(self, limit: int) -> int:
        """The number of indices that are less than `limit`."""
        if self.count == 1 or self.stride == 0:
            return min(max(limit - self.start, 0), self.length)
        whole, rest = divmod(max(limit - self.start, 0), self.stride)
        if whole >= self.count:
            return self.number
        return whole * self.length + min(rest, self.length)

    def take(self, first: int, last: int) -> tuple[StridedBlocks, ...]:
        """The indices from place `first` to place `last` (not included)."""
        if first >= last:
            return ()
        (head, skip), (tail, rest) = divmod(first, self.length), divmod(last, self.length)
        if head == tail:
            return (StridedBlocks(self.start + head * self.stride + skip, last - first),)
        found = []
        if skip:
            found.append(StridedBlocks(self.start + head * self.stride + skip, self.length - skip))
            head += 1
        if tail > head:
            start = self.start + head * self.stride
            found.append(
                StridedBlocks(start, self.length, self.stride * (tail - head > 1), tail - head)
            )
        if rest:
            found.append(StridedBlocks(self.start + tail * self.stride, rest))
        return tuple(found)


@dataclass(frozen=True)
class Indices:
    """Indices of a dimension of `size`, as a sequence of runs without repeats.

    The order of the runs is that of the rank's own tensor: `list(indices)[i]` is the index in the
    full tensor of element `i` on the rank. Indices from `real` on are padding.
    """

    size: int
    runs: tuple[StridedBlocks, ...]
    real: int

    @property
    def number(self) -> int:
        """The number of indices, padding included."""
        return sum(run.number for run in self.runs)

    def __iter__(self) -> Iterator[int]:
        for run in self.runs:
            yield from run

    def __contains__(self, index: int) -> bool:
        return any(index in run for run in self.runs)

    @property
    def padding(self) -> int:
        """The number of indices that are padding."""
        return self.number - sum(run.below(self.real) for run in self.runs)

    def not_in(self, other: Indices) -> int | None:
        """The smallest index in `self` that is not padding and not in `other`, or None.

        It begins a block of `self`, or follows a block of `other`.
        """
        begin = (start for run in self.runs for start in run.starts())
        follow = (start + run.length for run in other.runs for start in run.starts())
        return min(
            (i for i in (*begin, *follow) if i < self.real and i in self and i not in other),
            default=None,
        )

    @cached_property
    def held(self) -> frozenset[int]:
        """The indices that are no padding."""
        return frozenset(index for index in self if index < self.real)

    def take(self, first: int, last: int) -> Indices:
        """The indices at the places from `first` to `last` (not included)."""
        found: list[StridedBlocks] = []
        done = 0
        for run in self.runs:
            begin, end = max(first - done, 0), min(last - done, run.number)
            found += run.take(begin, end)
            done += run.number
        return Indices(self.size, tuple(found), self.real)

    def then(self, other: Indices) -> Indices:
        """These indices followed by others of the same dimension."""
        return Indices(self.size, _joined((*self.runs, *other.runs)), self.real)

    def beside(self, other: Indices) -> Indices:
        """These indices followed by those of a dimension appended to this one. Neither is padded."""
        runs = (replace(run, start=self.size + run.start) for run in other.runs)
        size = self.size + other.size
        return Indices(size, _joined((*self.runs, *runs)), size)

    def times(self, inner: Indices) -> Indices:
        """The indices of the product of two dimensions; the inner one changes fastest."""
        runs: list[StridedBlocks] = []
        for run in self.runs:
            runs += _product(run, inner)
        return Indices(self.size * inner.size, _joined(tuple(runs)), self.real * inner.size)


def all_of(size: int, padded: int | None = None) -> Indices:
    """All indices of a dimension, padding included."""
    whole = size if padded is None else padded
    return Indices(whole, (StridedBlocks(0, whole),), size)


def _product(outer: StridedBlocks, inner: Indices) -> Iterator[StridedBlocks]:
    size = inner.size
    if inner.runs == (StridedBlocks(0, size),):
        yield StridedBlocks(
            outer.start * size, outer.length * size, outer.stride * size, outer.count
        )
        return
    [*runs] = inner.runs
    if len(runs) == 1 and runs[0].count == 1 and outer.count == 1:
        one = runs[0]
        yield StridedBlocks(outer.start * size + one.start, one.length, size, outer.length)
        return
    for index in outer:
        for run in runs:
            yield StridedBlocks(index * size + run.start, run.length, run.stride, run.count)


def _joined(runs: tuple[StridedBlocks, ...]) -> tuple[StridedBlocks, ...]:
    """Consecutive runs of one block each, joined to one."""
    found: list[StridedBlocks] = []
    for run in runs:
        last = found[-1] if found else None
        if last and last.count == run.count == 1 and last.start + last.length == run.start:
            found[-1] = StridedBlocks(last.start, last.length + run.length)
        else:
            found.append(run if run.count > 1 else StridedBlocks(run.start, run.length))
    return tuple(found)
