"""TS0200: an index that no rank holds, because a cut does not come out even."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from tspec.diagnostics import Diagnostic
from tspec.layout.faults.words import at, index_text, shown
from tspec.layout.indices import Indices
from tspec.layout.places import flattened_from
from tspec.layout.shards import UnevenShards, shard
from tspec.layout.sizes import free_sizes, sizes_of
from tspec.resolve.program.sharding import (
    Dimension,
    Flat,
    LayoutDeclaration,
    Placement,
    Shape,
    splits,
)


def faults(layout: LayoutDeclaration) -> Iterator[Diagnostic]:
    """Dimensions, for all sizes, then flat shards, for those that the layout says."""
    yield from _tilings(layout)
    for place in layout.placements:
        yield from _uneven_flats(layout, place)


def _tilings(layout: LayoutDeclaration) -> Iterator[Diagnostic]:
    """Each dimension that is cut, once for all places that cut it in this way."""
    from tspec.logic.tiling import tiling  # z3 takes a tenth of a second to import.

    known = {}
    for place in layout.placements:
        for dimension in _proved(place.shape):
            if dimension not in known:
                known[dimension] = tiling(dimension)
            found = known[dimension]
            if found.answer == "yes":
                continue
            if found.answer == "unknown":
                message = f"it was not proved that the shards of {shown(place)} tile it"
                yield at(layout, place, "TS0200", message, "write the cut in another way")
                continue
            sizes = ", ".join(f"`{name}` {value}" for name, value in found.sizes.items())
            message = f"no rank holds index {found.index} of {shown(place)} with {sizes}"
            axes = " * ".join(split.axis for split in splits(place.shape))
            hint = f"what is padded is a multiple of its number of shards: `padded to … * {axes}`"
            yield at(layout, place, "TS0200", message, hint)


def _proved(shape: Shape | Flat) -> tuple[Dimension, ...]:
    """Dimensions that tile for all sizes. A flattened and padded tensor has one dimension of its
    elements.
    """
    if isinstance(shape, Shape):
        return shape.dimensions
    return (Dimension("elements", shape.padding, shape.splits),) if shape.padding else ()


def _uneven_flats(layout: LayoutDeclaration, place: Placement) -> Iterator[Diagnostic]:
    """A flat shard of a parameter of known size that does not come out even."""
    if not isinstance(place.shape, Flat) or place.shape.padding:
        return
    for below in flattened_from(layout, place):
        name = below.pattern if below else ""
        alone = replace(layout, placements=(replace(place, when=None), *_unconditioned(below)))
        sizes = sizes_of(layout, free_sizes(layout))
        try:
            shard(replace(alone, stages=(), ties=()), place.kind, name, 0, sizes)
        except UnevenShards as uneven:
            piece = shard(replace(alone, stages=(), ties=()), "param", name, 0, sizes)
            assert piece is not None
            pieces = prod(sizes.of(split.axis) for split in place.shape.splits)
            left = prod(piece.shape) // pieces * pieces
            index = _unravelled(left, piece.dimensions)
            axes = " * ".join(split.axis for split in place.shape.splits)
            message = f"no rank holds the {shown(place)} of index {index} of `{name}`: {uneven}"
            hint = f"say to what it is padded: `flat padded to {axes}`"
            yield at(layout, place, "TS0200", message, hint)


def _unconditioned(below: Placement | None) -> tuple[Placement, ...]:
    return () if below is None else (replace(below, when=None),)


def _unravelled(place: int, dimensions: tuple[Indices, ...]) -> str:
    """The index in the full tensor of a place in a rank's flattened shard."""
    found = []
    for each in reversed(dimensions):
        place, here = divmod(place, each.number)
        [index] = each.take(here, here + 1)
        found.append(index)
    return index_text(found[::-1])
