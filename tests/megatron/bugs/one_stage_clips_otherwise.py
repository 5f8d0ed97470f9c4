"""The last stage clips its gradients by twice the norm that all stages agree on: its layers learn at another pace.

Source: the class of a factor that each rank works out by itself, after a norm that all of them have.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,untied,clipped"
FOUND = None


def put_in() -> None:
    """What clips is given another norm on the last stage."""
    from megatron.core import parallel_state
    from megatron.core.optimizer import optimizer

    original = optimizer.clip_grad_by_total_norm_fp32

    def clip(parameters: Any, max_norm: Any, total_norm: float, *given: Any, **options: Any) -> Any:
        if parallel_state.is_pipeline_last_stage():
            total_norm *= 2
        return original(parameters, max_norm, total_norm, *given, **options)

    optimizer.clip_grad_by_total_norm_fp32 = clip
