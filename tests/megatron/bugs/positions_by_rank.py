"""Each tensor-parallel rank counts the positions of tokens from a number of its own.

Source: Megatron-LM issue 7452's class (local indices for global ones), in the positions of tokens.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = ("positions_agree", 1, (0, 1), "read_batch")


def put_in() -> None:
    """The positions go round by the rank."""
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel

    original = GPTModel.forward

    def forward(
        self: Any, input_ids: Any, position_ids: Any, attention_mask: Any, **options: Any
    ) -> Any:
        rank = parallel_state.get_tensor_model_parallel_rank()
        return original(self, input_ids, position_ids.roll(rank, -1), attention_mask, **options)

    GPTModel.forward = forward
