"""Main gradients are cleared before each micro-batch: an update sees the last one alone, divided by the number of all.

Source: the class of a `zero_grad` within the loop over micro-batches, in a loop's own forward step.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = ("main_gradients_are_kept_between_micro_batches", 1, (0, 1), "")


def put_in() -> None:
    """The forward step of each micro-batch clears the buffers of its model first."""
    from megatron.core.pipeline_parallel import schedules

    original = schedules.forward_step

    def forward_step(step: Any, data: Any, model: Any, *given: Any, **options: Any) -> Any:
        model.zero_grad_buffer()
        return original(step, data, model, *given, **options)

    schedules.forward_step = forward_step
