"""Layouts made of values, and the same cuts done by numpy on a tensor of indices."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import strategies as st

from tspec.resolve.program.sharding import (
    Dimension,
    Flat,
    LayoutDeclaration,
    MeshDeclaration,
    Placement,
    Product,
    Shape,
    Split,
    Sum,
)
from tspec.source import Source, Span

AXES = (("tp", 2), ("cp", 3), ("dp", 2))


def layout_of(
    *placements: Placement, axes=AXES, ties=(), stages=(), replicated=(), regroups=(), dims=None
) -> LayoutDeclaration:
    """A layout without text."""
    mesh = MeshDeclaration("m", "t", tuple(axes), tuple(regroups))
    return LayoutDeclaration(
        *("m", "t", mesh, dims, (), placements, tuple(ties), tuple(stages), tuple(replicated)),
        Source("t", ""),
        Span(0, 0),
    )


def factors(dimension: Dimension) -> list[tuple[int, tuple[Split, ...]]]:
    """The sizes of a dimension of numbers, and how each is cut."""
    if isinstance(dimension.size, Product):
        return [each for inner in dimension.size.dimensions for each in factors(inner)]
    assert isinstance(dimension.size, int)
    return [(dimension.size, dimension.splits)]


def padded(size: int, padding: tuple) -> int:
    return size if not padding else -(-size // prod(padding)) * prod(padding)


def size_of(dimension: Dimension) -> int:
    """The size of a dimension of numbers, without padding."""
    if isinstance(dimension.size, Sum):
        return sum(size_of(Dimension(part)) for part in dimension.size.terms)
    return prod(size for size, _ in factors(dimension))


def numpy_cut(shape: Shape, where: dict[str, int], axes=AXES) -> np.ndarray:
    """A rank's tensor of the indices in the full tensor, -1 where it is padding.

    Only reshapes and splits of numpy: each size is an axis of the array, cut, then joined again. Shards
    one after another are split from each other first.
    """
    real = [size_of(each) for each in shape.dimensions]
    whole = [padded(size, d.padding) for size, d in zip(real, shape.dimensions, strict=True)]
    full = np.full(whole, -1)
    full[tuple(slice(0, size) for size in real)] = np.arange(prod(real)).reshape(real)
    for axis, dimension in enumerate(shape.dimensions):
        full = _numpy_dimension(full, axis, dimension, where, dict(axes))
    return full


def _numpy_dimension(
    full: np.ndarray, axis: int, dimension: Dimension, where: dict[str, int], sizes: dict[str, int]
) -> np.ndarray:
    if isinstance(dimension.size, Sum):
        parts = [Dimension(part) for part in dimension.size.terms]
        ends = np.cumsum([size_of(each) for each in parts])
        cut = zip(np.split(full, ends[:-1], axis), parts, strict=True)
        return np.concatenate(
            [_numpy_dimension(part, axis, of, where, sizes) for part, of in cut], axis
        )
    inside = factors(dimension) if not dimension.padding else [(full.shape[axis], dimension.splits)]
    before, after = full.shape[:axis], full.shape[axis + 1 :]
    full = full.reshape(*before, *(size for size, _ in inside), *after)
    for place, (_, splits) in enumerate(inside):
        for split in splits:
            full = _numpy_piece(full, axis + place, split, (sizes[split.axis], where[split.axis]))
    rest = len(before) + len(inside)
    full = full.reshape(*before, prod(full.shape[axis:rest]), *after)
    if isinstance(dimension.size, Product):
        for split in dimension.splits:
            full = _numpy_piece(full, axis, split, (sizes[split.axis], where[split.axis]))
    return full


def _numpy_piece(full: np.ndarray, axis: int, split: Split, at: tuple[int, int]) -> np.ndarray:
    ranks, rank = at
    if split.order == "contiguous":
        return np.split(full, ranks, axis)[rank]
    pieces = np.split(full, 2 * ranks, axis)
    return np.concatenate([pieces[rank], pieces[2 * ranks - 1 - rank]], axis)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Placements of tensors with one to three dimensions of numbers, cut evenly over some axes."""
    left = draw(st.permutations(AXES))
    left = left[: draw(st.integers(0, len(left)))]

    def cuts() -> tuple[tuple[Split, ...], int]:
        """Over some axes, and what they divide."""
        mine = [left.pop() for _ in range(draw(st.integers(0, min(2, len(left)))))]
        splits = tuple(
            Split(axis, draw(st.sampled_from(("contiguous", "zigzag")))) for axis, _ in mine
        )
        unit = prod(n * (1 + (s.order == "zigzag")) for (_, n), s in zip(mine, splits, strict=True))
        return splits, unit

    def size(padding: bool) -> Dimension:
        splits, unit = cuts()
        if padding and draw(st.booleans()):
            return Dimension(draw(st.integers(1, 2 * unit)), (unit,), splits)
        return Dimension(unit * draw(st.integers(1, 3)), (), splits)

    def parts() -> Sum:
        splits, unit = cuts()
        numbers = [unit * draw(st.integers(1, 3)) for _ in range(draw(st.integers(2, 3)))]
        within = Dimension(draw(st.integers(1, 3)))
        cut = (Dimension(each, (), splits) for each in numbers)
        return Sum(tuple(Product((each, within)) for each in cut))

    def dimension() -> Dimension:
        if draw(st.booleans()):
            return Dimension(parts())
        if draw(st.booleans()):
            inside = tuple(size(padding=False) for _ in range(draw(st.integers(2, 3))))
            return Dimension(Product(inside))
        return size(padding=True)

    dimensions = tuple(dimension() for _ in range(draw(st.integers(1, 3))))
    return Placement("param", "w", Shape(dimensions))


def flat_over(*axes: str, padding=()) -> Placement:
    """Flat shards of every parameter's state."""
    return Placement("state", "*", Flat(tuple(map(Split, axes)), padding))
