"""From a layout to the shard of each rank as plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.equivalence.cut import Cut
from tspec.layout.places import CUT_AS, placement_of
from tspec.layout.shards import Shard, flattened
from tspec.layout.sizes import Sizes, input_size
from tspec.resolve.program.sharding import LayoutDeclaration, Shape, TensorKind


def cut_of(shard: Shard) -> Cut:
    """The cut that a shard describes."""
    runs = tuple(
        tuple((run.start, run.length, run.stride, run.count) for run in each.runs)
        for each in shard.dimensions
    )
    return Cut(shard.full, runs, shard.flat)


def sized(
    layout: LayoutDeclaration, kind: TensorKind, name: str, full: Sequence[int], sizes: Sizes
) -> Sizes:
    """Sizes with the input's (`batch`, `seq`) added, as read from a tensor of shape `full`."""
    place = placement_of(layout, kind, name, sizes.known)
    if place is None:
        return sizes
    shape = place.shape
    if not isinstance(shape, Shape):
        below = flattened(layout, CUT_AS.get(kind, kind), name, sizes)
        shape = below if below is not None else Shape(())
    # A shape that is not known has no dimensions; one with others than the tensor is a fault where it is cut.
    shown = {}
    for each, size in zip(shape.dimensions, full, strict=False):
        of = input_size(each, sizes)
        if of is not None:
            shown[of.name] = size // of.others
    return Sizes({**shown, **sizes.sizes}, sizes.axes, sizes.flags)
