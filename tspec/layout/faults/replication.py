"""TS0201: an index that several ranks hold without a word; TS0200: one lost between factorisations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tspec.diagnostics import Diagnostic
from tspec.layout.faults.words import MOST_RANKS, at, index_text, shown
from tspec.layout.places import flattened_from
from tspec.layout.ranks import coordinates_of, rank_at
from tspec.layout.replicas import AxisUse, spread
from tspec.layout.shards import indices
from tspec.layout.sizes import free_sizes, sizes_of
from tspec.resolve.program.sharding import Axes, LayoutDeclaration, Placement, Shape


def faults(layout: LayoutDeclaration) -> Iterator[Diagnostic]:
    """Axes that a placement does not mention, and axes that cannot shard one tensor together."""
    for place in layout.placements:
        for below in flattened_from(layout, place):
            how = spread(layout, place, below)
            said = spread(layout, below).silent if below else ()
            yield from _silent(layout, (place, below), how, said)
            yield from _of_two_factorisations(layout, place, below, how)


def _silent(
    layout: LayoutDeclaration,
    of: tuple[Placement, Placement | None],
    how: AxisUse,
    said: tuple[str, ...],
) -> Iterator[Diagnostic]:
    """Axes over which a tensor is neither cut nor added up nor declared the same.

    Axes in `said` are reported for the parameter of a flat shard.
    """
    silent = [axis for axis in how.silent if axis not in said]
    if how.axes is None or not silent:
        return
    place, below = of
    axis = silent[0]
    axes: Axes = tuple((name, max(size, 1 + (name == axis))) for name, size in how.axes)
    ranks = f"ranks 0 and {rank_at(axes, {axis: 1})}"
    more = f" with 2 ranks on `{axis}`" if axes != how.axes else ""
    tensor = shown(place) + (f" of `{below.pattern}`" if below else "")
    shape = place.shape if below is None else below.shape
    index = index_text([0] * (len(shape.dimensions) if isinstance(shape, Shape) else 1))
    message = f"{ranks} both hold index {index} of {tensor}{more}, and nothing says that they are replicas"
    hint = f"cut it over `{axis}`, or say `replicated {', '.join(silent)}` here or for the layout"
    yield at(layout, place, "TS0201", message, hint)


def _of_two_factorisations(
    layout: LayoutDeclaration, place: Placement, below: Placement | None, how: AxisUse
) -> Iterator[Diagnostic]:
    """Axes of two factorisations are not free of each other: some places on both have no rank."""
    if how.axes is not None:
        return
    mesh = layout.mesh
    counted = range(mesh.world if mesh.world <= MOST_RANKS else 0)
    cut = sorted(place.cut_over | (below.cut_over if below else frozenset()))
    ranks = (coordinates_of(mesh, rank) for rank in counted)
    there = {tuple(rank[axis] for axis in cut) for rank in ranks}
    hint = "cut one tensor over axes of the mesh, or over those of one regrouping"
    for place_on in product(*(range(mesh.all_axes[axis]) for axis in cut)) if counted else ():
        if place_on not in there:
            on = dict(zip(cut, place_on, strict=True))
            index = _first_index(layout, below or place, on)
            where = ", ".join(f"`{axis}` {number}" for axis, number in on.items())
            message = f"no rank holds index {index} of {shown(place)}: none stands at {where}"
            yield at(layout, place, "TS0200", message, hint)
            return
    axes = " and ".join(f"`{axis}`" for axis in cut)
    message = (
        f"{axes} of {shown(place)} are axes of two factorisations: with other numbers of ranks "
        "some indices have no rank"
    )
    yield at(layout, place, "TS0200", message, hint)


def _first_index(layout: LayoutDeclaration, place: Placement, on: dict[str, int]) -> str:
    """The first index that a rank would hold at a place on the axes."""
    if not isinstance(place.shape, Shape):
        return "0"
    sizes = sizes_of(layout, free_sizes(layout))
    where = {**dict.fromkeys(layout.mesh.all_axes, 0), **on}
    return index_text([next(iter(indices(d, where, sizes))) for d in place.shape.dimensions])
