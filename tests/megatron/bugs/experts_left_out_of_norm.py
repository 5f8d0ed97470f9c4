"""The gradient norm takes experts for copies on all tensor-parallel ranks but the first, and leaves them out.

Source: Megatron-LM pull requests 5916 and 6470 (with layers of Transformer Engine, which are not marked as cut).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,sp,experts=4,ep=2"
FOUND = ("gradient_norm_is_that_of_all_shards", 1, (0, 1), "")


def put_in() -> None:
    """The weights of experts are marked as Transformer Engine's are."""
    from megatron.core.transformer.moe.experts import SequentialMLP

    original = SequentialMLP.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for parameter in self.parameters():
            parameter.tensor_model_parallel = False

    SequentialMLP.__init__ = init
