"""Pictures of tensors: a rectangle for each block of indices that a rank holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product
from math import prod

from tspec.layout.indices import Indices
from tspec.layout.rows import Row, rows
from tspec.layout.shards import Shard
from tspec.layout.sizes import Sizes
from tspec.layout.text import indices_text, names_text, numbers_text, ranks_text
from tspec.resolve.program.sharding import LayoutDeclaration

MOST = 400
"""Rectangles of one piece; of pieces in more blocks only the first are drawn."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, in parts of the tensor's width and height; `label` where it is the piece's largest."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Piece:
    """What some ranks hold of a tensor. `hue` is in degrees; `mine`: the chosen rank is among them."""

    ranks: str
    indices: str
    hue: int
    mine: bool
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """One tensor, or several that are cut alike, and its pieces. `size` is in dimensions of the text."""

    kind: str
    names: str
    size: str
    partial: str
    pieces: tuple[Piece, ...]


def pictures(layout: LayoutDeclaration, rank: int, sizes: Sizes) -> tuple[Picture, ...]:
    """All tensors of known size, in the order of the layout's places. Raises Uneven."""
    held: dict[tuple[str, tuple[str, ...]], list[tuple[int, Row]]] = {}
    for each in range(layout.mesh.world):
        for row in rows(layout, each, sizes):
            if row.shard is not None:
                held.setdefault((row.place.kind, row.names), []).append((each, row))
    order = {id(place): number for number, place in enumerate(layout.placements)}
    found = sorted(held.values(), key=lambda all_: order[id(all_[0][1].place)])
    return tuple(_picture(each, rank) for each in found)


def _picture(held: list[tuple[int, Row]], chosen: int) -> Picture:
    pieces: dict[tuple[object, ...], list[tuple[int, Shard]]] = {}
    for rank, row in held:
        assert row.shard is not None
        key = (*(each.runs for each in row.shard.dimensions), row.shard.flat)
        pieces.setdefault(key, []).append((rank, row.shard))
    first = held[0][1]
    assert first.shard is not None
    drawn = tuple(
        _piece([rank for rank, _ in each], each[0][1], 360 * number // len(pieces), chosen)
        for number, each in enumerate(pieces.values())
    )
    size = " × ".join(map(str, first.shard.full)) or "one number"
    partial = ", ".join(first.shard.partial)
    return Picture(first.place.kind, names_text(first.names), size, partial, drawn)


def _piece(ranks: list[int], shard: Shard, hue: int, chosen: int) -> Piece:
    indices = "; ".join(map(indices_text, shard.dimensions))
    if shard.flat is not None:
        indices += f"; flattened {shard.flat[0]}..{shard.flat[1] - 1}"
    boxes = tuple(islice(_boxes(shard, numbers_text(ranks)), MOST))
    return Piece(ranks_text(ranks), indices, hue, chosen in ranks, boxes)


def _boxes(shard: Shard, label: str) -> Iterator[Box]:
    """The blocks of the first two dimensions, the second from left to right.

    A tensor of one dimension is drawn from left to right. Of a flat shard whole rows are drawn.
    """
    down, across = (*shard.dimensions, None, None)[:2]
    if across is None:
        down, across = None, down
    if shard.flat is not None and across is not None:
        columns = prod(map(len, shard.dimensions[1:]))
        first, last = shard.flat
        if down is None:
            across = across.take(first, min(last, len(across)))
        else:
            down = down.take(first // columns, min(-(-last // columns), len(down)))
    blocks = list(product(_spans(down), _spans(across)))
    largest = max(range(len(blocks)), key=lambda i: _area(*blocks[i])) if blocks else 0
    for number, ((y, height), (x, width)) in enumerate(blocks):
        yield Box(x, y, width, height, label if number == largest else "")


def _area(down: tuple[float, float], across: tuple[float, float]) -> float:
    return round(down[1] * across[1], 9)


def _spans(indices: Indices | None) -> Iterator[tuple[float, float]]:
    """Where each block begins and how long it is, in parts of the padded dimension."""
    if indices is None:
        yield 0.0, 1.0
        return
    for run in islice(indices.runs, MOST):
        for block in range(min(run.count, MOST)):
            yield (run.start + block * run.stride) / indices.size, run.length / indices.size
