"""The coordinates of ranks: the place of each in its group on every axis of the job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod

Coordinates = Mapping[int, Mapping[str, int]]
"""Rank -> axis -> place, the outermost axis first."""


def coordinates(groups: Mapping[int, Mapping[str, tuple[int, ...]]]) -> Coordinates:
    """The coordinates of ranks, from rank -> axis -> the ranks of its group in order.

    Left out are axes of one rank, and axes that tell no two ranks apart that those before them do
    not, such as `model` beside `tp` and `pp`. A job whose only axis is `dp` has no coordinates: the
    number of a rank is its place.
    """
    found: dict[int, dict[str, int]] = {rank: {} for rank in sorted(groups)}
    strides: dict[str, int] = {}
    for axis in dict.fromkeys(name for of_rank in groups.values() for name in of_rank):
        members = {
            rank: of_rank[axis]
            for rank, of_rank in groups.items()
            if rank in of_rank.get(axis, ()) and len(of_rank[axis]) > 1
        }
        if axis == "world" or not _tells_apart(members.values(), found):
            continue
        strides[axis] = min(abs(b - a) for group in members.values() for a, b in pairwise(group))
        for rank, group in members.items():
            found[rank][axis] = group.index(rank)
    if [*strides] == ["dp"]:
        return {}
    outer_first = sorted(strides, key=lambda axis: -strides[axis])
    return {
        rank: {axis: at[axis] for axis in outer_first if axis in at}
        for rank, at in found.items()
        if at
    }


def _tells_apart(groups: Iterable[tuple[int, ...]], found: Coordinates) -> bool:
    """True if a group has two ranks with the same coordinates so far."""
    for group in groups:
        known = [tuple(found[rank].items()) for rank in group if rank in found]
        if len(set(known)) < len(known):
            return True
    return False


def in_words(ranks: Sequence[int], at: Coordinates) -> str:
    """Ranks with their coordinates: `rank 3 (pp 1, tp 0)`, `ranks 0, 2 (pp 0-1, tp 0)`.

    Ranks that are no whole part of the grid each have their own: `ranks 0 (pp 0, tp 0), 3 (pp 1, tp 1)`.
    """
    head = f"rank{'s' if len(ranks) > 1 else ''}"
    axes = dict.fromkeys(axis for rank in ranks for axis in at.get(rank, {}))
    places = {axis: sorted({at[r][axis] for r in ranks if axis in at.get(r, {})}) for axis in axes}
    whole = all(axis in at.get(rank, {}) for rank in ranks for axis in axes)
    if whole and prod(map(len, places.values())) == len(ranks):
        return f"{head} {', '.join(map(str, ranks))}{_bracketed(places)}"
    each = (
        f"{rank}{_bracketed({axis: [place] for axis, place in at.get(rank, {}).items()})}"
        for rank in ranks
    )
    return f"{head} {', '.join(each)}"


def _bracketed(places: Mapping[str, Sequence[int]]) -> str:
    said = ", ".join(f"{axis} {_numbers(numbers)}" for axis, numbers in places.items())
    return f" ({said})" if said else ""


def _numbers(numbers: Sequence[int]) -> str:
    """`0`, `0-3`, `0 and 2`."""
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return " and ".join(map(str, numbers))
