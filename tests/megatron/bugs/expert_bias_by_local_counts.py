"""Each rank moves the bias of its router by its own counts of tokens.

Source: Megatron-LM issue 7452's class (local counts for global ones), finding 10.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,sp,experts=4,etp=2,bias"
FOUND = ("expert_biases_agree", 1, (0, 1), "decoder.layers.0.mlp.router.expert_bias")


def put_in() -> None:
    """The counts are not summed over ranks."""
    import importlib

    import torch

    def updated(counts: Any, bias: Any, rate: float) -> Any:
        return bias + torch.sign(counts.mean(-1, keepdim=True) - counts) * rate

    finalize = importlib.import_module("megatron.core.distributed.finalize_model_grads")
    finalize.get_updated_expert_bias = updated
