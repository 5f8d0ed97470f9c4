"""The first stage makes no backward pass for the last micro-batch; its gradients are still divided by all of them.

Source: the class of wrong counts of passes in a pipeline's schedule, which leave the last micro-batch of 1F1B out.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2"
FOUND = ("every_micro_batch_is_trained_on", 1, (0,), "")


def put_in() -> None:
    """The last backward pass of each step gives no gradient to anything."""
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel import schedules

    one_f_one_b = schedules.forward_backward_pipelining_without_interleaving
    original = schedules.backward_step
    left = 0

    def schedule(*, num_microbatches: int, **options: Any) -> Any:
        nonlocal left
        left = num_microbatches
        return one_f_one_b(num_microbatches=num_microbatches, **options)

    def backward(*given: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if not left and parallel_state.is_pipeline_first_stage():
            return [None]
        return original(*given, **options)

    schedules.forward_backward_pipelining_without_interleaving = schedule
    schedules.backward_step = backward
