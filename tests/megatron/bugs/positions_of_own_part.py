"""Each context-parallel rank counts the positions of its tokens from 0, and not from where its parts of the sequence begin.

Source: Megatron-LM issue 7452's class (local indices for global ones), in the positions of a part of a sequence.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "cp=2"
FOUND = ("context_parallel_ranks_have_other_positions", 1, (0, 1), "read_batch")


def put_in() -> None:
    """Positions are counted over the tokens that the rank has."""
    import torch
    from megatron.core.models.gpt import GPTModel

    original = GPTModel.forward

    def forward(self: Any, input_ids: Any, position_ids: Any, *args: Any, **options: Any) -> Any:
        counted = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(position_ids)
        return original(self, input_ids, counted, *args, **options)

    GPTModel.forward = forward
