"""The local part of a tensor on this rank."""

from __future__ import annotations

import torch
from torch import Tensor

from tspec.runtime.edges import StateSource
from tspec.runtime.live.features import local_part


def held_here(tensor: Tensor) -> Tensor | None:
    """The rank's local tensor, after a pending collective on it has ended."""
    local = getattr(tensor, "_local_tensor", tensor)
    wait = getattr(local, "trigger_wait", None)
    return local_part(local if wait is None else wait())


def placed_as(whole: Tensor, gradient: Tensor) -> Tensor:
    """The gradient of a DTensor, redistributed to the tensor's own placements. It may still be a
    pending sum, as that of a norm under sequence parallelism.
    """
    placements = getattr(whole, "placements", None)
    if placements is None or getattr(gradient, "placements", placements) == placements:
        return gradient
    with torch.no_grad():
        placed: Tensor = gradient.redistribute(placements=placements)  # type: ignore[attr-defined]
        return placed


def in_shape_of(whole: Tensor, tensor: Tensor) -> Tensor:
    """A flat tensor in the shape of a parameter, if it has as many elements."""
    is_flat = tensor.shape != whole.shape and tensor.numel() == whole.numel()
    return tensor.view_as(whole) if is_flat else tensor


def tensors(source: StateSource, kind: str, field: str) -> dict[str, Tensor]:
    """A field of all subjects of a kind, where it is a tensor."""
    found = source.fields(kind, field).items()
    return {subject: value for subject, value in found if isinstance(value, Tensor)}


def copies(source: StateSource) -> dict[str, str]:
    """Parameters that optimizers hold as copies or shards: the optimizer's name -> the model's
    name.

    Megatron's optimizers update a float32 copy, or a view of the rank's shard.
    """
    places = {
        (held.data_ptr(), held.numel()): name
        for field in ("shard", "main")
        for name, held in tensors(source, "parameter", field).items()
        if held.numel()
    }
    parameters = tensors(source, "parameter", "data").items() if places else ()
    found = ((name, (tensor.data_ptr(), tensor.numel())) for name, tensor in parameters)
    return {name: places[place] for name, place in found if place in places}
