"""What one rank holds, tensor by tensor; layers that are cut alike are one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tspec.layout.places import flattened_from, names_of, placement_of, tied_to
from tspec.layout.replicas import replicas, spread
from tspec.layout.shards import Shard, shard, stage_on
from tspec.layout.sizes import Sizes, UnknownSize
from tspec.resolve.program.sharding import LayoutDeclaration, Placement


@dataclass(frozen=True, slots=True)
class Row:
    """Tensors of one place of which a rank holds the same indices.

    `names` are canonical names, all alike but for a number. `same` are the other ranks that hold
    the same. `lacking` is the size that is not known, where one is not; then there is no shard.
    """

    place: Placement
    names: tuple[str, ...]
    shard: Shard | None
    same: tuple[int, ...] = ()
    lacking: str | None = None


def rows(layout: LayoutDeclaration, rank: int, sizes: Sizes) -> tuple[Row, ...]:
    """What a rank holds, in the order of the layout's places. Raises Uneven."""
    return tuple(row for place in layout.placements for row in _rows(layout, place, rank, sizes))


def _rows(layout: LayoutDeclaration, place: Placement, rank: int, sizes: Sizes) -> Iterator[Row]:
    for below in flattened_from(layout, place):
        names = [
            name
            for pattern in _patterns(layout, place, below)
            for name in names_of(layout, pattern)
            if placement_of(layout, place.kind, name, sizes.known) is place
            if not layout.stages or stage_on(layout, name, rank)
        ]
        if not names:
            continue
        try:
            piece = shard(layout, place.kind, names[0], rank, sizes)
        except UnknownSize as unknown:
            yield Row(place, tuple(names), None, (), str(unknown))
            continue
        others = replicas(layout, spread(layout, place, below), rank)
        yield Row(place, tuple(names), piece, tuple(r for r in others if r != rank))


def _patterns(
    layout: LayoutDeclaration, place: Placement, below: Placement | None
) -> Sequence[str]:
    """The patterns of the tensors of a place, those of tied tensors included."""
    pattern = place.pattern if below is None else below.pattern
    return [pattern, *(name for name in tied_to(layout, pattern) if not _has_own(layout, name))]


def _has_own(layout: LayoutDeclaration, name: str) -> bool:
    return any(each.kind == "param" and each.fits(name) for each in layout.placements)
