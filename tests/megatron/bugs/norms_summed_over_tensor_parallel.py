"""Where tensor and context parallelism are both on, gradients of layer norms are summed over tensor-parallel ranks that have all of them already: they are too large by the number of ranks.

Source: TTrace 14 (in FP8, which does not run here; the sum is put into Megatron's own reduction).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,cp=2"
FOUND = None


def put_in() -> None:
    """What is the same on all ranks is added up."""
    import importlib

    import torch.distributed as dist
    from megatron.core import parallel_state

    finalize = importlib.import_module("megatron.core.distributed.finalize_model_grads")
    original = finalize._allreduce_non_tensor_model_parallel_grads

    def summed(chunks: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        original(chunks, config, *args, **kwargs)
        if config.context_parallel_size == 1:
            return
        group = parallel_state.get_tensor_model_parallel_group()
        for chunk in chunks:
            for name, parameter in chunk.named_parameters():
                if "layernorm" in name:
                    dist.all_reduce(parameter.main_grad, group=group)

    finalize._allreduce_non_tensor_model_parallel_grads = summed
