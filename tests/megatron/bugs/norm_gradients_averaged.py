"""Gradients of layer norms are averaged over tensor-parallel ranks where each has a part of the sequence: they are too small.

Source: gpt-neox pull request 1259 (an average in place of the sum).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,sp"
FOUND = None


def put_in() -> None:
    """What was summed is divided by the number of ranks."""
    import importlib

    from megatron.core import parallel_state

    finalize = importlib.import_module("megatron.core.distributed.finalize_model_grads")
    original = finalize._allreduce_non_tensor_model_parallel_grads

    def averaged(chunks: Any, *args: Any, **kwargs: Any) -> None:
        original(chunks, *args, **kwargs)
        ranks = parallel_state.get_tensor_model_parallel_world_size()
        for chunk in chunks:
            for parameter in chunk.parameters():
                if getattr(parameter, "sequence_parallel", False):
                    parameter.main_grad /= ranks

    finalize._allreduce_non_tensor_model_parallel_grads = averaged
