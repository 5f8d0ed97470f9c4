"""Tensor-parallel ranks are given different labels, so that the logits of other classes are added up.

Source: the class of a batch that `broadcast_data` of megatron-core does not send to all ranks of a tensor-parallel group.
"""

from __future__ import annotations

from typing import Any

import torch

LAYOUT = "tp=2"
FOUND = ("targets_agree", 1, (0, 1), "token_losses")


def put_in() -> None:
    """Each tensor-parallel rank takes the labels of a sample from another token on."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel

    original = GPTModel.compute_language_model_loss

    def loss(self: Any, labels: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        rank = parallel_state.get_tensor_model_parallel_rank()
        return original(self, labels.roll(rank, dims=1), logits)

    GPTModel.compute_language_model_loss = loss
