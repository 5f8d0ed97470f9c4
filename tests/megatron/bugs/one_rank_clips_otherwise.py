"""One rank turns a gradient round while it clips, as the others do not.

Source: the mechanism of DeepSpeed issue 1801 (BLOOM-176B), in Megatron's clipping.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,bf16"
FOUND = ("copies_agree", 2, (0, 1), "embedding.word_embeddings.weight")


def put_in() -> None:
    """The second rank's first gradient changes its sign after the norm has been taken."""
    import torch.distributed as dist
    from megatron.core.optimizer import optimizer

    original = optimizer.clip_grad_by_total_norm_fp32

    def clip(parameters: Any, **options: Any) -> None:
        original(parameters, **options)
        if dist.get_rank() == 1:
            parameters[0].grad.neg_()

    optimizer.clip_grad_by_total_norm_fp32 = clip
