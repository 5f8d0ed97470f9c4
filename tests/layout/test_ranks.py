"""Where ranks stand on the axes of a mesh."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tspec.layout.ranks import coordinates, coordinates_of, factorisation_of, rank_at
from tspec.resolve.program.sharding import MeshDeclaration

MESH = MeshDeclaration(
    "gpt",
    "t",
    (("tp", 2), ("cp", 2), ("dp", 2), ("pp", 2)),
    (("experts", (("ep", 4), ("edp", 2), ("pp", 2))),),
)

meshes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
    lambda sizes: tuple((f"a{place}", size) for place, size in enumerate(sizes))
)


def test_the_first_axis_changes_fastest() -> None:
    assert [coordinates(MESH.axes, rank)["tp"] for rank in range(4)] == [0, 1, 0, 1]
    assert coordinates(MESH.axes, 11) == {"tp": 1, "cp": 1, "dp": 0, "pp": 1}


def test_a_rank_stands_on_the_axes_of_all_factorisations() -> None:
    assert coordinates_of(MESH, 7) == {"tp": 1, "cp": 1, "dp": 1, "pp": 0, "ep": 3, "edp": 1}


@given(meshes)
def test_each_place_has_one_rank(axes) -> None:
    mesh = MeshDeclaration("m", "t", axes)
    places = [coordinates(axes, rank) for rank in range(mesh.world)]
    assert len({tuple(place.values()) for place in places}) == mesh.world
    assert [rank_at(axes, place) for place in places] == list(range(mesh.world))


def test_axes_of_two_factorisations_have_none_in_common() -> None:
    assert factorisation_of(MESH, ("tp", "pp")) == MESH.axes
    assert factorisation_of(MESH, ("ep", "pp")) == MESH.regroups[0][1]
    assert factorisation_of(MESH, ("tp", "ep")) is None
