"""A loop reduces gradients after the schedule, which did so itself: those of layer norms are summed over tp once more.

Source: the class of two owners of one reduction; `finalize_model_grads_func` of megatron-core's configuration is called by its schedules.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,sp"
FOUND = ("gradients_are_finalized_once", 1, (0, 1), "")


def put_in() -> None:
    """What gives the loop its schedule gives one that reduces again at its end."""
    from megatron.core import distributed, pipeline_parallel

    original = pipeline_parallel.get_forward_backward_func

    def get_forward_backward_func() -> Any:
        schedule = original()

        def run(*, model: Any, **options: Any) -> Any:
            made = schedule(model=model, **options)
            distributed.finalize_model_grads(model if isinstance(model, list) else [model])
            return made

        return run

    pipeline_parallel.get_forward_backward_func = get_forward_backward_func
