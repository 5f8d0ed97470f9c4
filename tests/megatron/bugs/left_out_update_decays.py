"""Weights are decayed before it is known that the update is left out.

Source: `torch.amp.GradScaler` and `ChainedOptimizer.step` ask first; a loop that decays by itself does not.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "fp16"
STEPS = 6
FOUND = ("skipped_updates_change_nothing", 5, (0,), "embedding.word_embeddings.weight")


def put_in() -> None:
    """From the fourth update on, between those steps that are looked at in any case."""
    import torch
    from megatron.core.optimizer import ChainedOptimizer

    prepare = ChainedOptimizer.prepare_grads
    made: list[int] = []

    def decay(self: Any) -> bool:
        made.append(1)
        overflowed = bool(prepare(self))
        if overflowed and len(made) > 3:
            for group in self.chained_optimizers[0].float16_groups:
                torch._foreach_mul_([parameter.data for parameter in group], 0.99)
        return overflowed

    ChainedOptimizer.prepare_grads = decay
