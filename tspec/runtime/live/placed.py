"""Distributed tensors: the local part on this rank, the full tensor, and the placement of one in
the other.
"""

from __future__ import annotations

from typing import Any

import torch

ORDINARY = frozenset((torch.Tensor, torch.nn.Parameter))
"""Classes of tensors without a device mesh, known without a read of an attribute that they lack."""


def local(tensor: Any) -> Any:
    """The part of a `DTensor` that this rank holds, which may not be there yet; other tensors are their own part."""
    return tensor if type(tensor) in ORDINARY else getattr(tensor, "_local_tensor", tensor)


def is_partial(tensor: Any) -> bool:
    """True if the full tensor is a pending reduction, such as a sum, of the ranks' tensors."""
    if type(tensor) in ORDINARY:
        return False
    return any(each.is_partial() for each in getattr(tensor, "placements", None) or ())


def placements(tensor: Any) -> list[str] | None:
    """`Shard(0)`, `Replicate`, `Partial(sum)`, … along each dimension of its mesh; None of other tensors."""
    held = getattr(tensor, "placements", None)
    return None if held is None else [_written(each) for each in held]


def cuts(tensor: Any) -> tuple[str, ...] | None:
    """`Shard(0) over tp` for each dimension of the tensor's mesh along which this rank holds a
    shard; None if it holds the full tensor.
    """
    mesh, held = getattr(tensor, "device_mesh", None), getattr(tensor, "placements", None)
    if mesh is None or held is None:
        return None
    sizes = mesh.shape
    axes = mesh.mesh_dim_names or tuple(f"{size} ranks" for size in sizes)
    each = zip(held, sizes, axes, strict=True)
    return tuple(_cut(how, axis) for how, size, axis in each if size > 1 and _cuts(how)) or None


def _cuts(placement: Any) -> bool:
    return not placement.is_replicate() and not placement.is_partial()


def _cut(placement: Any, axis: str) -> str:
    return f"{_written(placement)} over {axis}"


def _written(placement: Any) -> str:
    if placement.is_partial():
        return f"Partial({placement.reduce_op})"
    if placement.is_replicate():
        return "Replicate"
    return f"{type(placement).__name__.lstrip('_')}({placement.dim})"


def placed(tensor: Any) -> tuple[int, ...] | None:
    """The ranks that hold the same part as this rank. None for other tensors, and for parts of a
    mesh whose process group is destroyed.
    """
    mesh, held = getattr(tensor, "device_mesh", None), getattr(tensor, "placements", None)
    if mesh is None or held is None:
        return None
    try:
        at, ranks = mesh.get_coordinate(), mesh.mesh
    except ValueError:  # a part of a mesh depends on the rank, which is known to the process group
        return None
    if at is None:
        return None
    along = tuple(
        slice(None) if each.is_replicate() else place for each, place in zip(held, at, strict=True)
    )
    return tuple(ranks[along].flatten().tolist())


def is_flattened(tensor: torch.Tensor) -> bool:
    """True if `FullyShardedDataParallel` has flattened the parameter, or made it from several
    flattened ones.
    """
    return bool(getattr(tensor, "_fsdp_flattened", False))
