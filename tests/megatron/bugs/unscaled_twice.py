"""Gradients of float16 are divided by the loss scale twice: they all but vanish beside Adam's epsilon, and are never clipped.

Source: the class of a loop that unscales by itself, as it must for PyTorch's scaler before it clips, while Megatron's optimizer does so too.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,fp16"
FOUND = ("gradient_norm_is_that_of_all_shards", 3, (0, 1), "")


def put_in() -> None:
    """What divides main gradients by the scale runs twice in each update."""
    from megatron.core.optimizer.optimizer import MixedPrecisionOptimizer

    original = MixedPrecisionOptimizer._unscale_main_grads_and_check_for_nan

    def unscale(self: Any) -> Any:
        original(self)
        return original(self)

    MixedPrecisionOptimizer._unscale_main_grads_and_check_for_nan = unscale
