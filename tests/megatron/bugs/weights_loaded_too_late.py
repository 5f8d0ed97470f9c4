"""Weights are loaded after the optimizer has made its main copies, which overwrite them in the first update.

Source: Megatron's `reload_model_params` is there for such loads; here nobody calls it.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,zero,bf16"
FOUND = (
    "first_update_begins_at_the_model_copy",
    1,
    (0, 1),
    "decoder.layers.1.mlp.linear_fc2.weight",
)


def put_in() -> None:
    """The weights that are loaded are others than those the model was built with."""
    from megatron.core.optimizer import ChainedOptimizer

    build = ChainedOptimizer.__init__

    def then_load(self: Any, *args: Any, **kwargs: Any) -> None:
        build(self, *args, **kwargs)
        for chunk in self.model_chunks:
            state = chunk.state_dict().items()
            chunk.load_state_dict(
                {name: each if each is None else 0.9 * each for name, each in state}
            )

    ChainedOptimizer.__init__ = then_load
