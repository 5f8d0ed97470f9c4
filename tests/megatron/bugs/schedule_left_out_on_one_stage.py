"""The learning rate of the last stage does not warm up: its schedule is never stepped.

Source: the class of a branch on the rank around `opt_param_scheduler.step`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,untied,warmup=4"
FOUND = ("schedules_advance_together", 1, (0, 1), "")


def put_in() -> None:
    """Only the first stage steps its schedule."""
    from megatron.core import parallel_state
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    original = OptimizerParamScheduler.step

    def step(self: Any, increment: int) -> None:
        if parallel_state.is_pipeline_first_stage():
            original(self, increment)

    OptimizerParamScheduler.step = step
