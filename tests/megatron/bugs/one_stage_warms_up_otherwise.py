"""The last stage has no warm-up: its schedule was built from another number of steps than that of the first stage.

Source: the class of an argument that each stage reads by itself, here `lr_warmup_steps` of `OptimizerParamScheduler`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,untied,warmup=4"
FOUND = ("schedules_have_one_setting", 1, (0, 1), "")


def put_in() -> None:
    """The schedule of the last stage is built with another length."""
    from megatron.core import parallel_state
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    original = OptimizerParamScheduler.__init__

    def init(self: Any, *given: Any, lr_warmup_steps: int, **options: Any) -> None:
        steps = 0 if parallel_state.is_pipeline_last_stage() else lr_warmup_steps
        original(self, *given, lr_warmup_steps=steps, **options)

    OptimizerParamScheduler.__init__ = init
