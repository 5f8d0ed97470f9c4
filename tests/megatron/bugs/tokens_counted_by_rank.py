"""Each data-parallel rank divides gradients by a number of tokens of its own, and not by that of all ranks.

Source: the class of a count of tokens that is not reduced (Megatron-LM issue 906: the average is over other numbers), in `finalize_model_grads`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,tokens"
FOUND = ("data_parallel_gradients_agree", 1, (0, 1), "embedding.word_embeddings.weight")


def put_in() -> None:
    """After the right division, gradients are multiplied by the count of all and divided by that of the rank."""
    import torch.distributed as dist
    from megatron.core.distributed import DistributedDataParallel

    original = DistributedDataParallel.scale_gradients

    def scaled(self: Any, factor: Any) -> None:
        original(self, factor * dist.get_world_size() / (1 + 0.1 * dist.get_rank()))

    DistributedDataParallel.scale_gradients = scaled
