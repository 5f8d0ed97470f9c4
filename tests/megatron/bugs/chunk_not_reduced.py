"""A loop finalizes the gradients of its first model chunk alone: those of the other chunks of a stage are not reduced over the data.

Source: the class of `model[0]` in place of `model`, where a stage has several chunks, in a loop's own `finalize_model_grads_func`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,dp=2,virtual=2,untied"
FOUND = (
    "data_parallel_gradients_agree",
    1,
    (0, 1, 2, 3),
    "decoder.layers.2.input_layernorm.weight",
)


def put_in() -> None:
    """The reduction of later chunks is left out."""
    from megatron.core.distributed import DistributedDataParallel

    original = DistributedDataParallel.finish_grad_sync

    def of_the_first(self: Any, *args: Any, **kwargs: Any) -> None:
        if self.module.vp_stage == 0:
            original(self, *args, **kwargs)

    DistributedDataParallel.finish_grad_sync = of_the_first
