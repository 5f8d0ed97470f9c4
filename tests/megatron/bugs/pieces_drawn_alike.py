"""All tensor-parallel ranks draw from one random stream, so that dropout on shards drops the same.

Source: ms-swift pull request 7944 (one seed for all shards).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = ("tensor_parallel_streams_differ", 1, (0, 1), "model-parallel-rng")


def put_in() -> None:
    """The rank does not enter the seed."""
    from megatron.core import tensor_parallel

    original = tensor_parallel.model_parallel_cuda_manual_seed

    def seed(number: int, **options: Any) -> None:
        original(number, **options | {"tp_rank": 0})

    tensor_parallel.model_parallel_cuda_manual_seed = seed
