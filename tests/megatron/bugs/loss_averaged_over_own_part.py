"""The loss is averaged over the tokens of each context-parallel rank, and multiplied as one that is averaged over the whole sequence: gradients are too large by the number of ranks.

Source: TTrace 3 (loss scaled wrongly under context parallelism).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "cp=2"
FOUND = None


def put_in() -> None:
    """The schedule is given no count of tokens."""
    from megatron.core.pipeline_parallel import schedules

    original = schedules.forward_step_calc_loss

    def without_count(model: Any, output: Any, loss_func: Any, *args: Any, **kwargs: Any) -> Any:
        def averaged(of: Any) -> Any:
            total, count, report = loss_func(of)
            return total / count, report

        return original(model, output, averaged, *args, **kwargs)

    schedules.forward_step_calc_loss = without_count
