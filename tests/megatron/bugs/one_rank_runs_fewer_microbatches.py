"""One data-parallel rank works out a smaller number of micro-batches, and its gradients weigh more.

Source: Megatron-LM issue 906's class (the average is over other numbers).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = ("micro_batches_agree", 1, (0, 1), "")


def put_in() -> None:
    """The second rank runs one fewer."""
    import torch.distributed as dist
    from megatron.core.pipeline_parallel import schedules

    original = schedules.forward_backward_no_pipelining

    def loop(*, num_microbatches: int, **options: Any) -> Any:
        return original(num_microbatches=num_microbatches - dist.get_rank(), **options)

    schedules.forward_backward_no_pipelining = loop
