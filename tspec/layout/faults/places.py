"""TS0202 to TS0204: tensors that no placement shards, that no stage has, or that are tied and
sharded in two ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tspec.diagnostics import Diagnostic
from tspec.layout.faults.words import MOST_RANKS, at, index_text, shown
from tspec.layout.indices import Indices
from tspec.layout.places import CUT_AS, flattened_from, on_a_stage
from tspec.layout.shards import shard
from tspec.layout.sizes import free_sizes, sizes_of
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.sharding import LayoutDeclaration, Placement, Tie


def faults(layout: LayoutDeclaration) -> Iterator[Diagnostic]:
    """Faults of conditions, stages and ties."""
    yield from _without_place(layout)
    for place in layout.placements:
        yield from _on_no_stage(layout, place)
    for tie in layout.ties:
        yield from _tied_but_cut_differently(layout, tie)


def _without_place(layout: LayoutDeclaration) -> Iterator[Diagnostic]:
    """Settings in which no place defines a tensor's cut, and flat shards without a parameter."""
    from tspec.logic.coverage import covered

    for place in layout.placements:
        if not flattened_from(layout, place):
            message = f"no place says how the parameters of {shown(place)} are cut"
            hint = f'add `param "{place.pattern}"`: a flat shard is a part of a rank\'s shard of the parameter'
            yield at(layout, place, "TS0202", message, hint)
    seen = set()
    for place in layout.placements:
        if place.kind in CUT_AS or (place.kind, place.pattern) in seen:
            continue
        seen.add((place.kind, place.pattern))
        found: list[Expr | None] = [
            each.when
            for each in layout.placements
            if each.kind == place.kind and each.fits(place.pattern)
        ]
        conditions = [each for each in found if each is not None]
        if len(conditions) < len(found):
            continue
        answer = covered(conditions)
        if not answer.yes:
            settings = " and ".join(f"`{name}` {value}" for name, value in answer.witness.items())
            message = f"with {settings} no place says how {shown(place)} is cut"
            hint = "add a place for the other case, last and without `when`, or with the contrary"
            yield at(layout, place, "TS0202", message, hint)


def _on_no_stage(layout: LayoutDeclaration, place: Placement) -> Iterator[Diagnostic]:
    if not layout.stages or place.kind in CUT_AS:
        return
    if not on_a_stage(layout, place.pattern):
        message = f"no stage has the module of {shown(place)}, so that no rank holds it"
        yield at(layout, place, "TS0203", message, "add the module to a `stage`")


def _tied_but_cut_differently(layout: LayoutDeclaration, tie: Tie) -> Iterator[Diagnostic]:
    """Tied tensors are one: where both have a place, each rank holds the same of both."""
    names = (tie.left, tie.right)
    found = [
        next((p for p in layout.placements if p.kind == "param" and p.fits(name)), None)
        for name in names
    ]
    one, other = found
    if one is None or other is None or one.shape == other.shape:
        return
    alone = replace(layout, stages=(), ties=())
    sizes = sizes_of(layout, free_sizes(layout))
    flags = replace(sizes, flags=frozenset(layout.flags))
    for rank in range(min(layout.mesh.world, MOST_RANKS)):
        pieces = [shard(alone, "param", name, rank, flags) for name in names]
        index = _difference(*(each.dimensions if each else () for each in pieces))
        if index is not None:
            message = (
                f"rank {rank} holds index {index_text(index)} of only one of `{tie.left}` and "
                f"`{tie.right}`, which are one tensor"
            )
            yield at(layout, other, "TS0204", message, "leave out the place of one of them")
            return


def _difference(one: tuple[Indices, ...], other: tuple[Indices, ...]) -> list[int] | None:
    """An index that is in one of two shards, or None if there is none."""
    if len(one) != len(other):
        return [0]
    index = [next(iter(each)) for each in one]
    for place, (first, second) in enumerate(zip(one, other, strict=True)):
        extra = first.not_in(second)
        extra = second.not_in(first) if extra is None else extra
        if extra is not None:
            index[place] = extra
            return index
    return None
