"""Gradients of experts are reduced over all data-parallel ranks, which hold other experts: each expert gets the mean of several experts' gradients.

Source: Megatron-LM issue 7452's class (a reduction over the wrong ranks), with the group of dense parameters for those of experts.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,experts=4,ep=2"
FOUND = ("expert_ranks_have_gradients_of_their_own", 1, (0, 1), "")


def put_in() -> None:
    """The buckets of experts are given the group of dense parameters."""
    from megatron.core.distributed import DistributedDataParallel

    original = DistributedDataParallel.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for group in self.expert_parallel_bucket_groups:
            group.data_parallel_group = self.dp_cp_group
            group.intra_distributed_optimizer_instance_group = self.dp_cp_group

    DistributedDataParallel.__init__ = init
