"""The axes over which ranks hold the same shard of a tensor, and whether the layout declares it."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.layout.ranks import coordinates_of, factorisation_of
from tspec.resolve.program.sharding import Axes, LayoutDeclaration, Placement


@dataclass(frozen=True, slots=True)
class AxisUse:
    """The use of a mesh's axes by a placement.

    `used`: axes that shard the tensor, sum it up, or give its stage. `same`: axes over which the
    layout declares that ranks hold the same. `axes`: the factorisation that contains them, None if
    they belong to two.
    """

    used: frozenset[str]
    same: frozenset[str]
    axes: Axes | None

    @property
    def silent(self) -> tuple[str, ...]:
        """Axes that the layout does not mention."""
        return tuple(name for name, _ in self.axes or () if name not in self.used | self.same)


def spread(layout: LayoutDeclaration, place: Placement, below: Placement | None = None) -> AxisUse:
    """The use of the axes by a placement. `below` is the placement of the parameter that a flat
    shard cuts.
    """
    used = place.cut_over | (below.cut_over if below else frozenset())
    own = {*place.replicated, *(below.replicated if below else ())} - used
    stages = {"pp"} if layout.stages else set()
    axes = factorisation_of(layout.mesh, {*used, *own})
    return AxisUse(used | stages, frozenset({*own, *layout.replicated} - used), axes)


def replicas(layout: LayoutDeclaration, how: AxisUse, rank: int) -> tuple[int, ...]:
    """The ranks that hold the same as a rank, itself included."""
    mine = coordinates_of(layout.mesh, rank)
    names = [name for name, _ in how.axes or layout.mesh.axes if name not in how.same]
    places = ((other, coordinates_of(layout.mesh, other)) for other in range(layout.mesh.world))
    return tuple(other for other, at in places if all(at[name] == mine[name] for name in names))
