"""The ranks that hold a copy of a distributed tensor, as its placements say."""

from __future__ import annotations

from typing import Any


def placed(tensor: Any) -> tuple[int, ...] | None:
    """The ranks that hold the part that this rank holds; None of other tensors."""
    mesh, placements = getattr(tensor, "device_mesh", None), getattr(tensor, "placements", None)
    if mesh is None or placements is None or mesh.get_coordinate() is None:
        return None
    place = zip(placements, mesh.get_coordinate(), strict=True)
    along = tuple(slice(None) if each.is_replicate() else at for each, at in place)
    return tuple(mesh.mesh[along].flatten().tolist())
