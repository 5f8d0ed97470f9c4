"""Names in the one-device model for the parts of a Megatron model chunk.

The place of a chunk comes from its stage, its virtual stage and the configuration. Megatron's own
`layer_number` is computed by code that may be at fault, so it is checked against the place and not
used for names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn

from tspec.runtime.live.entities.kind import asked
from tspec.runtime.live.module_tree import table

_LAYER = re.compile(r"^(decoder\.layers\.)(\d+)(?=\.|$)")
_EXPERT = re.compile(r"(\.local_experts\.)(\d+)(?=\.|$)")
OUTPUT = "output_layer.weight"
EMBEDDING = "embedding.word_embeddings.weight"


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """The place of a chunk in the full model: the indices of its first layer and of its first
    expert, from 0.
    """

    layer: int = 0
    expert: int = 0
    tied: bool = False
    """Its output layer is a copy of the word embeddings, which another stage holds."""
    title: str = ""
    """The name of the chunk itself. If it is empty, the name is the chunk's class, as for the full
    model.
    """

    def name(self, path: str) -> str:
        """The path in the whole model for a path in the chunk. The chunk's own path is empty."""
        if not path:
            return self.title
        if self.tied and path == OUTPUT:
            return EMBEDDING
        path = _LAYER.sub(lambda found: f"{found[1]}{int(found[2]) + self.layer}", path)
        return _EXPERT.sub(lambda found: f"{found[1]}{int(found[2]) + self.expert}", path)


def is_chunk(module: nn.Module) -> bool:
    """A model of megatron-core, or one stage's part of it, with a decoder of layers."""
    if not any(base.__module__.startswith("megatron.core.") for base in type(module).__mro__):
        return False
    return asked(module, "config") is not None and _layers(module) is not None


def place_of(chunk: Any) -> ChunkPlace:
    """The place of a chunk in the full model."""
    config = chunk.config
    stage, expert = _rank(chunk, "pp"), _rank(chunk, "ep")
    layer = first_layer(layer_counts(config), stage, getattr(chunk, "vp_stage", None) or 0)
    experts = (config.num_moe_experts or 0) // config.expert_model_parallel_size
    tied = bool(getattr(chunk, "share_embeddings_and_output_weights", False))
    # A stage that predicts further tokens has its own copy of the embeddings, which the output uses.
    copied = tied and "embedding" not in table(chunk, "_modules")
    # A stage's last chunk has the name of the full model: on the last stage, it produces the
    # model's output.
    virtual = config.virtual_pipeline_model_parallel_size or 1
    number = getattr(chunk, "vp_stage", None)
    inner = number is not None and number < virtual - 1
    title = f"{type(chunk).__name__}.chunks.{number}" if inner else ""
    return ChunkPlace(layer, expert * experts, copied, title)


def misnumbered(chunk: Any, place: ChunkPlace) -> Iterator[str]:
    """Messages about layers whose `layer_number`, from 1, differs from their place."""
    layers = _layers(chunk)
    for index, layer in enumerate(() if layers is None else layers.values()):
        said, expected = getattr(layer, "layer_number", None), place.layer + index + 1
        if isinstance(said, int) and said != expected:
            yield (
                f"decoder.layers.{expected - 1} has layer_number {said}: "
                f"by its place in the pipeline it is layer {expected}"
            )


def layer_counts(config: Any) -> list[list[int]]:
    """The number of layers of each chunk: for each stage, for each virtual stage."""
    stages = config.pipeline_model_parallel_size
    virtual = config.virtual_pipeline_model_parallel_size or 1
    layout = getattr(config, "pipeline_model_parallel_layout", None)
    if layout is not None:
        return [
            [sum(kind.name == "decoder" for kind in chunk) for chunk in stage]
            for stage in layout.layout
        ]
    first = getattr(config, "num_layers_in_first_pipeline_stage", None)
    last = getattr(config, "num_layers_in_last_pipeline_stage", None)
    if first is not None or last is not None:
        others = stages - (first is not None) - (last is not None)
        between = (config.num_layers - (first or 0) - (last or 0)) // max(others, 1)
        whole = [between] * stages
        whole[0] = between if first is None else first
        whole[-1] = between if last is None else last
        return [[count // virtual] * virtual for count in whole]
    embedding = bool(getattr(config, "account_for_embedding_in_pipeline_split", False))
    loss = bool(getattr(config, "account_for_loss_in_pipeline_split", False))
    each = (config.num_layers + embedding + loss) // (stages * virtual)
    counts = [[each] * virtual for _ in range(stages)]
    counts[0][0] -= embedding
    counts[-1][-1] -= loss
    return counts


def first_layer(counts: list[list[int]], stage: int, virtual: int) -> int:
    """The index of a chunk's first layer, from 0. Chunks follow one another by virtual stage, then by stage."""
    before = sum(sum(each[:virtual]) for each in counts)
    return before + sum(each[virtual] for each in counts[:stage])


def _layers(chunk: nn.Module) -> dict[str, nn.Module] | None:
    decoder = table(chunk, "_modules").get("decoder")
    layers = None if decoder is None else table(decoder, "_modules").get("layers")
    return None if layers is None else dict(table(layers, "_modules"))


def _rank(chunk: Any, axis: str) -> int:
    """This process's coordinate on an axis, from the chunk's own groups, else from Megatron's; 0 if
    there is none.
    """
    group = getattr(getattr(chunk, "pg_collection", None), axis, None)
    if group is not None:
        return int(group.rank())
    state: Any = sys.modules.get("megatron.core.parallel_state")
    if state is None:
        return 0
    ranks = {
        "pp": state.get_pipeline_model_parallel_rank,
        "ep": state.get_expert_model_parallel_rank,
    }
    try:
        return int(ranks[axis]())
    except AssertionError:  # Megatron's own word for: no such group was set up
        return 0
