"""Tensors on which two layouts differ, whatever the order and the patterns of their places.

The cuts are compared as index sets: with the sizes of the layouts, and with larger meshes, since a
cut over one rank looks like none. Sizes named in both layouts have the later layout's numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from tspec.layout.indices import Indices
from tspec.layout.patterns import common
from tspec.layout.places import CUT_AS, placement_of
from tspec.layout.replicas import spread
from tspec.layout.rows import groups
from tspec.layout.shards import UnevenShards, indices
from tspec.layout.sizes import Sizes, free_sizes, sizes_of
from tspec.resolve.program import rules
from tspec.resolve.program.sharding import (
    Flat,
    LayoutDeclaration,
    Placement,
    Shape,
    TensorKind,
    splits,
)
from tspec.resolve.program.walk import walk

MOST_SETTINGS = 512
"""The number of settings of flags and axes up to which tensors are compared; with more, places are
compared one by one.
"""

FACTORS = (1, 2, 3)
"""The factors by which the axes of meshes are multiplied for a comparison."""


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """A tensor that two layouts place differently; None where no place of a layout fits it."""

    kind: TensorKind
    name: str
    old: Placement | None
    new: Placement | None


def differences(old: LayoutDeclaration, new: LayoutDeclaration) -> tuple[TensorDifference, ...]:
    """The first tensor that shows it, for each pair of places that say different things."""
    settings = _settings(old, new)
    if settings is None:
        return tuple(_place_by_place(old, new))
    same: set[tuple[int, int]] = set()
    found: dict[tuple[int, int], TensorDifference] = {}
    for kind, name in _tensors(old, new):
        for known in settings:
            pair = placement_of(old, kind, name, known), placement_of(new, kind, name, known)
            key = id(pair[0]), id(pair[1])
            if key in same or key in found:
                continue
            if _alike((old, new), pair):
                same.add(key)
            else:
                found[key] = TensorDifference(kind, name, *pair)
    return tuple(found.values())


# --- tensors and settings -----------------------------------------------------------------------


def _tensors(old: LayoutDeclaration, new: LayoutDeclaration) -> Iterator[tuple[TensorKind, str]]:
    """Tensors of the places of both layouts, and those that two places fit."""
    found: dict[tuple[TensorKind, str], None] = {}
    places = (*old.placements, *new.placements)
    for layout in (old, new):
        for group in groups(layout, sizes_of(layout)):
            found.update(((group.place.kind, name), None) for name, _ in group.names)
    found.update(((place.kind, place.pattern), None) for place in places)
    patterns = {(place.kind, place.pattern) for place in places}
    for (kind, one), (other_kind, other) in combinations(sorted(patterns), 2):
        if other_kind in (kind, CUT_AS.get(kind)) or kind == CUT_AS.get(other_kind):
            name = common(one, other)
            if name is not None:
                found[kind, name] = found[other_kind, name] = None
    yield from found


def _settings(
    old: LayoutDeclaration, new: LayoutDeclaration
) -> tuple[Mapping[str, int], ...] | None:
    """Values of flags and axes that distinguish all conditions; None if there are too many."""
    values: dict[str, set[int]] = {}
    numbers: set[int] = {1, 2}
    for place in (*old.placements, *new.placements):
        for each in () if place.when is None else walk(place.when):
            if isinstance(each, rules.Ambient):
                values.setdefault(each.name, set())
            elif isinstance(each, rules.Constant) and isinstance(each.value, int):
                numbers |= {each.value - 1, each.value, each.value + 1}
    flags = {*old.flags, *new.flags}
    axes = old.mesh.all_axes | new.mesh.all_axes
    ways = [
        (name, (0, 1) if name in flags else sorted({*numbers, axes.get(name, 1)} - {0, -1}))
        for name in values
    ]
    if prod(len(choices) for _, choices in ways) > MOST_SETTINGS:
        return None
    names = [name for name, _ in ways]
    return tuple(
        {**axes, **dict(zip(names, chosen, strict=True))}
        for chosen in product(*(choices for _, choices in ways))
    )


def _place_by_place(old: LayoutDeclaration, new: LayoutDeclaration) -> Iterator[TensorDifference]:
    """Places that are not in the other layout, or at another place there."""
    length = max(len(old.placements), len(new.placements))
    padded = [(*each.placements, *[None] * (length - len(each.placements))) for each in (old, new)]
    for before, after in zip(*padded, strict=True):
        if before != after:
            place = before or after
            assert place is not None
            yield TensorDifference(place.kind, place.pattern, before, after)


# --- two places ---------------------------------------------------------------------------------


def _alike(
    layouts: tuple[LayoutDeclaration, LayoutDeclaration],
    pair: tuple[Placement | None, Placement | None],
) -> bool:
    """True if two placements mean the same for a tensor."""
    old, new = pair
    if old is None or new is None:
        return old is new
    known = frozenset(layouts[0].mesh.all_axes) & frozenset(layouts[1].mesh.all_axes)
    if frozenset(old.partial) ^ frozenset(new.partial):
        return False
    same = [
        spread(layout, place).same & known
        for layout, place in zip(layouts, (old, new), strict=True)
    ]
    if same[0] != same[1]:
        return False
    if isinstance(old.shape, Flat) or isinstance(new.shape, Flat):
        return old.shape == new.shape
    alone = [
        {
            (split.axis, split.order)
            for split in splits(each.shape)
            if split.axis in known and layout.mesh.all_axes[split.axis] == 1
        }
        for layout, each in zip(layouts, (old, new), strict=True)
    ]
    if layouts[0].mesh == layouts[1].mesh and alone[0] != alone[1]:
        return False
    return all(_same_pieces(layouts, (old.shape, new.shape), factor) for factor in FACTORS)


def _same_pieces(
    layouts: tuple[LayoutDeclaration, LayoutDeclaration], shapes: tuple[Shape, Shape], factor: int
) -> bool:
    """True if ranks at one place of a mesh hold the same shards, with axes `factor` times as large."""
    axes = layouts[0].mesh.all_axes | layouts[1].mesh.all_axes
    axes = {axis: size * factor for axis, size in axes.items()}
    shared = dict(layouts[1].dims.sizes) if layouts[1].dims else {}
    sizes = []
    for layout in layouts:
        own = dict(layout.dims.sizes) if layout.dims else {}
        given = free_sizes(layouts[0]) | free_sizes(layouts[1])
        numbers = {name: size * factor for name, size in given.items()}
        numbers |= {name: shared.get(name, size) for name, size in own.items()}
        sizes.append(Sizes(numbers, axes))
    if len(shapes[0].dimensions) != len(shapes[1].dimensions):
        return False
    cut = sorted({split.axis for shape in shapes for split in splits(shape)})
    for at in product(*(range(axes[axis]) for axis in cut)):
        where = dict(zip(cut, at, strict=True))
        try:
            held = [
                [_blocks(indices(each, where, of)) for each in shape.dimensions]
                for shape, of in zip(shapes, sizes, strict=True)
            ]
        except UnevenShards:  # a cut that does not come out even says nothing
            return factor > 1
        if held[0] != held[1]:
            return False
    return True


def _blocks(held: Indices) -> tuple[int, int, tuple[tuple[int, int], ...]]:
    """The size, where padding begins, and all blocks, those that follow on one another as one."""
    found: list[tuple[int, int]] = []
    for run in held.runs:
        for start in run.starts():
            if found and sum(found[-1]) == start:
                found[-1] = (found[-1][0], found[-1][1] + run.length)
            else:
                found.append((start, run.length))
    return held.size, held.real, tuple(found)
