"""The sharding of parameters according to megatron-core: its groups and its sharded state
dictionary.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from tspec.preflight.facts import Axes, Block, ExpertPlace

PACKAGE = "megatron.core"
_EXPERT = re.compile(r"\.local_experts\.(\d+)(?=\.)")


@dataclass(frozen=True, slots=True)
class Blocks:
    """The entry of a parameter in the sharded state dictionary.

    It has the shape of the full tensor, the rank's blocks in their order, the virtual stage of the
    model that holds it, the rank's own name of a tied copy, and an expert's place among all.
    """

    full: tuple[int, ...]
    blocks: tuple[Block, ...]
    chunk: int = 0
    copy: str = ""
    expert: ExpertPlace | None = None


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


def expert_groups_of() -> Axes:
    """The axes over which megatron-core cuts experts, another factorisation of the same ranks; empty without its groups."""
    state = sys.modules.get(f"{PACKAGE}.parallel_state")
    if state is None or not state.model_parallel_is_initialized():
        return ()
    return (
        ("etp", state.get_expert_tensor_parallel_world_size()),
        ("ep", state.get_expert_model_parallel_world_size()),
        ("edp", state.get_expert_data_parallel_world_size()),
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
        for own, entry in _entries(model.sharded_state_dict()):
            name = names.get(_place(entry.data)) if isinstance(entry.data, Tensor) else None
            blocks = _blocks(entry, name) if name is not None else None
            if name is not None and blocks is not None:
                is_copy = entry.key == name and _unnumbered(own) != _unnumbered(name)
                found[name] = replace(blocks, chunk=chunk, copy=own if is_copy else "")
    return found


def _unnumbered(name: str) -> str:
    """A name without the numbers of layers and experts, which each stage counts from 0."""
    return re.sub(r"\d+", "*", name)


def _models() -> Iterator[Any]:
    """The outermost modules that have a sharded state dictionary."""
    import gc

    gpt = sys.modules.get("megatron.core.models.common.language_module.language_module")
    if gpt is not None:
        for each in gc.get_objects():
            if issubclass(type(each), gpt.LanguageModule):
                yield each


def _entries(state: Any, own: str = "") -> Iterator[tuple[str, Any]]:
    """The sharded tensors of a state dictionary, and the factories that make several of one.

    Each has the model's own name of it. `key` is the name under which it is saved, for a tied
    copy that of the tensor it copies.
    """
    if hasattr(state, "key") and hasattr(state, "data"):
        yield own, state
    elif isinstance(state, Mapping):
        for name, each in state.items():
            yield from _entries(each, str(name))
    elif isinstance(state, list):
        for each in state:
            yield from _entries(each, own)


def _place(tensor: Tensor) -> tuple[int, int, int]:
    return tensor.untyped_storage()._cdata, int(tensor.storage_offset()), tensor.numel()


def _blocks(entry: Any, name: str) -> Blocks | None:
    """The blocks of an entry; None if it is no tensor that is cut into blocks."""
    if hasattr(entry, "build"):
        made = [each for _, each in _entries(entry.build())]
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
        expert=_expert(name, made[0]),
    )


def _expert(name: str, entry: Any) -> ExpertPlace | None:
    """An expert's place: the last of the axes prepended to those of its tensor."""
    found = _EXPERT.search(name)
    lead = entry.prepend_axis_num
    if found is None or not lead:
        return None
    everyone = name[: found.start()] + name[found.end() :]
    return ExpertPlace(
        everyone, int(entry.global_offset[lead - 1]), int(entry.global_shape[lead - 1])
    )
