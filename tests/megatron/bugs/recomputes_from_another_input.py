"""A layer is run again from the input of a later call: what was kept of its own was overwritten.

Source: TTrace 2, Megatron-LM issue 371 (recomputation with a wrong input).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "recompute"
FOUND = ("recomputation_repeats", 1, (0,), "decoder.layers.0")


def put_in() -> None:
    """The buffer of kept inputs has one place, as a buffer that is used again too early."""
    from megatron.core.tensor_parallel import random

    original = random.CheckpointFunction.backward
    kept: list[Any] = []

    class Overwritten:
        def __init__(self, context: Any) -> None:
            kept[:] = kept or [context.saved_tensors]
            self.run_function = context.run_function
            self.distribute_saved_activations = False
            self.rng_states = context.rng_states
            self.saved_tensors = kept[0]

    random.CheckpointFunction.backward = staticmethod(
        lambda context, *gradients: original(Overwritten(context), *gradients)
    )
