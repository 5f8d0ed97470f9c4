"""The mesh of a job whose ranks hold stages of `torch.distributed.pipelining`, and each parameter's stage."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from math import prod
from typing import Any

import torch.distributed as dist
from torch import Tensor

from tspec.preflight.facts import Axes
from tspec.targets.torch.pipeline_stages import stages_of_process

PIPELINE = "pp"
"""The axis over which layouts have stages."""


def of_stages(parameters: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The parameters of the rank's stages; all of them without stages.

    A rank may also hold the whole model from which its stage was cut; it is left out.
    """
    chunks = chunks_of(parameters)
    if not chunks:
        return parameters
    return {name: tensor for name, tensor in parameters.items() if name in chunks}


def chunks_of(parameters: Mapping[str, Tensor]) -> dict[str, int]:
    """The virtual stage of each parameter: the place of its stage among those of the rank."""
    names = {id(tensor): name for name, tensor in parameters.items()}
    return {
        names[id(each)]: number
        for number, stage in enumerate(stages_of_process())
        for each in stage.submod.parameters()
        if id(each) in names
    }


def with_stages(axes: Axes, world: int) -> Axes:
    """The axes of a job, with the axis of the pipeline under the name that layouts have for it.

    `axes` are those of its DTensors, if it has any. Otherwise they are those of its device mesh,
    else those around the pipeline's process group. Unchanged without stages.
    """
    stages = stages_of_process()
    ranks = _ranks(stages[0].group) if stages else ()
    if len(ranks) < 2:
        return axes
    stride = ranks[1] - ranks[0]
    wanted = stride, len(ranks)
    for known in (axes, *_meshes(world), _around(stride, len(ranks), world)):
        at = _strides(known).get(wanted)
        if at is not None:
            return tuple((PIPELINE if axis == at else axis, size) for axis, size in known)
    return axes


def _ranks(group: Any) -> tuple[int, ...]:
    return tuple(dist.get_process_group_ranks(group if group is not None else dist.group.WORLD))


def _strides(axes: Axes) -> dict[tuple[int, int], str]:
    """Axes by the distance between their ranks and their number. An axis of one rank is no pipeline's."""
    found: dict[tuple[int, int], str] = {}
    stride = 1
    for axis, size in axes:
        if size > 1:
            found[stride, size] = axis
        stride *= size
    return found


def _meshes(world: int) -> list[Axes]:
    """The axes of device meshes over all ranks, those with most axes first."""
    loaded = sys.modules.get("torch.distributed.device_mesh")
    kind = getattr(loaded, "DeviceMesh", None)
    if kind is None:
        return []
    of = [each for each in gc.get_objects() if issubclass(type(each), kind) and each.mesh_dim_names]
    found = [
        tuple(zip(reversed(each.mesh_dim_names), map(int, reversed(each.mesh.shape)), strict=True))
        for each in of
    ]
    of_all = (each for each in found if prod(size for _, size in each) == world)
    return sorted(of_all, key=len, reverse=True)


def _around(stride: int, stages: int, world: int) -> Axes:
    """The axes of ranks that only the pipeline's group tells: one within a stage's ranks, and one outside."""
    outer = world // (stride * stages)
    names = ("dp", "dp") if 1 in (stride, outer) else ("inner", "outer")
    parts = ((names[0], stride), (PIPELINE, stages), (names[1], outer))
    return tuple(part for part in parts if part[1] > 1)
