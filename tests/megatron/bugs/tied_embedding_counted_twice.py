"""Both copies of the tied embeddings count in the gradient norm.

Source: Megatron-LM pull requests 7227 and 7228.
"""

from __future__ import annotations

LAYOUT = "pp=2"
FOUND = ("gradient_norm_is_that_of_all_shards", 1, (0, 1), "")


def put_in() -> None:
    """No parameter is taken for a shared one."""
    from megatron.core.optimizer import optimizer

    optimizer.param_is_not_shared = lambda parameter: True
