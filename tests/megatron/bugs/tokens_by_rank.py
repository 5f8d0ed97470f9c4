"""Tensor-parallel ranks are given different tokens, so the rows of the table that they look up do not belong together.

Source: the class of a batch that `broadcast_data` of megatron-core does not send to all ranks of a tensor-parallel group.
"""

from __future__ import annotations

from typing import Any

import torch

LAYOUT = "tp=2,sp"
FOUND = ("tokens_agree", 1, (0, 1), "look_up")


def put_in() -> None:
    """Each tensor-parallel rank begins at another token of its samples."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel

    original = GPTModel.forward

    def forward(self: Any, input_ids: torch.Tensor, *given: Any, **options: Any) -> Any:
        rank = parallel_state.get_tensor_model_parallel_rank()
        if options.get("labels") is not None:
            options["labels"] = options["labels"].roll(rank, dims=1)
        return original(self, input_ids.roll(rank, dims=1), *given, **options)

    GPTModel.forward = forward
