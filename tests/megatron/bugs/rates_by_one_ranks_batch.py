"""The learning rate advances by the samples of one data-parallel rank.

Source: The increment of `OptimizerParamScheduler.step` in `pretrain_gpt.py` has the data-parallel size in it; here
it does not.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = ("rates_advance_by_the_batch", 1, (0, 1), "schedule.step")


def put_in() -> None:
    """The size is divided away."""
    from megatron.core import parallel_state
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    original = OptimizerParamScheduler.step

    def step(self: Any, increment: int) -> None:
        original(self, increment // parallel_state.get_data_parallel_world_size())

    OptimizerParamScheduler.step = step
