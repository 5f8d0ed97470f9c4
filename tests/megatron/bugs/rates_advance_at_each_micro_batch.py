"""The loop moves its schedule of rates on by a whole batch at each micro-batch: the warm-up ends four times too early.

Source: the class of a scheduler that is stepped in the loop over micro-batches.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,untied,warmup=6"
FOUND = ("rates_advance_once_a_step", 1, (0, 1), "")


def put_in() -> None:
    """Each micro-batch but the last moves the schedule on."""
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    original = OptimizerParamScheduler.step

    def step(self: Any, increment: int) -> None:
        for _ in range(4):
            original(self, increment)

    OptimizerParamScheduler.step = step
