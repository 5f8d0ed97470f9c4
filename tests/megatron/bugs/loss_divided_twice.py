"""The loop divides its loss by the number of micro-batches, and so does the schedule: gradients are too small by that number.

Source: the class of two owners of one division; the schedules of megatron-core divide what a loss function returns by `num_microbatches`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = None


def put_in() -> None:
    """What the loss function of the loop returns is divided."""
    from megatron.core.pipeline_parallel import schedules

    original = schedules.forward_step_calc_loss

    def calc_loss(model: Any, output: Any, loss_func: Any, *given: Any, **options: Any) -> Any:
        def divided(output: Any) -> Any:
            loss, *more = loss_func(output)
            return loss / given[3], *more

        return original(model, output, divided, *given, **options)

    schedules.forward_step_calc_loss = calc_loss
