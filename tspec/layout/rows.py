"""The shards of one rank, tensor by tensor; layers with equal shards are one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tspec.layout.places import flattened_from, names_of, placement_of, stages_of, tied_to
from tspec.layout.ranks import coordinates
from tspec.layout.replicas import AxisUse, spread
from tspec.layout.shards import Shard, shard
from tspec.layout.sizes import Sizes, UnknownSize
from tspec.resolve.program.sharding import LayoutDeclaration, Placement


@dataclass(frozen=True, slots=True)
class Row:
    """Tensors of one placement with the same indices on a rank.

    `names` are canonical names that differ in a number only. `how` tells which ranks hold replicas.
    `lacking` is a size that is not known; then there is no shard.
    """

    place: Placement
    names: tuple[str, ...]
    how: AxisUse
    shard: Shard | None
    lacking: str | None = None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Tensors of one placement, with the stages of each; `how` is its use of the mesh axes.

    A flat placement has a group for each placement of parameters.
    """

    place: Placement
    how: AxisUse
    names: tuple[tuple[str, frozenset[int]], ...]


def groups(layout: LayoutDeclaration, sizes: Sizes) -> tuple[RowGroup, ...]:
    """All tensors, in the order of the layout's places."""
    return tuple(
        RowGroup(place, spread(layout, place, below), tuple(_names(layout, place, below, sizes)))
        for place in layout.placements
        for below in flattened_from(layout, place)
    )


def _names(
    layout: LayoutDeclaration, place: Placement, below: Placement | None, sizes: Sizes
) -> Iterator[tuple[str, frozenset[int]]]:
    for pattern in _patterns(layout, place, below):
        for name in names_of(layout, pattern):
            if placement_of(layout, place.kind, name, sizes.known) is place:
                yield name, frozenset(stage.number for stage in stages_of(layout, name))


def rows(
    layout: LayoutDeclaration, rank: int, sizes: Sizes, tensors: Sequence[RowGroup]
) -> tuple[Row, ...]:
    """The shard of each group on a rank, in their order. Raises UnevenShards."""
    at = coordinates(layout.mesh.axes, rank).get("pp", 0)
    found = []
    for group in tensors:
        names = tuple(name for name, on in group.names if at in on or not layout.stages)
        if not names:
            continue
        try:
            piece = shard(layout, group.place.kind, names[0], rank, sizes)
        except UnknownSize as unknown:
            found.append(Row(group.place, names, group.how, None, str(unknown)))
        else:
            found.append(Row(group.place, names, group.how, piece))
    return tuple(found)


def _patterns(
    layout: LayoutDeclaration, place: Placement, below: Placement | None
) -> Sequence[str]:
    """The patterns of the tensors of a placement, tied tensors included."""
    pattern = place.pattern if below is None else below.pattern
    return [pattern, *(name for name in tied_to(layout, pattern) if not _has_own(layout, name))]


def _has_own(layout: LayoutDeclaration, name: str) -> bool:
    return any(each.kind == "param" and each.fits(name) for each in layout.placements)
