"""From data changed by round-off: the cut whose shards are nearest to the ranks' tensors.

A parallel run adds up in another order than one device, so few elements have the same bits after a
step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations, pairwise, product
from math import inf, prod

import torch
from torch import Tensor

from tspec.infer.layouts.fit import candidates, held_of
from tspec.infer.layouts.shards import Numbers, ShardIndices
from tspec.layout.ranks import coordinates
from tspec.layout.shards import UnevenShards, indices
from tspec.layout.sizes import Sizes
from tspec.resolve.program.sharding import Axes, Dimension

Held = Mapping[int, Tensor]
Indices = Mapping[int, tuple[Numbers, ...]]

NEAR = 0.1
"""The tolerance, as a fraction of the standard deviation of a tensor's elements.

Adam may turn round-off in zero gradients into differences of this size.
"""
CLEARLY = 10
"""The factor by which the nearest cut must be nearer than the next one."""


def nearest(name: str, whole: Tensor, held: Held, axes: Axes) -> ShardIndices | None:
    """The shards, replicas or summands nearest to the ranks' tensors. None if none is near, or
    several are.
    """
    if not whole.is_floating_point():
        return None
    full = whole.double()
    ranks = {rank: each.double() for rank, each in held.items()}
    shape = tuple(map(max, zip(*(each.shape for each in ranks.values()), strict=True)))
    mesh = {axis: size for axis, size in axes if size > 1 and axis != "pp"}
    if all(each.shape == whole.shape for each in ranks.values()):
        return _same_shape(name, full, ranks, axes)
    found: list[tuple[float, Indices]] = []
    for each in _cuts(tuple(whole.shape), shape, mesh):
        pieces = _pieces(each, tuple(whole.shape), ranks, axes)
        if pieces is not None and all(pieces != before for _, before in found):
            found.append((_distance(full, ranks, pieces), pieces))
    found.sort(key=lambda each: each[0])
    distances = [each[0] for each in found]
    if not _is_clear(distances):
        return None
    return ShardIndices(name, tuple(whole.shape), found[0][1], (), _note(distances[0]))


def _same_shape(name: str, whole: Tensor, held: Held, axes: Axes) -> ShardIndices | None:
    """Replicas, or summands over one axis."""
    everything = tuple(tuple(range(size)) for size in whole.shape)
    ways: list[tuple[float, tuple[str, ...]]] = [
        (_far(whole, ((each, whole) for each in held.values())), ())
    ]
    for axis, size in axes:
        if size > 1:
            sums: dict[tuple[int, ...], Tensor] = {}
            for rank, each in held.items():
                at = coordinates(axes, rank)
                others = tuple(place for of, place in at.items() if of != axis)
                sums[others] = sums[others] + each if others in sums else each
            ways.append((_far(whole, ((each, whole) for each in sums.values())), (axis,)))
    ways.sort(key=lambda each: each[0])
    if not _is_clear([each[0] for each in ways]):
        return None
    distance, partial = ways[0]
    shape, pieces = tuple(whole.shape), dict.fromkeys(held, everything)
    return ShardIndices(name, shape, pieces, partial, _note(distance))


def _cuts(
    full: tuple[int, ...], mine: tuple[int, ...], mesh: Mapping[str, int]
) -> Iterator[tuple[Dimension, ...]]:
    """All cuts of the `full` shape that give each rank at most the shape `mine`. No axis of the mesh cuts two dimensions."""
    dimensions = [
        [((), Dimension(size))] if size == length else list(_of_dimension(size, length, mesh))
        for size, length in zip(full, mine, strict=True)
    ]
    for each in product(*dimensions):
        used = list(chain.from_iterable(axes for axes, _ in each))
        if len(used) == len(set(used)):
            yield tuple(dimension for _, dimension in each)


def _of_dimension(
    size: int, length: int, mesh: Mapping[str, int]
) -> Iterator[tuple[tuple[str, ...], Dimension]]:
    outer = [each for each in range(2, length) if length % each == 0]
    parts = [tuple(_grouped(length, each)) for each in (1, *outer) if length // each > 3]
    for number in range(1, len(mesh) + 1):
        for axes in combinations(mesh, number):
            over = {axis: mesh[axis] for axis in axes}
            if length * prod(over.values()) >= size:
                yield from ((axes, each) for each in candidates(size, length, outer, over, parts))


def _grouped(length: int, keys: int) -> Iterator[int]:
    """The parts of a rank's `length`: queries, then `keys` elements each for keys and for values."""
    yield from (length - 2 * keys, keys, keys)


def _pieces(
    dimensions: tuple[Dimension, ...], full: tuple[int, ...], held: Held, axes: Axes
) -> Indices | None:
    """Each rank's shard of a cut, without the padding that it does not hold; None if its shape
    differs, or it is padding alone.
    """
    sizes = Sizes({}, dict(axes))
    found = {}
    try:
        for rank, each in held.items():
            where = coordinates(axes, rank)
            found[rank] = tuple(
                held_of(tuple(indices(cut, where, sizes)), length, size)
                for cut, length, size in zip(dimensions, each.shape, full, strict=True)
            )
            if tuple(map(len, found[rank])) != tuple(each.shape) or _is_padding(found[rank], full):
                return None
    except UnevenShards:
        return None
    return found


def _is_padding(numbers: tuple[Numbers, ...], full: tuple[int, ...]) -> bool:
    return any(min(each) >= size for each, size in zip(numbers, full, strict=True) if each)


def _distance(whole: Tensor, held: Held, pieces: Indices) -> float:
    """The distance of the ranks' tensors from the shards, without padding."""

    def pairs() -> Iterator[tuple[Tensor, Tensor]]:
        for rank, mine in held.items():
            part = whole
            for dim, numbers in enumerate(pieces[rank]):
                size = whole.shape[dim]
                real = sum(each < size for each in numbers)
                part = part.index_select(dim, torch.tensor(numbers[:real], dtype=torch.long))
                mine = mine.narrow(dim, 0, real)
            yield mine, part

    return _far(whole, pairs())


def _far(whole: Tensor, pairs: Iterable[tuple[Tensor, Tensor]]) -> float:
    """The root mean square of differences, over the spread of the full tensor's elements."""
    square, number = 0.0, 0
    for one, other in pairs:
        square += float((one - other).square().sum())
        number += one.numel()
    spread = float(whole.std(correction=0)) if whole.numel() else 0.0
    return (square / number) ** 0.5 / spread if number and spread else inf


def _is_clear(distances: list[float]) -> bool:
    """True if the first of ascending distances is near, and the next one much larger."""
    if not distances or not distances[0] <= NEAR:
        return False
    return all(CLEARLY * one <= other for one, other in pairwise(distances[:2]))


def _note(distance: float) -> str:
    return f"the nearest cut; numbers differ by {distance:.0e} of their spread" * (distance > 1e-3)
