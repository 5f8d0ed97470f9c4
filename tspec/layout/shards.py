"""The shard of a tensor on a rank: exact indices in the full tensor, in the rank's own order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from tspec.layout.indices import Indices, all_of
from tspec.layout.places import CUT_AS, placement_of, stages_of
from tspec.layout.ranks import coordinates_of
from tspec.layout.sizes import Sizes
from tspec.resolve.program.sharding import (
    Dimension,
    Flat,
    LayoutDeclaration,
    Placement,
    Product,
    Shape,
    Split,
    Stage,
    Sum,
    TensorKind,
    Term,
)


class UnevenShards(Exception):
    """The shards of a dimension differ in size. The message holds the numbers."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A rank's shard of one tensor.

    `dimensions` are the indices that it has in each dimension: it holds every combination. With
    `flat` it holds only those places, first to last (not included), of the combinations in
    row-major order; places beyond them are padding. Over the axes of `partial` it is a summand.
    """

    kind: TensorKind
    name: str
    rank: int
    dimensions: tuple[Indices, ...]
    flat: tuple[int, int] | None
    partial: tuple[str, ...]
    stage: Stage | None
    place: Placement

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rank's tensor, padding included."""
        if self.flat is not None:
            return (self.flat[1] - self.flat[0],)
        return tuple(each.number for each in self.dimensions)

    @property
    def full(self) -> tuple[int, ...]:
        """The shape of the full tensor, without padding."""
        return tuple(each.real for each in self.dimensions)

    def indices(self) -> Iterator[tuple[int, ...] | None]:
        """The index in the full tensor of each element in row-major order; None for padding."""
        for place, index in enumerate(product(*self.dimensions)):
            if self.flat is None or self.flat[0] <= place < self.flat[1]:
                real = all(i < each.real for i, each in zip(index, self.dimensions, strict=True))
                yield index if real else None
        if self.flat is not None:
            beyond = max(self.flat[0], prod(each.number for each in self.dimensions))
            yield from (None for _ in range(beyond, self.flat[1]))


def shard(
    layout: LayoutDeclaration, kind: TensorKind, name: str, rank: int, sizes: Sizes
) -> Shard | None:
    """A rank's shard of a tensor; None if it holds none of it, or no place defines its cut.

    Raises UnknownSize, and UnevenShards where a cut is not even.
    """
    place = placement_of(layout, kind, name, sizes.known)
    if place is None:
        return None
    stage = stage_on(layout, name, rank)
    if layout.stages and stage is None:
        return None
    where = coordinates_of(layout.mesh, rank)
    dimensions, flat = _held(layout, place, (kind, name), where, sizes)
    return Shard(kind, name, rank, dimensions, flat, place.partial, stage, place)


def stage_on(layout: LayoutDeclaration, name: str, rank: int) -> Stage | None:
    """The stage of a rank that has a tensor's module, or None if it has no such stage.

    Where one rank stands along `pp`, it has all stages.
    """
    at = coordinates_of(layout.mesh, rank).get("pp", 0)
    alone = dict(layout.mesh.axes).get("pp") == 1
    return next((each for each in stages_of(layout, name) if alone or each.number == at), None)


def _held(
    layout: LayoutDeclaration,
    place: Placement,
    tensor: tuple[TensorKind, str],
    where: Mapping[str, int],
    sizes: Sizes,
) -> tuple[tuple[Indices, ...], tuple[int, int] | None]:
    if isinstance(place.shape, Shape):
        return tuple(indices(each, where, sizes) for each in place.shape.dimensions), None
    base = flattened(layout, *tensor, sizes)
    dimensions = tuple(indices(each, where, sizes) for each in base.dimensions) if base else ()
    elements = prod(each.number for each in dimensions)
    whole = all_of(_padded(elements, place.shape.padding, sizes))
    [run] = _cut(whole, place.shape.splits, where, sizes).runs
    return dimensions, (run.start, run.start + run.length)


def flattened(layout: LayoutDeclaration, kind: TensorKind, name: str, sizes: Sizes) -> Shape | None:
    """The placement of the tensor that a flat shard is a part of: the parameter of the same name."""
    below = placement_of(layout, CUT_AS.get(kind, kind), name, sizes.known)
    return None if below is None or isinstance(below.shape, Flat) else below.shape


def indices(dimension: Dimension, where: Mapping[str, int], sizes: Sizes) -> Indices:
    """The indices of a dimension that a rank has. Raises UnknownSize, UnevenShards."""
    found = _of_size(dimension.size, where, sizes)
    if dimension.padding:
        found = all_of(found.real, _padded(found.real, dimension.padding, sizes))
    return _cut(found, dimension.splits, where, sizes)


def _of_size(size: Term | Sum | Product, where: Mapping[str, int], sizes: Sizes) -> Indices:
    """The indices of a size that is not padded, and cut within itself alone."""
    match size:
        case Product(dimensions=inside):
            found = indices(inside[0], where, sizes)
            for each in inside[1:]:
                found = found.times(indices(each, where, sizes))
        case Sum(terms=terms):
            found = _of_size(terms[0], where, sizes)
            for term in terms[1:]:
                found = found.beside(_of_size(term, where, sizes))
        case term:
            found = all_of(sizes.of(term))
    return found


def _padded(size: int, padding: tuple[Term, ...], sizes: Sizes) -> int:
    unit = prod(map(sizes.of, padding))
    return -(-size // unit) * unit


def _cut(
    whole: Indices, splits: tuple[Split, ...], where: Mapping[str, int], sizes: Sizes
) -> Indices:
    """A rank's shard after several cuts, each applied to the result of the one before."""
    for split in splits:
        ranks, rank = sizes.of(split.axis), where[split.axis]
        pieces = ranks if split.order == "contiguous" else 2 * ranks
        length, rest = divmod(whole.number, pieces)
        if rest:
            raise UnevenShards(
                f"{whole.number} is not divisible into {pieces} parts over `{split.axis}`"
            )
        mine = whole.take(rank * length, (rank + 1) * length)
        if split.order == "zigzag":
            mirror = pieces - 1 - rank
            mine = mine.then(whole.take(mirror * length, (mirror + 1) * length))
        whole = mine
    return whole
