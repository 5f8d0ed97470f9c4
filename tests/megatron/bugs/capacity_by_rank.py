"""One expert-parallel rank computes the capacity of its experts with another factor: it drops other shares of its tokens.

Source: DeepSpeed issue 6089 (each rank computes a capacity for itself), in megatron-core's router.
"""

from __future__ import annotations

from typing import Any

PACK = "moe"
LAYOUT = "dp=2,experts=4,ep=2,capacity"
FOUND = ("ranks_drop_by_one_capacity", 1, (0, 1), "expert_capacity #0")


def put_in() -> None:
    """The factor is set when the router is built, on one rank."""
    import torch.distributed as dist
    from megatron.core.transformer.moe.router import TopKRouter

    original = TopKRouter.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.config.moe_expert_capacity_factor = 1.0 + dist.get_rank()

    TopKRouter.__init__ = init
