"""Each tensor-parallel rank has a default random stream of its own: dropout on copies differs.

Source: Megatron-LM issue 1256 (dropout in the wrong random stream).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = ("default_streams_agree", 1, (0, 1), "default")


def put_in() -> None:
    """The rank enters the seed of the default stream."""
    import torch
    import torch.distributed as dist
    from megatron.core import tensor_parallel

    original = tensor_parallel.model_parallel_cuda_manual_seed

    def seed(number: int, **options: Any) -> None:
        original(number, **options)
        torch.manual_seed(number + dist.get_rank())

    tensor_parallel.model_parallel_cuda_manual_seed = seed
