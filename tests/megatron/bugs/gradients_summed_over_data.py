"""Gradients are summed over the data-parallel ranks, and not averaged.

Source: TTrace 4, Megatron-LM issue 906 (wrong scaling of the loss under data parallelism).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = None


def put_in() -> None:
    """Buckets are not scaled before they are reduced."""
    from megatron.core.distributed import param_and_grad_buffer

    original = param_and_grad_buffer._ParamAndGradBucketGroup.start_grad_sync

    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        for bucket in self.buckets:
            bucket.gradient_scaling_factor = 1.0
        return original(self, *args, **kwargs)

    param_and_grad_buffer._ParamAndGradBucketGroup.start_grad_sync = start
