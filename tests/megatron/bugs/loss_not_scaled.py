"""The loss of a float16 job is not scaled, and its gradients are divided by the scale: they all but vanish beside Adam's epsilon.

Source: the class of a loop that leaves `grad_scale_func` of megatron-core's configuration unset, which is allowed.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,fp16"
FOUND = ("scaled_gradients_come_from_a_scaled_loss", 1, (0, 1), "")


def put_in() -> None:
    """The loop leaves it unset."""
    from tests.megatron import job

    original = job.optimizer_of

    def optimizer_of(config: Any, *given: Any) -> Any:
        found = original(config, *given)
        config.grad_scale_func = None
        return found

    job.optimizer_of = optimizer_of
