"""Tokens of another rank's part of the vocabulary are embedded as this rank's first row, and added.

Source: TTrace 1, Megatron-LM pull request 80 (wrong embedding mask).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = None


def put_in() -> None:
    """The output is not masked."""
    import torch.nn.functional as F
    from megatron.core.tensor_parallel import layers

    def forward(self: Any, tokens: Any) -> Any:
        foreign = (tokens < self.vocab_start_index) | (tokens >= self.vocab_end_index)
        local = (tokens - self.vocab_start_index).masked_fill(foreign, 0)
        found = F.embedding(local, self.weight)
        return layers.reduce_from_tensor_model_parallel_region(found, group=self.tp_group)

    layers.VocabParallelEmbedding.forward = forward
