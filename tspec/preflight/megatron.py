"""How megatron-core itself says that parameters are cut: its groups and its sharded state dictionary."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from tspec.preflight.facts import Axes, Block

PACKAGE = "megatron.core"


@dataclass(frozen=True, slots=True)
class Blocks:
    """The shape of the full tensor, the rank's blocks of it in their order, and the virtual stage of the model that has it."""

    full: tuple[int, ...]
    blocks: tuple[Block, ...]
    chunk: int = 0


def groups_of() -> Axes:
    """The axes of megatron-core's ranks, fastest-changing first; empty without its groups."""
    state = sys.modules.get(f"{PACKAGE}.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return ()
    return (
        ("tp", state.get_tensor_model_parallel_world_size()),
        ("cp", state.get_context_parallel_world_size()),
        ("dp", state.get_data_parallel_world_size()),
        ("pp", state.get_pipeline_model_parallel_world_size()),
    )


def blocks_of(parameters: Mapping[str, Tensor]) -> dict[str, Blocks]:
    """The blocks of each parameter that a sharded state dictionary of its model has."""
    if not groups_of():
        return {}
    names = {_place(tensor): name for name, tensor in parameters.items()}
    found: dict[str, Blocks] = {}
    for model in _models():
        chunk = getattr(model, "vp_stage", None) or 0
        for entry in _entries(model.sharded_state_dict()):
            name = names.get(_place(entry.data)) if isinstance(entry.data, Tensor) else None
            blocks = _blocks(entry)
            if name is not None and blocks is not None:
                found[name] = replace(blocks, chunk=chunk)
    return found


def _models() -> Iterator[Any]:
    """The outermost modules that have a sharded state dictionary."""
    import gc

    from torch import nn

    gpt = sys.modules.get("megatron.core.models.common.language_module.language_module")
    if gpt is not None:
        for each in gc.get_objects():
            if isinstance(each, nn.Module) and isinstance(each, gpt.LanguageModule):
                yield each


def _entries(state: Any) -> Iterator[Any]:
    """The sharded tensors of a state dictionary, and the factories that make several of one."""
    if hasattr(state, "key") and hasattr(state, "data"):
        yield state
    elif isinstance(state, Mapping | list):
        for each in state.values() if isinstance(state, Mapping) else state:
            yield from _entries(each)


def _place(tensor: Tensor) -> tuple[int, int, int]:
    return tensor.untyped_storage()._cdata, int(tensor.storage_offset()), tensor.numel()


def _blocks(entry: Any) -> Blocks | None:
    """The blocks of an entry; None if it is no tensor that is cut into blocks."""
    if hasattr(entry, "build"):
        made = list(_entries(entry.build()))
    else:
        made = [entry]
    if any(
        getattr(each, "flattened_range", None) or not hasattr(each, "prepend_axis_num")
        for each in made
    ):
        return None
    lead = made[0].prepend_axis_num
    return Blocks(
        tuple(made[0].global_shape[lead:]),
        tuple((tuple(each.global_offset[lead:]), tuple(each.local_shape)) for each in made),
    )
