"""Gradients of experts are divided by the number of their copies, and not by that of all ranks whose tokens they got: they are too large by the number of expert-parallel ranks.

Source: the class of the wrong divisor of experts' gradients; megatron-core 0.16.1 divides by all data-parallel ranks.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,experts=4,ep=2"
FOUND = None


def put_in() -> None:
    """The factor of the buffers of experts is made anew."""
    from megatron.core.distributed import DistributedDataParallel

    original = DistributedDataParallel.__init__

    def init(self: Any, *given: Any, **options: Any) -> None:
        original(self, *given, **options)
        for buffer in self.expert_parallel_buffers:
            buffer.gradient_scaling_factor = 1.0
        for group in self.expert_parallel_bucket_groups:
            for bucket in group.buckets:
                bucket.gradient_scaling_factor = 1.0

    DistributedDataParallel.__init__ = init
