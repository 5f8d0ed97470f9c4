"""Experts of all ranks draw from one random stream: each rank has the state that the first one saved.

Source: Megatron-LM pull request 6858 (the random state of one rank is restored on all).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,experts=4,ep=2"
FOUND = ("expert_streams_differ", 1, (0, 1), "expert-parallel-rng")


def put_in() -> None:
    """The rank does not enter the seed of the stream."""
    from megatron.core import tensor_parallel

    original = tensor_parallel.model_parallel_cuda_manual_seed

    def seed(number: int, **options: Any) -> None:
        original(number, **options | {"ep_rank": 0})

    tensor_parallel.model_parallel_cuda_manual_seed = seed
