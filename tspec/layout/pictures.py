"""Pictures of tensors: a rectangle for each block of indices that a rank holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from math import prod

from tspec.layout.indices import Indices
from tspec.layout.notation import shape_notation
from tspec.layout.rows import Row, groups, rows
from tspec.layout.shards import Shard
from tspec.layout.sizes import Sizes
from tspec.layout.text import indices_text, names_text, numbers_text, ranks_text
from tspec.resolve.program.sharding import LayoutDeclaration

MOST = 400
"""Rectangles of one shard; of shards in more blocks only the first are drawn."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, in parts of the tensor's width and height; `label` where it is the shard's largest."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class DrawnShard:
    """A shard of a tensor and the ranks that hold it. `hue` is in degrees; `mine`: the chosen rank is among them.

    `indices` has a text for each dimension, and one for the elements of a flat shard.
    """

    ranks: str
    indices: tuple[str, ...]
    hue: int
    mine: bool
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One tensor, or several with the same cut, and its shards.

    `cut` is its shape in the notation of layouts. `columns` name the dimensions of the shards'
    `indices`. `drawn` are the dimensions from top to bottom and from left to right, if there are
    more than those. `lost` are further dimensions in which shards differ, so that one may cover
    another.
    """

    kind: str
    names: str
    size: str
    cut: str
    columns: tuple[str, ...]
    drawn: tuple[int, ...]
    lost: tuple[int, ...]
    partial: str
    pieces: tuple[DrawnShard, ...]


def pictures(layout: LayoutDeclaration, rank: int, sizes: Sizes) -> tuple[Picture, ...]:
    """All tensors of known size, in the order of the layout's places. Raises UnevenShards."""
    held: dict[tuple[str, tuple[str, ...]], list[tuple[int, Row]]] = {}
    tensors = groups(layout, sizes)
    for each in range(layout.mesh.world):
        for row in rows(layout, each, sizes, tensors):
            if row.shard is not None:
                held.setdefault((row.place.kind, row.names), []).append((each, row))
    order = {id(place): number for number, place in enumerate(layout.placements)}
    found = sorted(held.values(), key=lambda of_one: order[id(of_one[0][1].place)])
    return tuple(_picture(each, rank) for each in found)


def _picture(held: list[tuple[int, Row]], chosen: int) -> Picture:
    pieces: dict[tuple[object, ...], list[tuple[int, Shard]]] = {}
    for rank, row in held:
        assert row.shard is not None
        key = (*(each.runs for each in row.shard.dimensions), row.shard.flat)
        pieces.setdefault(key, []).append((rank, row.shard))
    first = held[0][1]
    assert first.shard is not None
    axes, lost = _axes([each[0][1] for each in pieces.values()])
    drawn = tuple(
        _piece([rank for rank, _ in each], each[0][1], axes, 360 * number // len(pieces), chosen)
        for number, each in enumerate(pieces.values())
    )
    size = " × ".join(map(str, first.shard.full)) or "one number"
    partial = ", ".join(first.shard.partial)
    shown = axes if len(first.shard.dimensions) > len(axes) else ()
    names = names_text(first.names)
    columns = [f"dimension {number}" for number in range(len(first.shard.dimensions))]
    columns += ["flattened"] if first.shard.flat is not None else []
    cut = shape_notation(first.place.shape)
    return Picture(first.place.kind, names, size, cut, tuple(columns), shown, lost, partial, drawn)


def _axes(shards: list[Shard]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions to draw, at most two, and further ones in which shards differ.

    Dimensions in which shards differ come first. For flat shards the first dimension is drawn.
    """
    number = len(shards[0].dimensions)
    cut = [i for i in range(number) if len({shard.dimensions[i].runs for shard in shards}) > 1]
    if shards[0].flat is not None:
        cut = [0, *(i for i in cut if i)] if number else []
    others = [i for i in range(number) if i not in cut]
    return tuple(sorted([*cut, *others][:2])), tuple(cut[2:])


def _piece(
    ranks: list[int], shard: Shard, axes: tuple[int, ...], hue: int, chosen: int
) -> DrawnShard:
    indices = [*map(indices_text, shard.dimensions)]
    if shard.flat is not None:
        indices.append(f"{shard.flat[0]}..{shard.flat[1] - 1}")
    boxes = tuple(islice(_boxes(shard, axes, numbers_text(ranks)), MOST))
    return DrawnShard(ranks_text(ranks), tuple(indices), hue, chosen in ranks, boxes)


def _boxes(shard: Shard, axes: tuple[int, ...], label: str) -> Iterator[Box]:
    """The blocks of two dimensions, or of one from left to right. Of a flat shard whole rows."""
    across = shard.dimensions[axes[-1]] if axes else None
    down = shard.dimensions[axes[0]] if len(axes) > 1 else None
    if shard.flat is not None and across is not None:
        columns = prod(each.number for each in shard.dimensions[1:])
        first, last = shard.flat
        if down is None:
            across = across.take(first, min(last, across.number))
        else:
            down = down.take(first // columns, min(-(-last // columns), down.number))
    blocks = list(product(_spans(down), _spans(across)))
    largest = max(range(len(blocks)), key=lambda i: _area(*blocks[i])) if blocks else 0
    for number, ((y, height), (x, width)) in enumerate(blocks):
        yield Box(x, y, width, height, label if number == largest else "")


def _area(down: tuple[float, float], across: tuple[float, float]) -> float:
    return round(down[1] * across[1], 9)


def _spans(indices: Indices | None) -> Iterator[tuple[float, float]]:
    """The begin and the length of each block, as fractions of the padded dimension."""
    if indices is None:
        yield 0.0, 1.0
        return
    for run in islice(indices.runs, MOST):
        for block in range(min(run.count, MOST)):
            yield (run.start + block * run.stride) / indices.size, run.length / indices.size
