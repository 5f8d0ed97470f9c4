"""The same first weights in every layout: each tensor is drawn whole, by its name in the one-device model, and cut.

A layout with `own` has others on each rank.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state

if TYPE_CHECKING:
    from tests.megatron.layouts import Layout


def initialise(chunks: list[Any], layout: Layout) -> None:
    """Fill the model chunks of this rank, before they are wrapped."""
    with torch.no_grad():
        for chunk in chunks:
            for local, parameter in chunk.named_parameters():
                parameter.copy_(_piece(_reference_name(chunk, local, layout), parameter, layout))


def _reference_name(chunk: Any, local: str, layout: Layout) -> str:
    """The name in the one-device model: layers and experts by their global places, the tied copy as its partner."""
    if local == "output_layer.weight" and not layout.untied:
        return "embedding.word_embeddings.weight"

    def layer(found: re.Match[str]) -> str:
        return f"decoder.layers.{chunk.decoder.layers[int(found[1])].layer_number - 1}."

    def expert(found: re.Match[str]) -> str:
        held = layout.experts // layout.ep
        first = parallel_state.get_expert_model_parallel_rank() * held
        return f"local_experts.{first + int(found[1])}."

    name = re.sub(r"decoder\.layers\.(\d+)\.", layer, local)
    return re.sub(r"local_experts\.(\d+)\.", expert, name)


def _piece(name: str, parameter: Any, layout: Layout) -> torch.Tensor:
    """This rank's part of the whole tensor of a name."""
    size, rank = layout.tp, parallel_state.get_tensor_model_parallel_rank()
    if "local_experts" in name:
        size, rank = layout.etp, parallel_state.get_expert_tensor_parallel_rank()
    cut = getattr(parameter, "partition_dim", -1)
    cut = cut if getattr(parameter, "tensor_model_parallel", False) and size > 1 else -1
    if name.endswith("softmax_offset") and size > 1:  # cut by heads, and not marked
        cut = 0
    shape = list(parameter.shape)
    if cut >= 0:
        shape[cut] *= size
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) + _seed(layout))
    whole = torch.randn(shape, generator=generator) * 0.05
    if "norm" in name and name.endswith("weight"):
        whole += 1
    if cut < 0:
        return whole
    if layout.swiglu and "linear_fc1" in name:  # gate and projection are cut apart
        return torch.cat([half.chunk(size)[rank] for half in whole.chunk(2)])
    return whole.chunk(size, cut)[rank]


def _seed(layout: Layout) -> int:
    """The seed of this rank's weights."""
    return layout.seed + (1000 * layout.world + dist.get_rank() if layout.own else 0)
