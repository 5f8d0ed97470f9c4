"""The heads of one tensor-parallel rank see the tokens that come after: it has an attention mask of its own.

Source: the class of a mask that each rank makes by itself, and `broadcast_data` of megatron-core does not send.
"""

from __future__ import annotations

from typing import Any

import torch

LAYOUT = "tp=2"
FOUND = ("masks_agree", 1, (0, 1), "read_batch")


def put_in() -> None:
    """The mask of the last rank hides nothing."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel

    original = GPTModel.forward

    def forward(
        self: Any, input_ids: Any, position_ids: Any, attention_mask: Any, **options: Any
    ) -> Any:
        if parallel_state.get_tensor_model_parallel_rank() == 1:
            attention_mask = torch.zeros_like(attention_mask)
        return original(self, input_ids, position_ids, attention_mask, **options)

    GPTModel.forward = forward
