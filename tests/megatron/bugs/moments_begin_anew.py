"""A job goes on with its schedule, and its optimizer begins anew.

Source: Megatron-LM's `--no-load-optim` leaves both out; a loop that loads them by itself may leave out one.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,zero,bf16"
FOUND = ("resumed_updates_have_moments", 1, (0, 1), "")


def put_in() -> None:
    """The schedule is that of a job that made a hundred steps."""
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

    build = OptimizerParamScheduler.__init__

    def restored(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        self.load_state_dict(self.state_dict() | {"num_steps": 800})

    OptimizerParamScheduler.__init__ = restored
