"""Faults of random layouts, by brute force: a layout has none if and only if each index is held as it says."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layout.cut import layout_of
from tspec.layout.faults import faults
from tspec.layout.ranks import coordinates
from tspec.layout.replicas import replicas, spread
from tspec.layout.shards import shard
from tspec.layout.sizes import sizes_of
from tspec.resolve.program.rules import Program, Vocabulary
from tspec.resolve.program.sharding import Dimension, LayoutDeclaration, Placement, Shape, Split

AXES = (("tp", 2), ("cp", 2), ("dp", 2))
EXPERTS = (("ep", 4), ("edp", 2))
SIZES = dict(AXES) | dict(EXPERTS)


@st.composite
def layouts(draw: st.DrawFn) -> LayoutDeclaration:
    """Layouts of one tensor, over the axes of the mesh or of its experts, some of them forgotten."""
    names = [name for name, _ in draw(st.sampled_from([AXES, EXPERTS]))]
    uses = {
        name: draw(st.sampled_from(("cut", "partial", "same", "default", ""))) for name in names
    }
    cut = [name for name in names if uses[name] == "cut"]
    first = draw(st.integers(0, len(cut)))
    dimensions = []
    for mine in (cut[:first], cut[first:]):
        splits = tuple(
            Split(
                axis,
                draw(st.sampled_from(("contiguous", "zigzag"))),
            )
            for axis in mine
        )
        pieces = prod(SIZES[s.axis] * (1 + (s.order == "zigzag")) for s in splits)
        dimensions.append(Dimension(pieces * draw(st.integers(1, 2)), (), splits))

    def used(how: str) -> tuple[str, ...]:
        return tuple(name for name in names if uses[name] == how)

    place = Placement("param", "w", Shape(tuple(dimensions)), used("partial"), used("same"))
    return layout_of(place, axes=AXES, regroups=(("experts", EXPERTS),), replicated=used("default"))


def program_of(layout: LayoutDeclaration) -> Program:
    return Program((), Vocabulary((), (), (), ()), (), layouts=(layout,))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(layouts())
def test_a_layout_without_faults_says_who_holds_what(layout: LayoutDeclaration) -> None:
    found = faults(program_of(layout))
    [place] = layout.placements
    how = spread(layout, place)
    ranks = range(layout.mesh.world)
    pieces = [shard(layout, "param", "w", rank, sizes_of(layout)) for rank in ranks]
    held = [frozenset(piece.indices()) if piece else frozenset() for piece in pieces]
    whole = frozenset().union(*held)
    assert len(whole) == prod(pieces[0].full if pieces[0] else ())
    axes = how.axes or ()
    at = [coordinates(axes, rank) for rank in ranks]
    alike = {
        (one, other): {axis for axis in at[one] if at[one][axis] != at[other][axis]}
        for one in ranks
        for other in ranks
        if held[one] & held[other]
    }
    assert all(held[one] == held[other] for one, other in alike)
    said = {*how.same, *place.partial}
    explained = all(differ <= said for differ in alike.values())
    assert (not found) == explained
    assert {each.code for each in found} <= {"TS0201"}
    if not found:
        for rank in ranks:
            same = {other for other in ranks if alike.get((rank, other), {""}) <= set(how.same)}
            assert set(replicas(layout, how, rank)) == same
