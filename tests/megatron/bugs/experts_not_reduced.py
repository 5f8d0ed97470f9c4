"""Replicas of experts are not reduced over their own data-parallel group.

Source: Megatron-LM issue 7452's class (a gradient that nobody sums over one axis).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=4,ep=2,experts=4"
FOUND = (
    "gradients_of_experts_agree",
    1,
    (0, 1, 2, 3),
    "decoder.layers.0.mlp.experts.local_experts",
)


def put_in() -> None:
    """Buckets of experts are left as they are."""
    from megatron.core.distributed import param_and_grad_buffer

    group = param_and_grad_buffer._ParamAndGradBucketGroup
    start, finish = group.start_grad_sync, group.finish_grad_sync

    def dense(self: Any) -> bool:
        return any(getattr(p, "allreduce", True) for b in self.buckets for p in b.params)

    def start_dense(self: Any, *args: Any, **kwargs: Any) -> None:
        if dense(self):
            start(self, *args, **kwargs)

    def finish_dense(self: Any, *args: Any, **kwargs: Any) -> None:
        if dense(self):
            finish(self, *args, **kwargs)

    group.start_grad_sync, group.finish_grad_sync = start_dense, finish_dense
