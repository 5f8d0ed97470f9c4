"""Each pipeline stage clips by the norm of its own gradients.

Source: Megatron-LM issue 2263 asks over which ranks the norm is to be reduced.
"""

from __future__ import annotations

LAYOUT = "pp=2"
FOUND = ("gradient_norm_agrees", 1, (0, 1), "")


def put_in() -> None:
    """The norm is reduced over tp alone."""
    from megatron.core import parallel_state
    from megatron.core.optimizer.optimizer import MegatronOptimizer

    MegatronOptimizer.get_grad_stats_parallel_group = lambda self: (
        parallel_state.get_tensor_model_parallel_group()
    )
