"""Finds the dimensions that the layout of a reference pads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tspec.equivalence.padding import RealSizes
from tspec.layout.conditions import is_true
from tspec.layout.places import CUT_AS, placement_of
from tspec.layout.shards import UnevenShards, indices
from tspec.layout.sizes import Sizes, UnknownSize
from tspec.resolve.program.sharding import (
    Dimension,
    LayoutDeclaration,
    Placement,
    Shape,
    TensorKind,
    matching,
)


def padded_places(
    layout: LayoutDeclaration, sizes: Sizes, kinds: Mapping[str, TensorKind]
) -> tuple[RealSizes, ...]:
    """The real sizes of padded tensors, in the order in which places count.

    `kinds` has the layout's word for each word of `compare`. A size of the input is not known
    before the run: a dimension of such a size is left as it is.
    """
    return tuple(
        each for word, kind in kinds.items() for each in _of_kind(layout, sizes, word, kind)
    )


def _of_kind(
    layout: LayoutDeclaration, sizes: Sizes, word: str, kind: TensorKind
) -> list[RealSizes]:
    """The places of a kind, up to the last one that pads: a place before it hides it."""
    found = [
        RealSizes(word, pattern, _real_sizes(place, sizes))
        for pattern, place in _places(layout, sizes, kind)
    ]
    while found and found[-1].sizes is not None and not any(found[-1].sizes):
        found.pop()
    return found


def _places(
    layout: LayoutDeclaration, sizes: Sizes, kind: TensorKind
) -> Iterator[tuple[str, Placement]]:
    """The regular expression of each place that applies to tensors of a kind."""
    known = sizes.known
    for tie in layout.ties:
        for name in (tie.left, tie.right):
            place = placement_of(layout, kind, name, known)
            if place is not None:
                yield re.escape(name), place
    for wanted in filter(None, (kind, CUT_AS.get(kind))):
        for place in layout.placements:
            if place.kind == wanted and is_true(place.when, known):
                yield matching(place.pattern), place


def _real_sizes(place: Placement, sizes: Sizes) -> tuple[int | None, ...] | None:
    """The real size of each padded dimension; None for a flattened parameter."""
    if not isinstance(place.shape, Shape):
        return None
    return tuple(_real_size(each, sizes) for each in place.shape.dimensions)


def _real_size(dimension: Dimension, sizes: Sizes) -> int | None:
    if not dimension.padding:
        return None
    try:
        return indices(dimension, dict.fromkeys(sizes.axes, 0), sizes).real
    except (UnknownSize, UnevenShards):
        return None
