"""The ranks of a mesh and where each stands on its axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tspec.resolve.program.sharding import Axes, MeshDeclaration


def coordinates(axes: Axes, rank: int) -> dict[str, int]:
    """The place of a rank on each axis; the first axis changes fastest from rank to rank."""
    found = {}
    for axis, size in axes:
        rank, found[axis] = divmod(rank, size)
    return found


def coordinates_of(mesh: MeshDeclaration, rank: int) -> dict[str, int]:
    """The coordinates of a rank on all axes, regroupings included."""
    found: dict[str, int] = {}
    for axes in factorisations(mesh):
        found.update(coordinates(axes, rank))
    return found


def rank_at(axes: Axes, place: Mapping[str, int]) -> int:
    """The rank that stands at a place. Axes that are not named are at 0."""
    rank, stride = 0, 1
    for axis, size in axes:
        rank += place.get(axis, 0) * stride
        stride *= size
    return rank


def factorisations(mesh: MeshDeclaration) -> tuple[Axes, ...]:
    """The mesh's own axes, then the axes of each regrouping."""
    return (mesh.axes, *(axes for _, axes in mesh.regroups))


def factorisation_of(mesh: MeshDeclaration, axes: Iterable[str]) -> Axes | None:
    """The first factorisation that has all of these axes, or None: no tensor is cut over two."""
    wanted = set(axes)
    return next((each for each in factorisations(mesh) if wanted <= {a for a, _ in each}), None)
