"""An update whose gradients overflowed is reported as left out, and made.

Source: `ChainedOptimizer.step` returns before the update; here it does not.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "bf16"
FOUND = ("skipped_updates_change_nothing", 2, (0,), "embedding.word_embeddings.weight")


def put_in() -> None:
    """The second update says that it was left out."""
    from megatron.core.optimizer import ChainedOptimizer

    original = ChainedOptimizer.step_with_ready_grads
    made: list[int] = []

    def step(self: Any) -> bool:
        made.append(1)
        return bool(original(self)) and len(made) != 2

    ChainedOptimizer.step_with_ready_grads = step
