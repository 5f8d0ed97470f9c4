"""A rank finds its gradients infinite, tells nobody, and leaves the update out.

Source: `MixedPrecisionOptimizer` reduces `found_inf` over all ranks; here it does not.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,bf16"
FOUND = ("update_succeeds_on_all_ranks_or_none", 2, (0, 1), "")


def put_in() -> None:
    """It happens on the last rank in the second step."""
    import torch.distributed as dist
    from megatron.core.optimizer import ChainedOptimizer

    original = ChainedOptimizer.prepare_grads
    made: list[int] = []

    def prepare(self: Any) -> bool:
        made.append(1)
        return original(self) or (len(made) == 2 and dist.get_rank() == 1)

    ChainedOptimizer.prepare_grads = prepare
